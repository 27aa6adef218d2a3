"""A DQN that learns by acting in an emulator: the online agent whose replay the paper's Atari experiments train on.

Acting is on the host, updates are compiled. The log is the replay buffer, and lies in memory-mapped files: each frame
once, with blank frames before an episode, so that a stack of frames never needs an exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from dr3.collect.loop import OnlineAgent, check_schedule, collect, online_batch
from dr3.data import DiscreteActions, Frames, Transitions, assemble, write_dqn_replay, write_npz
from dr3.data.batch import Batch
from dr3.data.subsets import PARTS
from dr3.envs import EmulatedWorld, atari
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods import DQN, Spec
from dr3.regularizers import Regularizer

RECENT = 20  # episodes whose mean return is shown
# Dopamine's DQN: a target that is copied every 8,000 steps is one of 2,000 updates.
ATARI_DQN = DQN(
    learning_rate=6.25e-5, adam_epsilon=1.5e-4, batch_size=32, hidden=(512,), error="huber", target_period=2_000
)


@hyperparameters
@dataclass(frozen=True)
class AtariSchedule:
    """How the agent explores, and how often it learns: Dopamine's numbers."""

    steps_per_update: int = 4
    """Steps for each gradient step."""

    buffer: int = 1_000_000
    """Updates draw their rows from so many of the newest steps."""

    warmup: int = 20_000
    """Steps before the first update."""

    epsilon: float = 0.01
    """Probability of a random action in the end."""

    epsilon_steps: float = 250_000.0
    """Steps over which that probability falls, in a line, from 1, once the warm-up is over."""

    def check(self) -> None:
        check_schedule(self, "steps_per_update", "buffer", "warmup", probability="epsilon")

    def epsilon_at(self, step: int) -> float:
        share = np.clip((step - self.warmup) / max(self.epsilon_steps, 1.0), 0.0, 1.0)
        return float(1 + share * (self.epsilon - 1))


class EmulatedState(NamedTuple):
    """Where the agent stands: all that is not in the log."""

    learner: Any
    step: Any  # () int64: steps made
    row: Any  # () int64: of the frame that the next action is chosen from
    episode: Any  # () int64: episodes begun
    began: Any  # () int64: the step at which this one did
    score: Any  # () float64: raw rewards of this episode so far


class FrameLog:
    """What happened, in files under `folder`; a step's own columns are short, frames are by row.

    Before each episode come stack - 1 blank rows, and behind a time-out one with the frame that had been reached, so
    the row behind a step's is that of its s'.
    """

    def __init__(self, folder: Path, world: EmulatedWorld, steps: int) -> None:
        def column(name: str, dtype: Any, shape: tuple[int, ...]) -> Any:
            return np.memmap(folder / name, dtype, "r+" if (folder / name).exists() else "w+", shape=shape)

        self.stack = world.stack
        # Room for episodes of a single step; a file takes only what was written to it.
        self.frames = column("frames", np.uint8, (steps * (world.stack + 1) + world.stack, *world.frame_shape))
        self.rows = column("rows", np.int64, (steps,))
        self.actions = column("actions", np.uint8, (steps,))
        self.rewards = column("rewards", np.float32, (steps,))  # raw
        self.terminals = column("terminals", np.bool_, (steps,))
        self.timeouts = column("timeouts", np.bool_, (steps,))
        self.scores = column("scores", np.float32, (steps,))  # of the episode that ended here

    def flush(self) -> None:
        for column in vars(self).values():
            if isinstance(column, np.memmap):
                column.flush()

    def observations(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        return Frames(self.frames, rows, stack=self.stack)[:]

    def draw(self, newest: int, made: int, batch_size: int, random: np.random.Generator) -> Batch:
        """Rows of the `newest` of all steps `made`, with replacement; rewards are clipped to [-1, 1]."""
        chosen = made - 1 - random.integers(newest, size=batch_size)
        rows = self.rows[chosen]
        return online_batch(
            jnp.asarray(self.observations(rows)),
            jnp.asarray(self.actions[chosen], jnp.int32),
            jnp.asarray(np.clip(self.rewards[chosen], -1, 1)),
            jnp.asarray(self.observations(rows + 1)),
            jnp.asarray(self.terminals[chosen]),
        )


def collect_emulated_dqn(
    env: str | EmulatedWorld,
    *,
    steps: int,
    out: str | Path,
    seed: int = 0,
    method: DQN = ATARI_DQN,
    regularizer: Regularizer | None = None,
    schedule: AtariSchedule = AtariSchedule(),  # noqa: B008 (frozen)
    progress: bool = True,
) -> Transitions:
    """Train a DQN online for `steps` steps of one game and write its whole replay to `out`.

    `out` is a `.npz` file, or else a folder of DQN-replay files, fifty of them (a few less of a short log). Rewards are
    clipped to [-1, 1], as in the public replays. The log lies beside `out` while it runs. Ctrl-C or SIGTERM saves and
    stops, the same call goes on from there, and a run that was stopped or killed ends with the same data as one that
    was not.

    Args:
        env: The name of the game, such as atari/Pong.
        steps: How many steps to take in it.
        out: The file or folder to write.
        seed: Everything random follows from it.
        method: The agent's hyperparameters.
        regularizer: A term that is added to the agent's loss, such as `dr3.DR3(0.01)`; None adds nothing.
        schedule: How it explores and when it learns.
        progress: Show how far it is, on stderr.
    """
    world = atari(env) if isinstance(env, str) else env
    learning: Any = {"method": method, "regularizer": regularizer, "schedule": schedule}
    return collect(EmulatedAgent(world, steps=steps, out=out, seed=seed, **learning), progress=progress)


class EmulatedAgent(OnlineAgent):
    """Acts, logs and learns. All chance is a function of (seed, step) and of (seed, episode)."""

    state: EmulatedState

    def __init__(self, world: EmulatedWorld, *, method: DQN, **settings: Any) -> None:
        super().__init__("dqn", world, method=method, endings=(".npz", ""), **settings)
        self.period, self.key = int(method.target_period), jax.random.key(self.number)
        self.games = world.open(1)

    def start(self) -> EmulatedState:
        spec = Spec((*self.world.frame_shape, self.world.stack), DiscreteActions(self.world.actions))
        learner = jax.jit(lambda key: self.method.init(spec, key))(jax.random.fold_in(self.key, 0))
        return EmulatedState(jax.tree.map(jnp.array, learner), *np.zeros(4, np.int64), np.float64(0))

    def made(self) -> int:
        return int(self.state.step)

    def resume(self) -> int:
        """What the log holds beyond the newest state is written over, with the same."""
        self.log = FrameLog(self.folder, self.world, self.total)
        if made := super().resume():
            self._catch_up(self.state)
        else:
            self.state = self._begin(self.state, 0)
        return made

    def advance(self) -> int:
        self.state = self.step(self.state)
        return self.made()

    def save(self) -> None:
        self.log.flush()
        super().save()

    def note(self) -> str:
        made = self.made()
        ended = np.flatnonzero(self.log.terminals[:made] | self.log.timeouts[:made])[-RECENT:]
        if not len(ended):
            return ""
        return f", mean return of the last {len(ended)} episodes {self.log.scores[ended].mean():.2f}"

    def write(self) -> Transitions:
        table = to_transitions(self.log, self.world, discount=self.discount, seed=self.seed)
        if self.path.suffix:
            write_npz(self.path, table)
        else:
            _write_folder(self.folder / "files", self.log, table)
            (self.folder / "files").rename(self.path)
        return table

    def close(self) -> None:
        self.games.close()

    def _begin(self, place: EmulatedState, row: int) -> EmulatedState:
        """A new episode whose first frame goes to `row` + the blank ones before it."""
        row = row + self.world.stack - 1
        self.log.frames[row - self.world.stack + 1 : row] = 0
        self.log.frames[row] = self._reset(int(place.episode))
        return place._replace(
            row=np.int64(row), episode=place.episode + 1, began=np.int64(place.step), score=np.float64(0)
        )

    def _catch_up(self, place: EmulatedState) -> None:
        """Bring the emulator to where it was by playing the episode that goes on from its start."""
        frame = self._reset(int(place.episode) - 1)
        for step in range(int(place.began), int(place.step)):
            frame = self.games.step(self.log.actions[step : step + 1]).frames[0]
        if not np.array_equal(frame, self.log.frames[int(place.row)]):
            raise UserError(
                f"{self.world.name} does not play as it did when this collection began (is it another version of the "
                "emulator?); remove the unfinished folder and start again."
            )

    def step(self, place: EmulatedState) -> EmulatedState:
        """One step of the agent, and an update if one is due."""
        step, row, log = int(place.step), int(place.row), self.log
        random = np.random.default_rng((self.seed, 1, step))
        if random.random() < self.schedule.epsilon_at(step):
            action = int(random.integers(self.world.actions))
        else:
            action = int(_act(self.method, self.method.model(place.learner), log.observations(np.array([row])))[0])
        moves = self.games.step(np.array([action]))
        ended, cut, reward = bool(moves.terminals[0]), bool(moves.timeouts[0]), float(moves.rewards[0])
        score = place.score + reward
        log.rows[step], log.actions[step], log.rewards[step] = row, action, reward
        log.terminals[step], log.timeouts[step] = ended, cut
        log.scores[step] = score if ended or cut else np.nan
        # Also behind a terminal: what stands there is masked, but it must not depend on what a kill left behind.
        log.frames[row + 1] = 0 if ended else moves.frames[0]
        place = place._replace(step=place.step + 1, row=np.int64(row + 1), score=score)
        if ended or cut:
            place = self._begin(place, row + 2)
        return place._replace(learner=self._learn(place.learner, step + 1))

    def _learn(self, learner: Any, made: int) -> Any:
        schedule = self.schedule
        if made < schedule.warmup or made % schedule.steps_per_update:
            return learner
        number = (made - schedule.warmup) // schedule.steps_per_update + 1  # of this update, from 1
        random = np.random.default_rng((self.seed, 2, made))
        batch = self.log.draw(min(made, schedule.buffer), made, self.batch_size, random)
        learner = _update(self.method, self.regularizer, learner, batch, jax.random.fold_in(self.key, made))
        return _synchronise(self.method, learner) if number % self.period == 0 else learner

    def _reset(self, episode: int) -> NDArray[np.uint8]:
        seed = np.random.SeedSequence((self.seed, 0, episode)).generate_state(1)[0] % 2**31
        return self.games.reset(np.array([seed]))[0]


@jax.jit
def _act(method: DQN, critic: Any, observations: Any) -> Array:
    return method.act(critic, observations)


@partial(jax.jit, donate_argnames="learner")
def _update(method: DQN, regularizer: Regularizer | None, learner: Any, batch: Batch, key: Array) -> Any:
    return method.update(learner, batch, key, regularizer)[0]


def _synchronise(method: DQN, learner: Any) -> Any:
    # Copies: an update takes over the arrays it is given, and critic and target would be the same ones.
    return jax.tree.map(jnp.array, method.synchronise(learner))


def to_transitions(log: FrameLog, world: EmulatedWorld, *, discount: float, seed: int) -> Transitions:
    """The log as a table, in the order of time; frames stay where they are. An episode that goes on is cut."""
    rows, terminals, timeouts = np.array(log.rows), np.array(log.terminals), np.array(log.timeouts)
    timeouts[-1] |= not terminals[-1]
    frames: Any = log.frames
    now, following = (Frames(frames, at.astype(np.int32), stack=world.stack) for at in (rows, rows + ~terminals))
    columns = {
        "observations": now,
        "actions": log.actions.astype(np.int32),
        "rewards": np.clip(log.rewards, -1, 1),
        "next_observations": following,
        "terminals": terminals,
        "timeouts": timeouts,
        "num_actions": world.actions,
        "world": world.name,
    }
    return assemble(columns, source=world.name, name=f"{world.name}-dqn-{seed}", discount=discount)


def _write_folder(path: Path, log: FrameLog, table: Transitions) -> None:
    """As Dopamine's agents wrote it: there, an episode that the clock had cut ended in a terminal like any other."""
    ends = table.terminals | np.append(table.timeouts[:-1], False)
    padded = len(table) + (log.stack - 1) * int(1 + ends[:-1].sum())
    write_dqn_replay(
        path,
        frames=Frames(log.frames, np.array(log.rows)),
        actions=log.actions,
        rewards=table.rewards,
        terminals=ends,
        rows_per_file=-(-padded // PARTS),
        stack=log.stack,
    )
