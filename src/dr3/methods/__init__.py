"""One file per base method."""

from dr3.methods.base import Method, Spec, objective
from dr3.methods.bc import BC
from dr3.methods.brac import BRAC
from dr3.methods.cog import COG
from dr3.methods.continuous import ContinuousMethod
from dr3.methods.continuous_cql import ContinuousCQL
from dr3.methods.cql import CQL
from dr3.methods.dqn import DQN
from dr3.methods.rem import REM
from dr3.methods.sac import SAC
from dr3.methods.sarsa import SARSA
from dr3.methods.supervised import Supervised
from dr3.methods.td import TD

METHODS: dict[str, type] = {
    cls.name: cls for cls in (DQN, REM, CQL, SARSA, TD, Supervised, SAC, ContinuousCQL, COG, BRAC, BC)
}

# A name that means another class where the data's actions are continuous.
FOR_CONTINUOUS_ACTIONS: dict[str, type] = {"cql": ContinuousCQL}

__all__ = [
    "BC",
    "BRAC",
    "COG",
    "CQL",
    "DQN",
    "FOR_CONTINUOUS_ACTIONS",
    "METHODS",
    "REM",
    "SAC",
    "SARSA",
    "TD",
    "ContinuousCQL",
    "ContinuousMethod",
    "Method",
    "Spec",
    "Supervised",
    "objective",
]
