"""Fitted models: tables of a found graph's families, what follows from them, and synthetic tables."""

from dpcurate.models.mixed import ScoreModel
from dpcurate.models.model import Model

__all__ = ["Model", "ScoreModel"]
