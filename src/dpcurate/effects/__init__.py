"""What setting one column does to another: effects by adjustment in a graph, from what was released."""

from dpcurate.effects.effect import Effect, EffectState, EffectTable

__all__ = ["Effect", "EffectState", "EffectTable"]
