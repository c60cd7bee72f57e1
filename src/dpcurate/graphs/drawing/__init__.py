"""A graph as a picture: where boxes and edges go, and SVG that stands alone."""
