"""What setting one column does to another: effects by adjustment in a graph, from what was released."""

from dpcurate.effects.effect import Effect, State
from dpcurate.effects.effect_table import EffectTable

__all__ = ["Effect", "EffectTable", "State"]
