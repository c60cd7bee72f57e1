"""Graphs as pictures: layout, SVG and matplotlib, shared by the report page, notebooks and plots."""
