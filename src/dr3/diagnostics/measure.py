"""Every instrument, for one critic and over all checkpoints of a run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dr3 import instruments
from dr3.backup import Backup
from dr3.data import load_recorded
from dr3.data.batch import Batch
from dr3.data.source import files_of
from dr3.data.subsets import split_episodes
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.diagnostics.checks import SPECTRUM_ROWS
from dr3.errors import UserError
from dr3.instruments import Grams, ReturnBounds, return_bounds, stability
from dr3.instruments.gradients import gradient_products
from dr3.methods import Method, Spec, backup_of
from dr3.methods.units import scaled_rewards
from dr3.runs import Runs
from dr3.training.metrics import noise_of, probe_of

# Directions of JJᵀ below this share of the largest are float32 rounding: of features, which are products' factors, and
# of gradient products, which are themselves computed in float32.
_FEATURES_TOLERANCE, _PRODUCTS_TOLERANCE = 1e-10, 1e-5

# Both with the online critic as its own target network, which is not the `td/error` of training.
ONLINE_ERROR, HELD_OUT_ERROR = "td/error_online", "td/held_out_error"

RANKS = {
    "rank/srank": instruments.srank,
    "rank/pca": instruments.pca_rank,
    "rank/effective": instruments.effective_rank,
    "rank/stable": instruments.stable_rank,
    "rank/threshold": instruments.threshold_rank,
    "rank/numerical": instruments.numerical_rank,
}


@dataclass(frozen=True)
class Measurements:
    """Every instrument by name at some steps of some members."""

    steps: NDArray[np.int64]  # (T,)
    columns: dict[str, NDArray[np.float64]]  # (members, T); a name that does not apply is left out
    rows: int  # how many transitions it was measured on

    def of(self, member: int) -> dict[str, NDArray[np.float64]]:
        """The columns of one member: (T,)."""
        return {name: values[member] for name, values in self.columns.items()}


def bounds_of(data: Transitions, discount: float, horizon: int | None = None) -> ReturnBounds:
    """The returns that the data's rewards allow. Where nothing was ever logged to end, nothing ends."""
    return return_bounds(data.rewards, discount, ends=bool(data.terminals.any()), horizon=horizon)


def measure_backup(backup: Backup, bounds: ReturnBounds | None) -> dict[str, float]:
    """Every instrument that needs no gradients. Without `bounds` nothing is said of values: there are none."""
    arrays: Any = jax.tree.map(lambda column: np.asarray(column, np.float64), backup)
    with np.errstate(over="ignore", invalid="ignore"):
        # An ensemble has its axis first: each critic is measured alone, and the numbers are averaged.
        sides = (side.reshape(-1, *side.shape[-2:]) for side in (arrays.phi, arrays.phi_next))
        each = [_measure_features(phi, phi_next, arrays) for phi, phi_next in zip(*sides, strict=True)]
        found = {name: float(np.mean([of[name] for of in each])) for name in each[0]}
        if bounds is not None:
            mean = arrays.values.reshape(-1, len(arrays.targets)).mean(axis=0)  # an ensemble's value
            q = instruments.value_statistics(mean, bounds)
            found |= {f"q/{name}": value for name, value in q._asdict().items()}
            found |= {"q/lowest_return": bounds.low, "q/largest_return": bounds.high}
            found[ONLINE_ERROR] = instruments.td_error(arrays.values, arrays.targets)
    return found


def _measure_features(phi: NDArray[np.float64], phi_next: NDArray[np.float64], backup: Any) -> dict[str, float]:
    """Of the features (n, d) of one critic on both sides."""
    sides = (phi, phi_next, backup.bootstraps)
    return {
        "features/dot_product": float(instruments.dot_product(*sides)),
        "features/cosine": float(instruments.cosine(*sides)),
        "features/norm": float(instruments.norm(phi).mean()),
        "features/norm_next": float(instruments.norm(phi_next).mean()),
        "features/co_adaptation": instruments.co_adaptation_ratio(phi, phi_next, backup.discounts),
        "features/dead": instruments.dead_features(phi),
        "features/dormant": instruments.dormant_features(phi),
        **{name: float(rank(phi)) for name, rank in RANKS.items()},
        **_last_layer_spectrum(phi, phi_next, backup),
    }


# The matrices are small: BLAS threads would only wait for each other, most of all beside a run that is still training.
@threadpool_limits.wrap(limits=1, user_api="blas")
def measure(
    runs: Runs,
    data: Transitions | None = None,
    *,
    held_out: Transitions | None = None,
    steps: Sequence[int] | None = None,
    gradients: bool = True,
) -> Measurements:
    """Measure every member at every checkpoint, or at those of `steps`.

    Args:
        runs: The run.
        data: What it was trained on; None loads it from where it was.
        held_out: Episodes that were kept out of training; they give `td/held_out_error`.
        steps: Which checkpoints; None is all.
        gradients: Measure the spectrum over all parameters too, the one instrument that takes longer than a moment.
    """
    steps = list(steps) if steps is not None else runs.checkpoints
    if not steps:
        raise UserError(f"{runs.path} has no complete checkpoint yet, so there is nothing to measure.")
    unseen = {} if held_out is None else {HELD_OUT_ERROR: held_out_errors(runs, held_out, steps)}
    data = training_data(runs, data)
    # What each method learned from: it may scale rewards, and so what is possible. Once: TD-learning clones a policy.
    learned_from = _prepared(runs, data)
    found: list[list[dict[str, float]]] = [[] for _ in runs.members]
    for step in steps:
        for number, critic in enumerate(runs.critics(step)):
            method = runs.members[number].method
            table, probe = learned_from[repr(method)]
            backup = _look(runs, number, critic, step, probe)
            row = measure_backup(backup, bounds_of(table, method.discount))
            if gradients:
                row |= _spectrum("all", parameter_grams(method, critic, probe, backup), _PRODUCTS_TOLERANCE)
            found[number].append(row)
    columns = {name: np.array([[row[name] for row in rows] for rows in found], np.float64) for name in found[0][0]}
    return Measurements(np.array(steps, np.int64), columns | unseen, min(len(data), len(probe_of(data))))


def held_out_errors(runs: Runs, held_out: Transitions, steps: Sequence[int]) -> NDArray[np.float64]:
    """The TD error of every member at some checkpoints, on episodes that it was not trained on: (members, T)."""
    unseen = _prepared(runs, _unseen(runs, held_out))

    def error(number: int, critic: Any, step: int) -> float:
        backup = _look(runs, number, critic, step, unseen[repr(runs.members[number].method)][1])
        return instruments.td_error(backup.values, backup.targets)

    errors = [[error(number, critic, step) for number, critic in enumerate(runs.critics(step))] for step in steps]
    return np.array(errors, np.float64).T


def _prepared(runs: Runs, data: Transitions) -> dict[str, tuple[Transitions, Batch]]:
    """What each method of a run makes of data, and the rows of it that critics are measured on."""
    methods = {repr(member.method): member.method for member in runs.members}
    tables = {word: method.prepare(data) for word, method in methods.items()}
    return {word: (table, Batch.of(probe_of(table)).all_rows()) for word, table in tables.items()}


def _look(runs: Runs, number: int, critic: Any, step: int, probe: Batch) -> Backup:
    member = runs.members[number]
    return backup_of(member.method, critic, runs.spec, probe, noise_of(member.seed, step))


def _unseen(runs: Runs, held_out: Transitions) -> Transitions:
    """A table that fits the run's critics, refused where they have seen it."""
    fitting = _fitting(runs, held_out)
    if held_out.fingerprint() == runs.config.data.fingerprint:
        raise UserError(f"The held-out data {held_out.name} are what {runs.path} was trained on; name other episodes.")
    return fitting


def _fitting(runs: Runs, held_out: Transitions) -> Transitions:
    """The table with the actions that the run's critics know; refused where they do not fit it."""
    theirs, ours = Spec.of(held_out), runs.spec
    if theirs.observation_shape != ours.observation_shape:
        raise UserError(
            f"The data {held_out.name} have observations of shape {theirs.observation_shape}, and {runs.path} "
            f"has {ours.observation_shape}."
        )
    actions, known = theirs.action_space, ours.action_space
    if not (actions.within(known) if isinstance(actions, DiscreteActions) else actions == known):
        raise UserError(f"The data {held_out.name} have the actions {actions}, and {runs.path} has {known}.")
    if held_out.fingerprint() == runs.config.data.fingerprint:
        raise UserError(f"The held-out data {held_out.name} are what {runs.path} was trained on; name other episodes.")
    # Actions that the held-out data do not know of: of no probability there, and not allowed.
    columns = {name: getattr(held_out, name) for name in ("next_behavior", "masks", "next_masks")}
    wider = {
        name: np.pad(values, ((0, 0), (0, known.count - values.shape[1])))
        for name, values in columns.items()
        if values is not None and isinstance(known, DiscreteActions)
    }
    return dataclasses.replace(held_out, action_space=known, **wider)


def training_data(runs: Runs, data: Transitions | None = None) -> Transitions:
    """What the run was trained on: as given, or loaded again from its source; either way checked by its fingerprint."""
    if not isinstance(data, Transitions | None):
        raise UserError(f"data must be a table, as dr3.load makes one, not a {type(data).__name__}.")
    kept = runs.config.data.kept
    if data is not None and kept is not None and data.fingerprint() == kept:
        return data
    whole, held_out = _whole_data(runs, data), runs.config.data.held_out
    return whole if held_out is None else split_episodes(whole, held_out)[0]


def held_out_data(runs: Runs, data: Transitions | None = None) -> Transitions | None:
    """The episodes that the run kept aside when it was trained, None where there are none; `data` is the whole log."""
    held_out = runs.config.data.held_out
    return None if held_out is None else split_episodes(_whole_data(runs, data), held_out)[1]


def _whole_data(runs: Runs, data: Transitions | None) -> Transitions:
    stored = runs.config.data
    if data is None:
        if stored.source is None:
            raise UserError(f"{runs.path} does not say where its data came from; give the data it was trained on.")
        at = stored.source if stored.found_at is None else stored.found_at
        if not all(Path(file).exists() for file in files_of(at)):  # it was moved together with the folder we are in
            at = stored.source
        try:
            data = load_recorded(at, discount=stored.discount)
        except UserError as error:
            moved = f"give the data of {runs.path} where they are now (--data)"
            raise UserError(f"{str(error).removesuffix('.')}; {moved}.") from None
    if data.fingerprint() != stored.fingerprint:
        raise UserError(
            f"{data.name} ({len(data)} rows) is not what {runs.path} was trained on ({stored.name}, "
            f"{stored.rows} rows): their fingerprints differ; give the same table, cut in the same way."
        )
    return data


def judged_by(runs: Runs, data: Transitions | None = None) -> Transitions:
    """The log that a run's policies are judged by: any that fits them, by default the episodes that it held out, else
    what it was trained on.
    """
    stored = runs.config.data
    if data is not None and data.fingerprint() != stored.fingerprint:
        return _fitting(runs, data)
    held_out = held_out_data(runs, data)
    return training_data(runs, data) if held_out is None else held_out


def judged_rewards(method: Method, data: Transitions) -> Transitions:
    """The table with the rewards that a method learned from: some scale them, and values are in their units."""
    return scaled_rewards(data, getattr(method, "reward_scale", 1.0), getattr(method, "reward_shift", 0.0))


def parameter_grams(method: Method, critic: Any, batch: Batch, backup: Backup) -> Grams:
    """Of the gradients with respect to all parameters, on a few rows of a Backup."""
    rows = _few(len(backup.discounts))
    here = (batch.observations[rows], backup.actions[rows])
    there = (batch.next_observations[rows], backup.next_actions[rows])
    same, cross = _products(method, critic, here, there)
    return Grams(*(np.asarray(array, np.float64) for array in (same, cross, backup.discounts[rows])))


@jax.jit
def _products(method: Method, critic: Any, here: Any, there: Any) -> tuple[jax.Array, jax.Array]:
    return gradient_products(lambda critic, inputs: method.values(critic, *inputs), critic, here, there)


def _last_layer_spectrum(phi: NDArray[np.float64], phi_next: NDArray[np.float64], backup: Any) -> dict[str, float]:
    rows = _few(len(phi))
    tie = {"actions": backup.actions[rows], "next_actions": backup.next_actions[rows]} if backup.rows_per_action else {}
    grams = instruments.last_layer_grams(phi[rows], phi_next[rows], backup.discounts[rows], **tie)
    return _spectrum("last_layer", grams, _FEATURES_TOLERANCE)


def _few(rows: int) -> NDArray[np.int64]:
    """Which rows make the eigenvalue problem: all of a few, a fixed sample of more."""
    return np.sort(np.random.default_rng(0).choice(rows, min(rows, SPECTRUM_ROWS), replace=False))


def _spectrum(which: str, grams: Grams, tolerance: float) -> dict[str, float]:
    names = ("smallest_real_part", "margin", "largest_step")
    if not (np.isfinite(grams.same).all() and np.isfinite(grams.cross).all()):
        return {f"spectrum/{which}/{name}": math.nan for name in names}
    found = stability(grams.same, grams.K, tolerance=tolerance)
    return {f"spectrum/{which}/{name}": float(getattr(found, name)) for name in names}
