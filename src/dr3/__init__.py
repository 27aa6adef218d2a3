"""dr3: train, watch and repair value functions that are learned from logged data.

    import dr3

    data = dr3.load("grid16smoothobs")
    runs = dr3.train(data, dr3.DQN(), regularizer=dr3.DR3(0.03), steps=5000, seeds=3)
    runs.metrics["features/dot_product"]

Names are looked up when they are first used, rooms such as `dr3.data` too: `import dr3` alone loads no JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dr3 import data, diagnostics, envs, instruments, integrations, methods, paper, regularizers, stats, theory
    from dr3.collect.replay import collect_dqn
    from dr3.data import Transitions, load
    from dr3.errors import UserError
    from dr3.integrations import diagnose
    from dr3.methods import BC, BRAC, COG, CQL, DQN, REM, SAC, SARSA, TD, ContinuousCQL, Supervised
    from dr3.regularizers import DR3, FeatureNorm, LabelNoiseDR3, SrankPenalty
    from dr3.runs import Runs, digest
    from dr3.runs import Runs as open
    from dr3.training import train

_HOMES = {
    "BC": "dr3.methods",
    "BRAC": "dr3.methods",
    "COG": "dr3.methods",
    "CQL": "dr3.methods",
    "ContinuousCQL": "dr3.methods",
    "DQN": "dr3.methods",
    "DR3": "dr3.regularizers",
    "FeatureNorm": "dr3.regularizers",
    "LabelNoiseDR3": "dr3.regularizers",
    "REM": "dr3.methods",
    "Runs": "dr3.runs",
    "SAC": "dr3.methods",
    "SARSA": "dr3.methods",
    "SrankPenalty": "dr3.regularizers",
    "Supervised": "dr3.methods",
    "TD": "dr3.methods",
    "Transitions": "dr3.data",
    "UserError": "dr3.errors",
    "collect_dqn": "dr3.collect.replay",
    "diagnose": "dr3.integrations",
    "digest": "dr3.runs",
    "load": "dr3.data",
    "train": "dr3.training",
}

# What the documentation calls by its room: `dr3.data.assemble`, `dr3.paper.table`, …
_ROOMS = (
    "data",
    "diagnostics",
    "envs",
    "instruments",
    "integrations",
    "methods",
    "paper",
    "regularizers",
    "stats",
    "theory",
)

__all__ = [
    "BC",
    "BRAC",
    "COG",
    "CQL",
    "DQN",
    "DR3",
    "REM",
    "SAC",
    "SARSA",
    "TD",
    "ContinuousCQL",
    "FeatureNorm",
    "LabelNoiseDR3",
    "Runs",
    "SrankPenalty",
    "Supervised",
    "Transitions",
    "UserError",
    "collect_dqn",
    "data",
    "diagnose",
    "diagnostics",
    "digest",
    "envs",
    "instruments",
    "integrations",
    "load",
    "methods",
    "open",
    "paper",
    "regularizers",
    "stats",
    "theory",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "open":  # a run folder, as `dr3.open(RUN)`
        name = "Runs"
    if name in _ROOMS:
        return import_module(f"dr3.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'dr3' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
