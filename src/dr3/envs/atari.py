"""Atari games in the Arcade Learning Environment, preprocessed as in Dopamine, whose agents logged the paper's data.

The emulator and its games come with ale-py (`pip install 'dr3[atari]'`), and so does a vectorised preprocessing in
native threads. It was checked against frames made one by one (maximum of the last two of four emulated frames, area
resize): equal to the last bit, but for the frame in which a game ends, of which nothing is ever used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dr3.cores import available_cores
from dr3.envs.emulated import Moves
from dr3.errors import UserError, nearest

# The paper's 17 games, each with the size of its minimal action set.
ATARI: dict[str, int] = {
    "atari/Asterix": 9,
    "atari/BeamRider": 9,
    "atari/Breakout": 4,
    "atari/DemonAttack": 6,
    "atari/DoubleDunk": 18,
    "atari/Enduro": 9,
    "atari/IceHockey": 18,
    "atari/Jamesbond": 18,
    "atari/MsPacman": 9,
    "atari/Pong": 6,
    "atari/Qbert": 6,
    "atari/RoadRunner": 18,
    "atari/Seaquest": 18,
    "atari/SpaceInvaders": 6,
    "atari/WizardOfWor": 10,
    "atari/YarsRevenge": 18,
    "atari/Zaxxon": 18,
}
FRAME_SKIP = 4
FRAMES_PER_EPISODE = 108_000  # 27,000 steps of the agent: then the clock cuts the game
STICKY = 0.25  # probability that the emulator repeats the last action, decided anew in each of its frames


@dataclass(frozen=True)
class Atari:
    """One game: 84 x 84 grey frames, four to an observation, one in four of the emulator's.

    A game ends when it is over, not when a life is lost, and starts without idle moves or a push of the button: sticky
    actions are what makes games differ. Rewards are the game's own.
    """

    name: str
    actions: int
    frame_shape: ClassVar[tuple[int, int]] = (84, 84)
    stack: ClassVar[int] = 4

    def open(self, copies: int) -> AtariGames:
        return AtariGames(self.name, copies)


class AtariGames:
    """Copies of one game, in as many native threads as there are cores."""

    def __init__(self, name: str, copies: int) -> None:
        from ale_py.vector_env import AtariVectorEnv

        self._games: Any = AtariVectorEnv(
            _rom(name),
            copies,
            num_threads=min(copies, available_cores()),
            frameskip=FRAME_SKIP,
            max_num_frames_per_episode=FRAMES_PER_EPISODE,
            repeat_action_probability=STICKY,
            stack_num=1,
            noop_max=0,
            use_fire_reset=False,
            episodic_life=False,
            reward_clipping=False,
        )

    def reset(self, seeds: NDArray[np.integer]) -> NDArray[np.uint8]:
        frames, _ = self._games.reset(seed=np.asarray(seeds, np.int64))
        return frames[:, 0].copy()  # the emulator writes the next ones into the same memory

    def step(self, actions: NDArray[np.integer]) -> Moves:
        frames, rewards, terminals, timeouts, _ = self._games.step(np.asarray(actions, np.int32))
        return Moves(frames[:, 0].copy(), np.asarray(rewards, np.float64), terminals.copy(), timeouts & ~terminals)

    def close(self) -> None:
        self._games.close()


def atari(name: str) -> Atari:
    """A game by its name, as in `ATARI`; the emulator's other games have names of the same kind (`atari/Alien`).

    Args:
        name: The name.
    """
    try:
        from ale_py import ALEInterface, LoggerMode, roms
    except ImportError:
        raise UserError(f"{name} needs the Arcade Learning Environment: pip install 'dr3[atari]'.") from None
    if not re.fullmatch(r"atari/[A-Z][A-Za-z0-9]*", name) or _rom(name) not in roms.get_all_rom_ids():
        near = ", ".join(nearest(name, ATARI, most=5))
        raise UserError(f"There is no game {name!r}; {f'the nearest are {near}' if near else 'one is atari/Pong'}.")
    if name not in ATARI:
        ALEInterface.setLoggerMode(LoggerMode.Error)
        emulator = ALEInterface()
        emulator.loadROM(str(roms.get_rom_path(_rom(name))))
        return Atari(name, len(emulator.getMinimalActionSet()))
    return Atari(name, ATARI[name])


def _rom(name: str) -> str:
    """ale-py's own name: atari/MsPacman is ms_pacman."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removeprefix("atari/")).lower()
