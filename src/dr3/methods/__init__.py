"""One file per base method."""

from dr3.methods.base import Method, Spec, objective
from dr3.methods.cql import CQL
from dr3.methods.dqn import DQN
from dr3.methods.rem import REM
from dr3.methods.sarsa import SARSA
from dr3.methods.supervised import Supervised
from dr3.methods.td import TD

METHODS: dict[str, type] = {cls.name: cls for cls in (DQN, REM, CQL, SARSA, TD, Supervised)}

__all__ = ["CQL", "DQN", "METHODS", "REM", "SARSA", "TD", "Method", "Spec", "Supervised", "objective"]
