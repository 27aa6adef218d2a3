"""D4RL's tasks: the returns that count as 0 and as 100, and the time limit. (Fu et al., 2020; D4RL's own table.)"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dr3.errors import UserError


@dataclass(frozen=True)
class RobotTask:
    """A task of D4RL, whatever data of it was collected."""

    name: str  # "hopper", "antmaze-medium-play"
    minimum: float  # a random policy's return
    maximum: float  # an expert's
    limit: int  # steps after which an episode is cut
    world: str  # where a policy for D4RL's files can be evaluated; its simulator is newer (docs/worlds.md)

    def normalised(self, returns: ArrayLike) -> NDArray[np.float64]:
        """100 (return - minimum) / (maximum - minimum), element by element."""
        return 100 * (np.asarray(returns, np.float64) - self.minimum) / (self.maximum - self.minimum)


_ANTMAZE = {"umaze": 700, "umaze-diverse": 700} | dict.fromkeys(
    ("medium-play", "medium-diverse", "large-play", "large-diverse"), 1000
)
TASKS = {
    task.name: task
    for task in (
        RobotTask("halfcheetah", -280.178953, 12135.0, 1000, "HalfCheetah-v5"),
        RobotTask("hopper", -20.272305, 3234.3, 1000, "Hopper-v5"),
        RobotTask("walker2d", 1.629008, 4592.3, 1000, "Walker2d-v5"),
        RobotTask("ant", -325.6, 3879.7, 1000, "ant/d4rl"),
        *(RobotTask(f"antmaze-{maze}", 0.0, 1.0, limit, f"antmaze/{maze}") for maze, limit in _ANTMAZE.items()),
        *(RobotTask(f"kitchen-{kind}", 0.0, 4.0, 280, f"kitchen/{kind}") for kind in ("complete", "partial", "mixed")),
    )
}
LOCOMOTION = ("halfcheetah", "hopper", "walker2d", "ant")
DATASETS = ("random", "medium", "expert", "medium-replay", "medium-expert", "full-replay")

# The public files that are not called what their task is called.
_FILES = {
    "ant-maze-u-maze-noisy-multistart-false-multigoal-false": "antmaze-umaze",
    "ant-maze-u-maze-noisy-multistart-true-multigoal-true": "antmaze-umaze-diverse",
    "ant-maze-big-maze-noisy-multistart-true-multigoal-false": "antmaze-medium-play",
    "ant-maze-big-maze-noisy-multistart-true-multigoal-true": "antmaze-medium-diverse",
    "ant-maze-hardest-maze-noisy-multistart-true-multigoal-false": "antmaze-large-play",
    "ant-maze-hardest-maze-noisy-multistart-true-multigoal-true": "antmaze-large-diverse",
    "mini-kitchen-microwave-kettle-light-slider": "kitchen-complete",
    "kitchen-microwave-kettle-light-slider": "kitchen-partial",
    "kitchen-microwave-kettle-bottomburner-light": "kitchen-mixed",
    "walker-mixed": "walker2d",
}


def find_task(name: str) -> RobotTask | None:
    """The task that a name speaks of, or None: a D4RL id, a public file's name without its ending, a world's name.

    `hopper-medium-v2`, `hopper_medium-v2`, `hopper`, `Hopper-v5`, `antmaze-umaze-v2`, `antmaze/umaze`,
    `D4RL/kitchen/mixed-v2`. (`AntMaze_UMaze-v5` and `FrankaKitchen-v1` are not D4RL's: they pay differently.)

    Args:
        name: Any of these names.
    """
    word = re.sub(r"[_/]", "-", name.lower()).removeprefix("d4rl-")
    word = re.sub(r"-v\d+$", "", word)
    word = re.sub(r"-sparse(-fixed)?$", "", word)
    if name.lower().startswith("antmaze_"):
        return None
    word = _FILES.get(word, word)
    family, _, kind = word.partition("-")
    if family in LOCOMOTION and kind in ("", "d4rl", "mixed", *DATASETS):  # D4RL calls version 0 of medium-replay mixed
        return TASKS[family]
    return TASKS.get(word)


@overload
def normalised_score(task: str, returns: float) -> float: ...
@overload
def normalised_score(task: str, returns: NDArray[np.floating]) -> NDArray[np.float64]: ...
def normalised_score(task: str, returns: float | NDArray[np.floating]) -> float | NDArray[np.float64]:
    """D4RL's normalised score of undiscounted episode returns, from 0 (random) to 100 (expert) and beyond.

    Args:
        task: The name of a D4RL task, a data set of it or a world.
        returns: Undiscounted returns of episodes, of any shape.
    """
    found = find_task(task)
    if found is None:
        raise UserError(f"There is no D4RL task {task!r} to normalise a return by; there are {', '.join(TASKS)}.")
    scores = found.normalised(returns)
    return scores if isinstance(returns, np.ndarray) else float(scores)
