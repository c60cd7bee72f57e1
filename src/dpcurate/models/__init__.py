"""Fitted models: tables or regressions of a found graph, what follows from them, and synthetic tables."""

from dpcurate.models.model import Model

__all__ = ["Model"]
