"""Drawers: a robot arm that takes a ball out of a drawer, seen by a camera (section 5, appendix E, after COG).

The original is a PyBullet scene of meshes. This is the same task in MuJoCo, in shapes and sizes of our own.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dr3.envs.drawers_scene import POINTING_DOWN, Scene
from dr3.envs.drawers_tasks import DRAWERS, DrawerTask, drawer_task
from dr3.errors import UserError

try:
    import gymnasium
except ModuleNotFoundError as missing:
    raise UserError("Acting through Gymnasium needs the gymnasium package: pip install 'dr3[envs]'.") from missing

IMAGE = 48
MOVE = 0.2  # m asked for by a full action, as in the original
TURN = np.deg2rad(20.0)
RESPONSE = 0.3  # the share of what is asked for that is carried out in one step: the original's servo lags likewise
FINGERS = 1 / 3  # of their way in a step: closing them is a phase of an episode, not one row of it
SUBSTEPS, PIECES = 5, 5  # of 4 ms: a step is 0.1 s
HOME_PIECES = 20  # returning home is one step too, of 0.4 s

WORKSPACE = np.array([[-0.16, 0.14, 0.018], [0.36, 0.40, 0.30]])  # of the grip
MOST_TURN = np.deg2rad([45.0, 45.0, 90.0])

LIFTED = 0.12  # m above the table: the ball's centre is over the drawer's rim, at 0.07
HELD = 0.1  # m between ball and grip
OPENED, CLOSED = 0.95, 0.05  # of a drawer's travel: more is open, less is closed

Observation = Literal["picture", "state"]


class DrawersEnv(gymnasium.Env[NDArray[Any], NDArray[np.float32]]):
    """Observes the camera's picture, (48, 48, 3) uint8; with observation="state" 15 numbers that say where things are.

    These are the grip's place (3), how far the fingers are open (1), the hand's turns (3, in rad), the places of ball
    and block (3 each), and how far the drawers `top` and `bottom` are open (2): metres, and shares from 0 to 1.

    Actions: 8 numbers in [-1, 1]. Three move the grip along x, y, z; three turn the hand about x, y, z; the seventh
    opens the fingers above 0.5 and closes them below -0.5, by a third of their way; above 0.5 the eighth sends the arm
    home, as the step's end.
    The original's scales are asked for, and 30 % of them carried out in a step, as its servo lags too.

    The reward is 1 in every step in which the ball is above the drawer and in the hand, else 0. `terminated` is never
    true: an episode is `truncated` at the task's number of steps.

    `info`: how far the drawers `top` and `bottom` are open (0 … 1), `success` (the reward as a flag), `block_lifted`
    (it is off the table and in the hand), `block_moved` (it is 6 cm from where it began).
    """

    def __init__(
        self,
        task: str | DrawerTask = "drawers/closed",
        render_mode: str | None = None,
        observation: Observation = "picture",
    ) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
        if render_mode not in (None, "rgb_array"):
            raise UserError(f"The drawers are drawn as 'rgb_array', not as {render_mode!r}.")
        if observation not in get_args(Observation):
            raise UserError(f"The drawers are observed as 'picture' or as 'state', not as {observation!r}.")
        self.task = drawer_task(task) if isinstance(task, str) else task
        self.observation: Observation = observation
        self.render_mode = render_mode
        self.render_size = 480
        self.scene = Scene()
        spaces = gymnasium.spaces
        self.observation_space: Any = (
            spaces.Box(0, 255, (IMAGE, IMAGE, 3), np.uint8)
            if observation == "picture"
            else spaces.Box(-np.inf, np.inf, (15,), np.float32)
        )
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (8,), np.float32)
        self._angles, self._steps, self._block = np.zeros(3), 0, np.zeros(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        random, task = self.np_random, self.task
        top = random.uniform(*task.top)
        ball = np.array([random.uniform(-0.14, -0.065), 0.28 + random.uniform(-0.035, 0.035), 0.038])
        ball[0] += 0.16 * task.bottom
        if task.block == "in front":  # of the lower handle's bar, where the hand has to come down
            block = np.array([0.056, 0.28 + random.uniform(-0.02, 0.02), 0.063])
        else:
            block = np.array([0.29 + random.uniform(-0.02, 0.02), 0.28 + random.uniform(-0.04, 0.04), 0.067])
        self.scene.reset(top=top, bottom=task.bottom, ball=ball, block=block)
        self._angles, self._steps, self._block = np.zeros(3), 0, block
        return self._observed(), self._info()

    def step(self, action: NDArray[Any]) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        asked = np.asarray(action, np.float64)
        if asked.shape != (8,) or not np.isfinite(asked).all():
            raise UserError(f"An action of the drawers is 8 finite numbers, not {action!r}.")
        asked = np.clip(asked, -1.0, 1.0)
        scene = self.scene
        position = np.clip(scene.grip + RESPONSE * MOVE * asked[:3], *WORKSPACE)
        self._angles = np.clip(self._angles + RESPONSE * TURN * asked[3:6], -MOST_TURN, MOST_TURN)
        if abs(asked[6]) > 0.5:
            scene.move_fingers(np.sign(asked[6]) * FINGERS)
        scene.move(scene.solve(position, _rotation(self._angles) @ POINTING_DOWN), substeps=SUBSTEPS, pieces=PIECES)
        if asked[7] > 0.5:
            self._angles = np.zeros(3)
            scene.move(scene.home, substeps=SUBSTEPS, pieces=HOME_PIECES)
        self._steps += 1
        info = self._info()
        return self._observed(), float(info["success"]), False, self._steps >= self.task.steps, info

    def render(self) -> NDArray[np.uint8]:
        """A larger picture: (render_size, render_size, 3)."""
        return self.scene.picture(self.render_size)

    def close(self) -> None:
        self.scene.close()

    def _observed(self) -> NDArray[Any]:
        scene = self.scene
        if self.observation == "picture":
            return scene.picture(IMAGE)
        opened = scene.openness("top"), scene.openness("bottom")
        things = scene.position("ball"), scene.position("block")
        parts = (scene.grip, [scene.finger_opening()], self._angles, *things, opened)
        return np.concatenate(parts).astype(np.float32)

    def _info(self) -> dict[str, Any]:
        scene = self.scene
        ball, block, grip = scene.position("ball"), scene.position("block"), scene.grip
        return {
            "top": scene.openness("top"),
            "bottom": scene.openness("bottom"),
            "success": bool(ball[2] > LIFTED and np.linalg.norm(ball - grip) < HELD),
            "block_lifted": bool(block[2] > self._block[2] + 0.03 and np.linalg.norm(block - grip) < HELD),
            "block_moved": bool(np.linalg.norm((block - self._block)[:2]) > 0.06),
        }


def _rotation(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """About the world's x, then y, then z: (3, 3)."""
    (a, b, c), (u, v, w) = np.cos(angles), np.sin(angles)
    about_x = np.array([[1, 0, 0], [0, a, -u], [0, u, a]])
    about_y = np.array([[b, 0, v], [0, 1, 0], [-v, 0, b]])
    about_z = np.array([[c, -w, 0], [w, c, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def register_drawers() -> None:
    """Make the tasks known to `gymnasium.make` under their names."""
    for name, task in DRAWERS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point="dr3.envs.drawers:DrawersEnv", kwargs={"task": task.name})
