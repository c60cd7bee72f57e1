"""Templates and assets."""

import re
from importlib.resources import files

import pytest
from jinja2 import UndefinedError
from starlette.applications import Starlette

from asgi import Client
from dpcurate.web.pages import SHARED, Assets, templates


def test_a_name_with_markup_is_text():
    page = templates("dpcurate.web").from_string("<b>{{ name }}</b>")
    assert page.render(name="<script>x</script>") == "<b>&lt;script&gt;x&lt;/script&gt;</b>"


def test_a_typo_in_a_template_is_an_error():
    with pytest.raises(UndefinedError):
        templates("dpcurate.web").from_string("{{ nothing }}").render()


def test_the_base_page_loads_only_files_that_are_served():
    assets = Assets(SHARED)
    page = templates("dpcurate.web").get_template("base.html").render(assets=assets, root="")
    links = re.findall(r'(?:href|src)="([^"#]+)"', page)
    client = Client(Starlette(routes=[assets.route()]))
    assert len(links) == 3
    assert [client.get(link).status_code for link in links] == [200, 200, 200]
    assert client.get("/assets/..%2fpages.py").status_code == 404
    assert client.get("/assets/none.css").status_code == 404


def test_nothing_is_inline_and_nothing_comes_from_elsewhere():
    for name in ("base.html",):
        text = (files("dpcurate.web") / "templates" / name).read_text()
        assert not re.search(r"<style|\bstyle=|\bon\w+=|<script>|https?://", text)
    assert "http" not in (files("dpcurate.web") / "assets" / "web.js").read_text()
