"""Every instrument, for one critic and over all checkpoints of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dr3 import instruments
from dr3.data import load
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.diagnostics.answers import SPECTRUM_SIZE, Answers, answers_of, parameter_grams
from dr3.errors import UserError
from dr3.instruments import Grams, ReturnBounds, return_bounds, stability
from dr3.methods import ContinuousMethod, Spec
from dr3.runs import Runs
from dr3.training.metrics import probe_of

# Directions of JJᵀ below this share of the largest are float32 rounding: of features, which are products' factors, and
# of gradient products, which are themselves computed in float32.
_FEATURES_TOLERANCE, _PRODUCTS_TOLERANCE = 1e-10, 1e-5

HELD_OUT_ERROR = "td/held_out_error"

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


def measure_answers(answers: Answers, bounds: ReturnBounds | None) -> dict[str, float]:
    """Every instrument that needs no gradients; what needs values, or bounds on them, only where there are some."""
    with np.errstate(over="ignore", invalid="ignore"):
        # An ensemble has its axis first: each critic is measured alone, and the numbers are averaged.
        sides = (side.reshape(-1, *side.shape[-2:]) for side in (answers.phi, answers.phi_next))
        each = [_measure_features(phi, phi_next, answers) for phi, phi_next in zip(*sides, strict=True)]
        found = {name: float(np.mean([of[name] for of in each])) for name in each[0]}
        if answers.values is not None and bounds is not None:
            q = instruments.value_statistics(answers.values, bounds)
            found |= {f"q/{name}": value for name, value in q._asdict().items()}
            found |= {"q/lowest_return": bounds.low, "q/largest_return": bounds.high}
        if answers.values is not None and answers.next_values is not None:
            found["td/error"] = td_error_of(answers)
    return found


def _measure_features(phi: NDArray[np.float64], phi_next: NDArray[np.float64], answers: Answers) -> dict[str, float]:
    """Of the features (n, d) of one critic on both sides."""
    sides = (phi, phi_next, (answers.discounts > 0).astype(np.float64))
    return {
        "features/dot_product": float(instruments.dot_product(*sides)),
        "features/cosine": float(instruments.cosine(*sides)),
        "features/norm": float(instruments.norm(phi).mean()),
        "features/norm_next": float(instruments.norm(phi_next).mean()),
        "features/co_adaptation": instruments.co_adaptation_ratio(phi, phi_next, answers.discounts),
        "features/dead": instruments.dead_features(phi),
        "features/dormant": instruments.dormant_features(phi),
        **{name: float(rank(phi)) for name, rank in RANKS.items()},
        **_last_layer_spectrum(phi, phi_next, answers),
    }


def td_error_of(answers: Answers) -> float:
    """Over the rows whose a' is known: what stands in the place of another is no action. NaN where none is."""
    assert answers.values is not None
    assert answers.next_values is not None
    columns = (answers.values, answers.rewards, answers.next_values, answers.discounts)
    if answers.known is None:
        return instruments.td_error(*columns)
    return instruments.td_error(*(column[answers.known] for column in columns)) if answers.known.any() else math.nan


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

    `data` is what the run was trained on; without it, it is loaded again from where the run says it came from. Episodes
    that were `held_out` of training give `td/held_out_error`. `gradients` adds the spectrum over all parameters, the
    one instrument that takes longer than a moment.
    """
    steps = list(steps) if steps is not None else runs.checkpoints
    if not steps:
        raise UserError(f"{runs.path} has no whole checkpoint yet, so there is nothing to measure.")
    unseen = {} if held_out is None else {HELD_OUT_ERROR: held_out_errors(runs, held_out, steps)}
    data = training_data(runs, data)
    # What each method learned from: it may scale rewards, and so what is possible. Once: TD-learning clones a policy.
    methods = {repr(member.method): member.method for member in runs.members}
    learned_from = {word: method.prepare(data) for word, method in methods.items()}
    found: list[list[dict[str, float]]] = [[] for _ in runs.members]
    for step in steps:
        for number, critic in enumerate(runs.critics(step)):
            method = runs.members[number].method
            table = learned_from[repr(method)]
            probe = probe_of(table)
            row = measure_answers(answers_of(method, critic, probe), bounds_of(table, method.discount))
            if gradients:
                grams = parameter_grams(method, critic, probe_of(probe, SPECTRUM_SIZE))
                row |= _spectrum("all", grams, _PRODUCTS_TOLERANCE)
            found[number].append(row)
    columns = {name: np.array([[row[name] for row in rows] for rows in found], np.float64) for name in found[0][0]}
    return Measurements(np.array(steps, np.int64), columns | unseen, min(len(data), len(probe_of(data))))


def held_out_errors(runs: Runs, held_out: Transitions, steps: Sequence[int]) -> NDArray[np.float64]:
    """The TD error of every member at some checkpoints, on episodes that it was not trained on: (members, T)."""
    _check_held_out(runs, held_out)

    def error(number: int, critic: Any) -> float:
        method = runs.members[number].method
        unseen = method.prepare(held_out) if isinstance(method, ContinuousMethod) else held_out
        return td_error_of(answers_of(method, critic, probe_of(unseen)))

    errors = [[error(number, critic) for number, critic in enumerate(runs.critics(step))] for step in steps]
    return np.array(errors, np.float64).T


def _check_held_out(runs: Runs, held_out: Transitions) -> None:
    """Refuse a table that the run's critics do not fit, or have seen."""
    theirs, ours = Spec.of(held_out), runs.spec
    if theirs.observation_shape != ours.observation_shape:
        raise UserError(
            f"The held-out data {held_out.name} have observations of shape {theirs.observation_shape}, and {runs.path} "
            f"has {ours.observation_shape}."
        )
    actions, known = theirs.action_space, ours.action_space
    if not (actions.within(known) if isinstance(actions, DiscreteActions) else actions == known):
        raise UserError(f"The held-out data {held_out.name} have the actions {actions}, and {runs.path} has {known}.")
    if held_out.fingerprint() == runs.config["data"]["fingerprint"]:
        raise UserError(f"The held-out data {held_out.name} are what {runs.path} was trained on; name other episodes.")


def training_data(runs: Runs, data: Transitions | None = None) -> Transitions:
    """What the run was trained on: as given, or loaded again from its source; either way checked by its fingerprint."""
    stored: dict[str, Any] = runs.config["data"]
    if data is None:
        if stored["source"] is None:
            raise UserError(f"{runs.path} does not say where its data came from; give the data it was trained on.")
        try:
            data = load(stored["source"], discount=runs.data_discount)
        except UserError as error:
            moved = f"give the data of {runs.path} where they are now (--data)"
            raise UserError(f"{str(error).removesuffix('.')}; {moved}.") from None
    if data.fingerprint() != stored["fingerprint"]:
        raise UserError(
            f"{data.name} ({len(data)} rows) is not what {runs.path} was trained on ({stored['name']}, "
            f"{stored['rows']} rows): their fingerprints differ; give the same table, cut in the same way."
        )
    return data


def _last_layer_spectrum(phi: NDArray[np.float64], phi_next: NDArray[np.float64], answers: Answers) -> dict[str, float]:
    rows = slice(None) if len(phi) <= SPECTRUM_SIZE else _few(len(phi))
    tie = {}
    if answers.rows_per_action:
        tie = {"actions": answers.actions[rows], "next_actions": answers.next_actions[rows]}
    grams = instruments.last_layer_grams(phi[rows], phi_next[rows], answers.discounts[rows], **tie)
    return _spectrum("last_layer", grams, _FEATURES_TOLERANCE)


def _few(rows: int) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(0).choice(rows, SPECTRUM_SIZE, replace=False))


def _spectrum(which: str, grams: Grams, tolerance: float) -> dict[str, float]:
    names = ("smallest_real_part", "margin", "largest_step")
    if not (np.isfinite(grams.same).all() and np.isfinite(grams.cross).all()):
        return {f"spectrum/{which}/{name}": math.nan for name in names}
    found = stability(grams.same, grams.K, tolerance=tolerance)
    return {f"spectrum/{which}/{name}": float(getattr(found, name)) for name in names}
