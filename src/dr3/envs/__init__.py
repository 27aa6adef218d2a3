"""The worlds. What needs Gymnasium is imported from its own file, so that the rest works without it."""

from dr3.envs.atari import ATARI, Atari, atari
from dr3.envs.compiled import CompiledWorld, Step
from dr3.envs.emulated import EmulatedWorld, Games, Moves
from dr3.envs.gridworld import ACTION_NAMES, GRIDWORLDS, Gridworld, gridworld
from dr3.envs.gridworld_policies import BEHAVIORS, behavior_policy, mixed_policy, optimal_policy
from dr3.envs.minatar import MINATAR, MinAtar, minatar
from dr3.envs.tabular import expected_return, greedy_policy, optimal_values, policy_values

__all__ = [
    "ACTION_NAMES",
    "ATARI",
    "BEHAVIORS",
    "GRIDWORLDS",
    "MINATAR",
    "Atari",
    "CompiledWorld",
    "EmulatedWorld",
    "Games",
    "Gridworld",
    "MinAtar",
    "Moves",
    "Step",
    "atari",
    "behavior_policy",
    "expected_return",
    "greedy_policy",
    "gridworld",
    "minatar",
    "mixed_policy",
    "optimal_policy",
    "optimal_values",
    "policy_values",
]
