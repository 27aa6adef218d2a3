"""The worlds. What needs Gymnasium is imported from its own file, so that the rest works without it."""

from dr3.envs.atari import ATARI, Atari, atari
from dr3.envs.compiled import CompiledWorld, Step
from dr3.envs.emulated import EmulatedWorld, Games, Moves
from dr3.envs.gridworld import GRIDWORLDS, Gridworld, gridworld, is_gridworld, spelled_gridworld
from dr3.envs.gridworld_policies import BEHAVIORS, behavior_policy, mixed_policy, optimal_policy
from dr3.envs.known import known_world
from dr3.envs.mazes import MAZES, Maze
from dr3.envs.minatar import MINATAR, MinAtar, minatar
from dr3.envs.observing import flatten
from dr3.envs.tabular import expected_return, greedy_policy, optimal_values, policy_values
from dr3.envs.tasks import TASKS, RobotTask, find_task, normalised_score
from dr3.envs.worlds import WORLDS, make_world

__all__ = [
    "ATARI",
    "BEHAVIORS",
    "GRIDWORLDS",
    "MAZES",
    "MINATAR",
    "TASKS",
    "WORLDS",
    "Atari",
    "CompiledWorld",
    "EmulatedWorld",
    "Games",
    "Gridworld",
    "Maze",
    "MinAtar",
    "Moves",
    "RobotTask",
    "Step",
    "atari",
    "behavior_policy",
    "expected_return",
    "find_task",
    "flatten",
    "greedy_policy",
    "gridworld",
    "is_gridworld",
    "known_world",
    "make_world",
    "minatar",
    "mixed_policy",
    "normalised_score",
    "optimal_policy",
    "optimal_values",
    "policy_values",
    "spelled_gridworld",
]
