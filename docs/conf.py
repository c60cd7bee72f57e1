"""Sphinx settings; `make docs` builds into docs/_build."""

project = "dpcurate"
author = "The dpcurate developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
exclude_patterns = ["_build", "data"]
html_static_path = ["_static"]
html_css_files = ["wrap.css"]  # long lines wrap, and tables fit narrow screens
myst_heading_anchors = 3
autodoc_typehints = "description"
suppress_warnings = ["myst.xref_missing", "ref.python"]
