"""Fitted Q evaluation: what policies are worth, by critics that are fitted for them alone.

FQE (Le, Voloshin and Yue, 2019) repeats Q ← r + γ Q(s', π(s')) on the logged transitions until Q no longer moves. Each
repetition brings Q closer by a factor γ, so it takes some multiples of the horizon 1 / (1 - γ) of them: 100 target
copies leave 37 % of the way at γ = 0.99. An estimate that still moves has no value, and says why.

Networks begin at the logged returns, and their learning rate is halved with every horizon of copies after the first
few, so that what is left of the movement is not only noise. A network that learns slowly hardly moves either, so a
second look asks how far it still has to go: were all its values off by c, they would miss r + γ V(s') by
(1 - γ p) c on average, p being the share of steps that something follows. And where a policy goes that nobody logged,
the fit may settle on anything that rewards allow: a value far beyond the best logged episode is none.

The value is the expected discounted return from the log's first states: the mean over its episodes of Q(s_0, π(s_0)).
"""

from __future__ import annotations

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from dr3.cores import available_cores
from dr3.data.batch import Batch
from dr3.data.faults import episode_starts
from dr3.data.frames import CHUNK
from dr3.data.transitions import Transitions, monte_carlo_returns
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters, within
from dr3.instruments import return_bounds
from dr3.methods import Spec
from dr3.ope.acting import Acting
from dr3.ope.direct import StateTable, solve
from dr3.ope.network import Judges, Log, Rows, Scaling, State, advance, begin, look

Floats = NDArray[np.float64]

MOST_WIDE = 16_384  # a layer between two of them takes a gigabyte
MOST_STARTS = 1000  # first states over which values are averaged


@hyperparameters
@dataclass(frozen=True)
class FQE:
    """How policies are evaluated. Small tables are solved directly, others by an ensemble of networks."""

    networks: int = 5
    """Networks of the ensemble, each with weights and a bootstrap of the episodes of its own."""

    bootstraps: int = 100
    """Bootstraps of the episodes where a table is solved directly."""

    hidden: tuple[int, ...] = (64, 64)
    """Widths of the dense layers."""

    learning_rate: float = 1e-3
    """Adam's step size."""

    batch_size: int = 128
    """Rows of each update."""

    updates_per_copy: int = 20
    """Updates between two copies of the target network."""

    least_horizons: int = 4
    """Target copies at least, in horizons 1 / (1 - γ)."""

    most_horizons: int = 10
    """Target copies at most, in horizons: what still moves then has not converged."""

    tolerance: float = 0.02
    """Converged: from one horizon of target copies to the next the value moved by no more than this share of itself
    (or of the spread of logged returns, where that is larger), twice in a row."""

    shortfall: float = 0.05
    """And by the mean Bellman error it is no further than this share from where it would stay."""

    reach: float = 2.0
    """And the log bears it out: it is no further from the mean of logged episodes than this many times their best (or
    worst), or than that mean is from 0."""

    seed: int = 0
    """Everything random follows from it."""

    def check(self) -> None:
        for name in ("networks", "bootstraps"):
            within(name, getattr(self, name), 2)
        for name in ("batch_size", "updates_per_copy", "least_horizons", "most_horizons"):
            within(name, getattr(self, name), 1)
        for name in ("tolerance", "shortfall", "reach", "learning_rate", "seed"):
            within(name, getattr(self, name), 0)
        for width in self.hidden:
            within("every width in hidden", width, 1, MOST_WIDE)

    def __call__(self, acting: Acting, data: Transitions, discount: float) -> Fit:
        """Evaluate every policy of `acting` on `data`."""
        if len(data) == 0 or len(acting) == 0:
            raise UserError("There is nothing to evaluate: no rows, or no policy.")
        table = StateTable.of(data) if discount < 1 else None
        if table is not None:
            return self._direct(table, acting, data, discount)
        return self._by_networks(acting, data, discount)

    # --- A table that is small enough to be solved ---

    def _direct(self, table: StateTable, acting: Acting, data: Transitions, discount: float) -> Fit:
        starts, lengths = _episodes(data)
        draws = np.random.default_rng(self.seed).multinomial(
            len(starts), np.full(len(starts), 1 / len(starts)), self.bootstraps
        )
        policies = [table.policy(acting, number) for number in range(len(acting))]
        firsts = table.states[starts]
        bootstrapped = np.empty((self.bootstraps, len(acting)))
        for draw, values in zip(draws, bootstrapped, strict=True):
            weights = np.repeat(draw, lengths).astype(np.float64)
            if acting.logged:  # another log of the same policy would know other frequencies
                policies[-1] = table.frequencies(data, weights)
            for number, policy in enumerate(policies):
                v, _ = solve(table, data, policy, discount, weights)
                values[number] = draw @ v[firsts] / len(starts)
        if acting.logged:
            policies[-1] = table.frequencies(data)
        plain = [solve(table, data, policy, discount, np.ones(len(data))) for policy in policies]
        values = np.array([v[firsts].mean() for v, _ in plain])
        q = np.stack([of[table.states, data.actions] for _, of in plain], axis=1)
        v, v_next = (np.stack([of[rows] for of, _ in plain], axis=1) for rows in (table.states, table.following))
        said = f"solved directly over {table.count} states"
        return Fit(values, bootstrapped, (None,) * len(acting), said, len(starts), q, v, v_next)

    # --- Networks ---

    def _by_networks(self, acting: Acting, data: Transitions, discount: float) -> Fit:
        starts, lengths = _episodes(data)
        horizon = int(lengths.max()) if discount == 1 else math.ceil(1 / (1 - discount) - 1e-9)
        returns = monte_carlo_returns(data.rewards, data.episodes, discount)
        log = _log(acting, data, returns, discount)
        rng = np.random.default_rng(self.seed)
        drawn = [_bootstrap(rng, starts, lengths) for _ in range(self.networks)]
        most = max(len(rows) for rows, _ in drawn)
        rows = [Rows(jnp.asarray(np.resize(one, most)), jnp.int32(len(one)), jnp.asarray(s)) for one, s in drawn]
        starting = [jnp.asarray(acting.here[s]) for _, s in drawn]
        keys = jax.random.split(jax.random.key(self.seed), self.networks)
        # Of plain vectors `_log` takes off mean and deviation; of those among pictures the networks do.
        spec = Spec.of(data, standardise=data.parts is not None and data.parts.numbers > 0)
        states = [begin(spec, len(acting), self.hidden, self.learning_rate, key) for key in keys]
        spread, scale = float(returns[starts].std()), float(log.scaling.value)
        found: list[Floats] = []  # the values of every horizon: (networks, K)
        moved = np.full((2, len(acting)), np.inf)

        def stage(number: int, done: int) -> tuple[State, Floats]:
            rate = self.learning_rate * 0.5 ** max(0, done - self.least_horizons)
            state, values = advance(
                states[number],
                log,
                rows[number],
                starting[number],
                jnp.float32(rate),
                jnp.int32(self.updates_per_copy),
                keys[number],
                copies=horizon,
                batch_size=self.batch_size,
                warm=done == 0,
            )
            return state, np.asarray(values, np.float64) * scale

        with ThreadPoolExecutor(min(self.networks, available_cores())) as pool:
            for done in range(self.most_horizons + 1):
                states, values = map(list, zip(*pool.map(partial(stage, done=done), range(self.networks)), strict=True))
                found.append(np.stack(values))
                if done > 1:
                    now = found[-1].mean(axis=0)
                    size = np.maximum(np.maximum(np.abs(now), spread), 1e-9)
                    moved = np.stack([moved[1], np.abs(now - found[-2].mean(axis=0)) / size])
                settled = (moved <= self.tolerance).all(axis=0)
                if done >= self.least_horizons and settled.all():
                    break
        copies = done * horizon
        counts = np.stack([np.bincount(rows, minlength=len(data)) for rows, _ in drawn])
        looked, missing = _looked([state.judges for state in states], log, acting, data, discount, counts)
        short = np.abs(missing) / np.maximum(np.maximum(np.abs(found[-1].mean(axis=0)), spread), 1e-9)
        worth = completed_returns(data, discount)
        values = found[-1].mean(axis=0)
        reasons = tuple(
            self._reason(by, far, copies) or self._beyond(value, worth)
            for by, far, value in zip(moved.T, short, values, strict=True)
        )
        values = np.where([why is None for why in reasons], found[-1], np.nan)
        said = f"{self.networks} networks, {copies:,} target copies ({done} horizons)"
        return Fit(values.mean(axis=0), values, reasons, said, len(starts), *looked)

    def _reason(self, moved: Floats, short: float, copies: int) -> str | None:
        if not (moved <= self.tolerance).all():
            share = f"{moved.max():.1%}" if np.isfinite(moved).all() else "an unknown share"
            return f"it has not converged: its value still moved by {share} over the last of {copies:,} target copies"
        if not short <= self.shortfall:
            return f"it has not converged: by its Bellman errors it is {short:.1%} away after {copies:,} target copies"
        return None

    def _beyond(self, value: float, worth: Floats) -> str | None:
        """Why the log does not bear a value out; None if it does."""
        mean, worst, best = worth.mean(), worth.min(), worth.max()
        high = mean + max(self.reach * (best - mean), abs(mean))
        low = mean - max(self.reach * (mean - worst), abs(mean))
        if low - 1e-6 <= value <= high + 1e-6:
            return None
        return (
            f"{value:.4g} is beyond what the log shows, whose episodes are worth {worst:.4g} to {best:.4g}, "
            f"{mean:.4g} on average"
        )


def completed_returns(data: Transitions, discount: float) -> Floats:
    """What each logged episode is worth: its return, and where it was cut as though its mean reward went on: (E,).

    Args:
        data: The table.
        discount: γ. At 1 nothing is added where an episode was cut.
    """
    starts, lengths = _episodes(data)
    returns = monte_carlo_returns(data.rewards, data.episodes, discount)[starts].astype(np.float64)
    if discount == 1:
        return returns
    rate = np.add.reduceat(data.rewards.astype(np.float64), starts) / lengths
    cut = ~data.terminals[starts + lengths - 1]
    return returns + cut * discount**lengths * rate / (1 - discount)


def _looked(
    judges: list[Judges], log: Log, acting: Acting, data: Transitions, discount: float, counts: NDArray[np.intp]
) -> tuple[list[Floats], Floats]:
    """Q(s, a), V(s) and V(s') of all rows, (N, K) each, means over the networks; and how far off values are, (K,).

    Each network is held against the rows of its own bootstrap, which hold each row `counts` (networks, N) times.
    """
    found: list[list[NDArray[np.float32]]] = [[], [], []]
    goes_on, errors = ~data.terminals, np.zeros((len(judges), len(acting)))
    for start in range(0, len(data), CHUNK):
        here = slice(start, min(start + CHUNK, len(data)))
        numbers = jnp.arange(here.start, here.stop)
        part = log.table.take(numbers), jnp.asarray(acting.here[here]), log.following[numbers]
        each = [[np.asarray(side) for side in look(one, log, *part)] for one in judges]
        for place, column in enumerate(found):
            column.append(np.mean([of[place] for of in each], axis=0))
        for number, (q, _, v_next) in enumerate(each):
            target = data.rewards[here, None] + discount * goes_on[here, None] * v_next
            errors[number] += counts[number, here] @ (target - q).astype(np.float64)
    lost = np.sum(counts * (1 - discount * goes_on), axis=1)  # Σ 1 - γ(1 - d); 0 only where γ = 1 and nothing ends
    missing = np.divide(errors, lost[:, None], out=np.full_like(errors, np.inf), where=lost[:, None] > 0)
    return [np.concatenate(column).astype(np.float64) for column in found], missing.mean(axis=0)


def _log(acting: Acting, data: Transitions, returns: NDArray[np.float32], discount: float) -> Log:
    low, high = -math.inf, math.inf  # without a longest episode nothing bounds a return at γ = 1
    if discount < 1:
        low, high = return_bounds(data.rewards, discount, ends=bool(data.terminals.any()))
    shape = data.observations.shape[1:]
    mean, spread = np.zeros(shape, np.float32), np.ones(shape, np.float32)
    if data.observations.dtype == np.float32 and len(shape) == 1:
        seen = np.asarray(data.observations)
        mean, spread = seen.mean(axis=0), np.maximum(seen.std(axis=0), 1e-6)
    size = float(np.abs(returns).max()) or 1.0
    scaling = Scaling(jnp.asarray(mean), jnp.asarray(spread), jnp.float32(size))
    table = Batch.of(dataclasses.replace(data, returns=returns))
    limits = (jnp.float32(limit / size) for limit in (low, high))
    return Log(table, jnp.asarray(acting.following), scaling, jnp.float32(discount), *limits)


def _bootstrap(
    rng: np.random.Generator, starts: NDArray[np.intp], lengths: NDArray[np.intp]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Row numbers of episodes drawn with replacement, and the first rows of some of them."""
    chosen = rng.integers(len(starts), size=len(starts))
    rows = np.concatenate([np.arange(starts[e], starts[e] + lengths[e]) for e in chosen])
    return rows.astype(np.int32), np.resize(starts[chosen], min(len(starts), MOST_STARTS)).astype(np.int32)


@dataclass(frozen=True)
class Fit:
    """What fitted Q evaluation found of K policies."""

    values: Floats  # (K,) NaN where it did not converge
    bootstrapped: Floats  # (B, K) the same of each bootstrap of the episodes; policies of one row share their episodes
    reasons: tuple[str | None, ...]  # (K,) why there is no value
    how: str
    episodes: int
    q: Floats  # (N, K) Q(s, a)
    v: Floats  # (N, K) V(s) = Q(s, π(s))
    v_next: Floats  # (N, K) V(s')


def _episodes(data: Transitions) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each episode, and how many rows it has."""
    starts = episode_starts(data)
    return starts, np.diff(np.append(starts, len(data)))
