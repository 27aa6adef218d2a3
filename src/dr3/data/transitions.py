"""The one table that everything logged is read into."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float32, Int32, Shaped
from numpy.typing import NDArray

from dr3.data.frames import CHUNK, Frames, Observations, used_frames
from dr3.data.mapped import gather, let_go, read_through
from dr3.envs.parts import Parts, Vectors
from dr3.errors import UserError
from dr3.seeds import check_seed

if TYPE_CHECKING:
    from dr3.data.tables.schema import Schema


@dataclass(frozen=True)
class DiscreteActions:
    """Actions are integers 0 … count - 1."""

    count: int

    def within(self, other: DiscreteActions | ContinuousActions) -> bool:
        """Whether every action is one of the other's too. Data need not hold every action that there is.

        Args:
            other: Another action space.
        """
        return isinstance(other, DiscreteActions) and self.count <= other.count


@dataclass(frozen=True)
class ContinuousActions:
    """Actions are vectors of `size` numbers, each between `low` and `high`."""

    size: int
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class Transitions:
    """N logged steps. Row i is (s, a, r, s') with what the log knows about its neighbours.

    A time-out cuts an episode short without ending it: it is in `timeouts`, never in `terminals`, and its next
    observation is the state the episode had reached. Rows of one episode are contiguous and in order.
    """

    observations: Observations  # (N, *shape)
    actions: Shaped[np.ndarray, " N *action"]  # integers (N,), or floats (N, size)
    rewards: Float32[np.ndarray, " N"]
    next_observations: Observations  # (N, *shape); where one is `Frames`, so is the other, on the same store
    terminals: Bool[np.ndarray, " N"]  # the environment ended here: bootstrapping stops
    timeouts: Bool[np.ndarray, " N"]  # the episode was cut here: bootstrapping goes on
    next_actions: Shaped[np.ndarray, " N *action"]  # the logged a', zero where unknown
    next_action_known: Bool[np.ndarray, " N"]  # False where the log holds no a'
    returns: Float32[np.ndarray, " N"]  # Monte-Carlo return from this row, discounted by `returns_discount`
    episodes: Int32[np.ndarray, " N"]  # which episode the row belongs to
    action_space: DiscreteActions | ContinuousActions
    returns_discount: float
    next_behavior: Float32[np.ndarray, "N A"] | None = None  # probabilities of the policy that logged, at s'
    masks: Bool[np.ndarray, "N A"] | None = None  # which actions were allowed at s; None: all, everywhere
    next_masks: Bool[np.ndarray, "N A"] | None = None  # the same at s', all true behind a terminal; None where masks is
    propensities: Float32[np.ndarray, " N"] | None = None  # probability (or density) of the logged action at s
    value_bounds: Float32[np.ndarray, "N 2"] | None = None  # least and most that Q can be; for methods that ask for it
    name: str = "data"  # for titles and folder names
    world: str | None = None  # the name of the world it came from, where a policy can be evaluated
    source: str | None = None  # what `dr3.load` was given to make it
    left_out: tuple[tuple[str, int], ...] = ()  # rows of the log that are not in the table: why, and how many
    filled: tuple[tuple[str, int], ...] = ()  # columns of which some values were missing, and in how many rows
    remarks: tuple[str, ...] = ()  # what the reader has to say of the log, in sentences
    schema: Schema | None = None  # of a table of decisions: what its columns mean
    entries: tuple[str, ...] | None = None  # what each number of an observation is, where the log names them
    parts: Parts | None = None  # of observations that are rows of bytes: pictures and vectors, and where they lie

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def vectors(self) -> Any:
        """The column of observations that are vectors, or of the vectors among their parts: (N, size)."""
        return self.observations if self.parts is None else Vectors(self.observations, self.parts)

    def rows(self, index: NDArray[np.integer] | slice) -> Transitions:
        """The table restricted to some rows; every column is cut alike, and no column is computed anew.

        Args:
            index: Row numbers, or a slice of them.
        """
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {name: column for name, column in found.items() if isinstance(column, np.ndarray)}
        if isinstance(index, slice):
            cut = {name: column[index] for name, column in plain.items()}
        else:
            cut = gather(plain, index)
        framed = {name: column.rows(index) for name, column in found.items() if isinstance(column, Frames)}
        return dataclasses.replace(self, **cut, **framed)

    def subset(self, fraction: float, *, seed: int) -> Transitions:
        """An i.i.d. sample of rows without replacement, in their logged order (appendix A.3: 20 % of a replay).

        Its name says which one it is: runs on data of one name are taken for runs on the same data.

        Args:
            fraction: The share of the rows, above 0 and at most 1.
            seed: Draws them.
        """
        if not 0 < fraction <= 1:
            raise UserError(f"The fraction of a subset must be above 0 and at most 1, not {fraction}.")
        check_seed(seed)
        count = max(1, round(fraction * len(self)))
        if count == len(self):
            return self
        chosen = np.random.default_rng(seed).choice(len(self), size=count, replace=False)
        name = f"{self.name}-iid-{100 * fraction:.10g}%-seed{seed}"
        # Of a plain file it can be said so that `dr3.load` finds the same rows again.
        plain = self.source is not None and Path(self.source).exists()
        source = f"{self.source}:fraction={float(fraction)!r}:seed={seed}" if plain else None
        return dataclasses.replace(self.rows(np.sort(chosen)), name=name, source=source)

    @property
    def nbytes(self) -> int:
        """What all columns take in memory, with each frame that is used once."""
        columns = [getattr(self, field.name) for field in dataclasses.fields(self)]
        total = sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
        if framed := [column for column in columns if isinstance(column, Frames)]:
            total += len(used_frames(*framed)) * framed[0].frame_bytes + sum(column.newest.nbytes for column in framed)
        return total

    def fingerprint(self) -> str:
        """SHA-256 over every column: two tables with one fingerprint train alike.

        Of `Frames` it is over each frame that is used, and where the rows find it. It is computed once: of a large
        replay it takes minutes.
        """
        return self._fingerprint

    def _stacks_of_one_store(self) -> dict[str, Frames]:
        """The columns whose frames are read once for the fingerprint, not once for each of them.

        Single frames are not among them, though they could be: finished runs are known by the fingerprints they have.
        """
        now, following = self.observations, self.next_observations
        if not (isinstance(now, Frames) and isinstance(following, Frames)):
            return {}
        shared = now.stored is following.stored and now.stack is not None and following.stack is not None
        return {"observations": now, "next_observations": following} if shared else {}

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()

        def add(name: str, value: NDArray[np.generic]) -> None:
            digest.update(f"{name}{value.dtype.str}{value.shape}".encode())
            with read_through(value):  # it may lie in a file that is larger than the memory
                for start in range(0, len(value), CHUNK):
                    digest.update(np.ascontiguousarray(value[start : start + CHUNK]).data)
                    let_go(value)

        def add_frames(columns: dict[str, Frames]) -> None:
            used = used_frames(*columns.values())
            for name, column in columns.items():
                add(f"{name} {column.bits} {column.stack}", np.searchsorted(used, column.newest))
            stored = next(iter(columns.values())).stored
            for start in range(0, len(used), CHUNK):
                add("frames", stored[used[start : start + CHUNK]])

        together = self._stacks_of_one_store()
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                add(field.name, value)
            elif isinstance(value, Frames) and field.name not in together:
                add_frames({field.name: value})
        if together:
            add_frames(together)
        digest.update(repr((self.action_space, self.returns_discount)).encode())
        if self.parts is not None:
            digest.update(self.parts.to_json().encode())
        return digest.hexdigest()


def monte_carlo_returns(
    rewards: NDArray[np.floating],
    episodes: NDArray[np.integer],
    discount: float,
    beyond: NDArray[np.floating] | None = None,
) -> NDArray[np.float32]:
    """Discounted sum of the rewards from each row to the last row of its episode: (N,).

    What came after a time-out was never logged, so these returns leave it out: they are what the log says, not values.

    Args:
        rewards: (N,).
        episodes: The episode of each row, (N,).
        discount: γ of the Monte-Carlo returns, where the log holds none.
        beyond: What came behind an episode's last row all the same, (N,): the return there, 0 at other rows.

    Raises:
        UserError: A return is beyond a float32.
    """
    returns = np.zeros(len(rewards), np.float32)
    following, above = 0.0, None
    # As Python's numbers, some thousand at a time: to take them one by one out of an array costs ten times as much.
    with read_through(rewards):
        for end in range(len(rewards), 0, -CHUNK):
            part = slice(max(0, end - CHUNK), end)
            paid, which = rewards[part].tolist(), episodes[part].tolist()
            after = [0.0] * len(paid) if beyond is None else beyond[part].tolist()
            found = []
            for reward, episode, left in zip(reversed(paid), reversed(which), reversed(after), strict=True):
                following = reward + discount * (following if episode == above else left)
                above = episode
                found.append(following)
            with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused as such
                returns[part] = found[::-1]
            let_go(rewards)
    if not np.isfinite(returns).all():
        row = int(np.argmin(np.isfinite(returns)))
        raise UserError(f"The sum of the rewards from row {row} on is beyond a float32; scale the rewards down.")
    return returns
