"""One file per base method."""

from dr3.methods.base import Method, Spec, objective
from dr3.methods.dqn import DQN
from dr3.methods.sarsa import SARSA
from dr3.methods.supervised import Supervised
from dr3.methods.td import TD

METHODS: dict[str, type] = {cls.name: cls for cls in (DQN, SARSA, TD, Supervised)}

__all__ = ["DQN", "METHODS", "SARSA", "TD", "Method", "Spec", "Supervised", "objective"]
