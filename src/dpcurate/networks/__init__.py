"""Worlds to test in: the benchmark networks as data, BIF both ways, samplers, random worlds."""

from dpcurate.networks.interventions import HiddenWorld, Intervened
from dpcurate.networks.library import SHIPPED, load, names, parse, write
from dpcurate.networks.mixed import MixedWorld, random_mixed
from dpcurate.networks.network import Network, Variable
from dpcurate.networks.worlds import (
    LinearWorld,
    NonlinearWorld,
    ParentEffect,
    random_dag,
    random_linear,
    random_network,
    random_nonlinear,
)

__all__ = [
    "SHIPPED",
    "HiddenWorld",
    "Intervened",
    "LinearWorld",
    "MixedWorld",
    "Network",
    "NonlinearWorld",
    "ParentEffect",
    "Variable",
    "load",
    "names",
    "parse",
    "random_dag",
    "random_linear",
    "random_mixed",
    "random_network",
    "random_nonlinear",
    "write",
]
