"""What drives an ant towards a waypoint: a policy that learned in `ant/waypoints`, as the body sees the way."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dr3.collect.host_policy import read_policy
from dr3.envs.ant_body import MOTORS, SEEN, turn_back, view
from dr3.errors import UserError

SHIPPED = Path(str(resources.files("dr3.collect") / "walker.npz"))  # docs/collecting.md has the command that made it


class Walker:
    """(the 29 numbers of AntMaze, the way to the waypoint) -> 8 torques, those that the policy thinks best."""

    def __init__(self, path: Path = SHIPPED) -> None:
        self.policy = read_policy(path)
        if (self.policy.observed, self.policy.size) != (SEEN, MOTORS):
            raise UserError(
                f"{path} maps {self.policy.observed} numbers to {self.policy.size}, a walker {SEEN} to {MOTORS}: "
                "train one with `dr3 data collect sac --env ant/waypoints --policy FILE`."
            )

    def __call__(self, seen: NDArray[np.float32], way: NDArray[np.float64]) -> NDArray[np.floating]:
        turned, turns = view(seen[2:].astype(np.float64), way)
        return turn_back(self.policy.mode(turned), turns)
