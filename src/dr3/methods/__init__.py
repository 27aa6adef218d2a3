"""One file per base method."""

from dr3.methods.base import Method, Spec, backup_of, objective
from dr3.methods.bc import BC
from dr3.methods.brac import BRAC
from dr3.methods.cog import COG
from dr3.methods.continuous import ContinuousMethod
from dr3.methods.continuous_cql import ContinuousCQL
from dr3.methods.continuous_iql import ContinuousIQL
from dr3.methods.cql import CQL
from dr3.methods.discrete import Bootstrap, BootstrappedMethod, DiscreteMethod
from dr3.methods.discrete_bc import DiscreteBC
from dr3.methods.dqn import DQN
from dr3.methods.iql import IQL
from dr3.methods.rebrac import ReBRAC
from dr3.methods.rem import REM
from dr3.methods.sac import SAC
from dr3.methods.sarsa import SARSA
from dr3.methods.supervised import Supervised
from dr3.methods.td import TD
from dr3.methods.td3 import TD3
from dr3.methods.td3_bc import TD3BC
from dr3.registry import Registry

_DISCRETE = (DQN, REM, CQL, IQL, SARSA, TD, Supervised, DiscreteBC)
_CONTINUOUS = (SAC, ContinuousCQL, ContinuousIQL, COG, BRAC, TD3, TD3BC, ReBRAC, BC)
_OWN = (*_DISCRETE, *_CONTINUOUS)
METHODS = Registry("method", {cls.name: cls for cls in _OWN})

# A name that means another class where the data's actions are continuous.
FOR_CONTINUOUS_ACTIONS: dict[str, type] = {"cql": ContinuousCQL, "iql": ContinuousIQL}
# And where they are discrete.
FOR_DISCRETE_ACTIONS: dict[str, type] = {"bc": DiscreteBC}

__all__ = [
    "BC",
    "BRAC",
    "COG",
    "CQL",
    "DQN",
    "FOR_CONTINUOUS_ACTIONS",
    "FOR_DISCRETE_ACTIONS",
    "IQL",
    "METHODS",
    "REM",
    "SAC",
    "SARSA",
    "TD",
    "TD3",
    "TD3BC",
    "Bootstrap",
    "BootstrappedMethod",
    "ContinuousCQL",
    "ContinuousIQL",
    "ContinuousMethod",
    "DiscreteBC",
    "DiscreteMethod",
    "Method",
    "ReBRAC",
    "Spec",
    "Supervised",
    "backup_of",
    "objective",
]
