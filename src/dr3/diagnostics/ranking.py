"""Members and checkpoints of one or several runs in one ranking, with intervals; and what can be told from it.

Where the best cannot be told from others, they are named, and one of them is kept that can be told from the policy that
logged; where nothing can, nothing is chosen.

Which one is a choice of its own (`WAYS`). The surest is the one whose gain over the logged policy has the highest lower
limit L. Where all intervals hold, its gain G is at least L, that is at least the best one's L, and so at most the width
of the best one's interval below the best one's G: a policy that the log knows little of cannot be kept for its wide
interval, nor for an estimate that luck made large. The earliest of them has no such bound: the wider an interval, the
sooner it reaches the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from dr3.data.batch import Batch
from dr3.data.faults import episode_starts
from dr3.data.transitions import Transitions
from dr3.diagnostics.candidates import Candidate, candidates_of, policies_of
from dr3.diagnostics.measure import judged_by, judged_rewards
from dr3.errors import UserError
from dr3.files import for_json, write_json
from dr3.methods import backup_of
from dr3.ope import FQE, bootstrap_interval, evaluate
from dr3.runs import Runs
from dr3.stats import Interval
from dr3.training.metrics import noise_of

Floats = NDArray[np.float64]

RANKINGS = {
    "fqe": "the largest value of its policy by fitted Q evaluation",
    "td-error": "the smallest TD error, the critic being its own target network",
    "tournament": "the smallest of the largest projected Bellman errors against each other critic (BVFT)",
}
WAYS = {
    "surest": "of those that cannot be told from the best the one whose gain over the logged policy is largest at its "
    "lower 95 % limit (its score, where the logged policy has none)",
    "one-error": "the earliest whose score is within one standard error of the largest",
    "earliest": "the earliest of those that cannot be told from the best",
    "largest": "the one with the largest score",
}  # of those that can be told from the logged policy
MOST_ROWS = 4096  # rows of whole episodes on which critics are compared without fitting others
BINS = 8  # by which a tournament tells values of one critic apart
BOOTSTRAPS = 50


@dataclass(frozen=True)
class Scores:
    """How good each candidate is, larger is better, and the same of bootstraps over the episodes."""

    found: Floats  # (K,) NaN where there is none
    bootstrapped: Floats  # (B, K)
    gains: Floats | None  # (B, K) more than the logged policy, where that has a score
    reasons: dict[int, str]
    logged: Interval | None
    episodes: int

    def interval(self, number: int) -> Interval:
        """Of one candidate's score."""
        return bootstrap_interval(float(self.found[number]), self.bootstrapped[:, number], self.episodes)

    def gain(self, number: int) -> Interval | None:
        """How much more than the logged policy one is worth; None where that has no value by the same rule."""
        if self.gains is None:
            return None
        gains = self.gains[:, number]
        return bootstrap_interval(float(gains.mean()), gains, self.episodes)

    def least(self, number: int) -> float:
        """The lower limit of the gain, or where there is none of the score; -inf without limits."""
        limit = (self.gain(number) or self.interval(number)).lower
        return limit if np.isfinite(limit) else -np.inf

    def beats_logged(self, number: int) -> bool:
        """Whether one is worth more than the logged policy, where that has a value."""
        gain = self.gain(number)
        return gain is None or gain.lower > 0

    def tells(self, first: int, second: int) -> bool:
        """Whether one is better than another, by the interval of their difference over the same bootstraps."""
        between = self.bootstrapped[:, first] - self.bootstrapped[:, second]
        estimate = float(self.found[first] - self.found[second])
        return first != second and bootstrap_interval(estimate, between, self.episodes).lower > 0


@dataclass(frozen=True)
class Ranking:
    """Every candidate, the best first, and what is to be kept."""

    rule: str
    keep: str  # of `WAYS`
    judged_by: str
    order: list[Candidate]  # the best first; those without a score last
    scores: dict[str, Interval]  # by name
    reasons: dict[str, str]  # why one has no score
    tied: list[Candidate]  # those that the best cannot be told from, itself among them
    chosen: Candidate | None
    abstained: bool
    sentence: str
    logged: Interval | None
    gain: Interval | None  # of what is kept: how much more than the logged policy, where that has a score

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "protocol": f"{RANKINGS[self.rule]}; of those that can be told from the logged policy, where that has a "
            f"score, {WAYS[self.keep]}",
            "keep": self.keep,
            "simulator": False,
            "judged_by": self.judged_by,
            "run": None if self.chosen is None else str(self.chosen.runs.path),
            "member": None if self.chosen is None else self.chosen.member,
            "step": None if self.chosen is None else self.chosen.step,
            "abstained": self.abstained,
            "sentence": self.sentence,
            "logged": None if self.logged is None else _plain(self.logged),
            "gain": None if self.gain is None else _plain(self.gain),
            "tied": [one.name for one in self.tied],
            "ranking": [
                {
                    "policy": one.name,
                    "member": one.member,
                    "step": one.step,
                    "score": _plain(self.scores[one.name]) if one.name in self.scores else None,
                    "why": self.reasons.get(one.name),
                }
                for one in self.order
            ],
        }


def rank(
    opened: Sequence[Runs],
    rule: str = "fqe",
    data: Transitions | None = None,
    *,
    keep: str = "surest",
    fqe: FQE | None = None,
) -> Ranking:
    """Rank every member and checkpoint of runs, say what can be told, and write `selection.json` into their folders.

    Args:
        opened: The runs; of several, all must fit the one log that they are judged by.
        rule: One of `RANKINGS`.
        data: The log; None is what the first run held out, else what it was trained on.
        keep: Which of those that cannot be told apart: one of `WAYS`.
        fqe: How fitted Q evaluation is done; None is its defaults.

    Returns:
        The ranking; `chosen` is what to keep, None where nothing could be told from the logged policy.
    """
    if keep not in WAYS:
        raise UserError(f"There is no way {keep!r} to keep one; there are {', '.join(WAYS)}.")
    ranking = rankings_of(opened, rule, data, fqe=fqe)[keep]
    for runs in opened:
        record = ranking.to_json()
        if ranking.chosen is not None and ranking.chosen.runs.path != runs.path:
            record |= {"member": None, "step": None}  # the choice is another run's
        write_json(runs.path / "selection.json", record)
    return ranking


def rankings_of(
    opened: Sequence[Runs], rule: str = "fqe", data: Transitions | None = None, *, fqe: FQE | None = None
) -> dict[str, Ranking]:
    """The ranking by each of `WAYS` to keep one, from the same scores; `rank` writes one of them."""
    if rule not in RANKINGS:
        raise UserError(f"There is no ranking {rule!r}; there are {', '.join(RANKINGS)}.")
    candidates = candidates_of(opened)
    if not opened:
        raise UserError("There is no run to choose from.")
    if not candidates:
        raise UserError(f"{opened[0].path} has no checkpoint after the initial one to choose.")
    if len({(member.method.discount, type(member.method)) for runs in opened for member in runs.members}) > 1:
        if rule != "fqe":
            raise UserError(f"Critics of different methods or discounts have no {rule} in common; rank by fqe.")
        if len({member.method.discount for runs in opened for member in runs.members}) > 1:
            raise UserError("Policies of different discounts have values in different units; rank them apart.")
    table = judged_by(opened[0], data)
    scores = (_by_fqe if rule == "fqe" else _by_critics)(candidates, table, rule, fqe)
    return {way: _told(candidates, scores, rule, table.name, way) for way in WAYS}


def _told(candidates: Sequence[Candidate], scores: Scores, rule: str, source: str, way: str = "surest") -> Ranking:
    found = scores.found
    order = sorted(range(len(candidates)), key=lambda k: (not np.isfinite(found[k]), -np.nan_to_num(found[k])))
    known = [k for k in order if np.isfinite(found[k])]
    tied = [k for k in known if not scores.tells(known[0], k)]
    # An interval that is wide enough reaches the best from anywhere: what is kept must beat the logged policy itself.
    able = [k for k in tied if scores.beats_logged(k)]
    kept = _kept(way, candidates, scores, able) if able else None
    if kept is not None:
        sentence = _sentence(way, candidates[kept].name, scores, kept, tied, able)
    else:
        sentence = "None can be told from the logged policy; nothing is chosen." if known else "None has a score."
    return Ranking(
        rule=rule,
        keep=way,
        judged_by=source,
        order=[candidates[k] for k in order],
        scores={candidates[k].name: scores.interval(k) for k in known},
        reasons={candidates[k].name: why for k, why in scores.reasons.items()},
        tied=[candidates[k] for k in tied],
        chosen=None if kept is None else candidates[kept],
        abstained=kept is None or len(tied) > 1,
        sentence=sentence,
        logged=scores.logged,
        gain=None if kept is None else scores.gain(kept),
    )


def _kept(way: str, candidates: Sequence[Candidate], scores: Scores, able: Sequence[int]) -> int:
    """Which of those that can neither be told from the best nor taken for the logged policy; the best comes first."""
    if way == "surest":
        return max(able, key=lambda k: (scores.least(k), scores.found[k]))
    if way == "largest":
        return able[0]
    if way == "one-error":
        error = np.std(scores.bootstrapped[:, able[0]], ddof=1)
        able = [k for k in able if scores.found[k] >= scores.found[able[0]] - error]
    return min(able, key=lambda k: (candidates[k].step, -scores.found[k]))


def _sentence(way: str, name: str, scores: Scores, kept: int, tied: Sequence[int], able: Sequence[int]) -> str:
    """What is kept, out of how many, and why that one."""
    least = scores.least(kept)
    if not np.isfinite(least):
        sure = "too few episodes for an interval"
    elif scores.gains is None:
        sure = f"a score of at least {least:.3g}"
    else:
        sure = f"worth at least {least:.3g} more than the logged policy"
    if len(tied) == 1:
        return f"Keep {name}: it can be told from all others ({sure})."
    among = "" if len(able) == len(tied) else f", {len(able)} of them can be told from the logged policy"
    why = {
        "surest": "the surest of them",
        "one-error": "the earliest of them within one standard error of the largest score",
        "earliest": "the earliest of them",
        "largest": "the one with the largest score",
    }[way]
    return f"These {len(tied)} cannot be told apart{among}; keep {name}, {why} ({sure})."


def _by_fqe(candidates: Sequence[Candidate], table: Transitions, rule: str, fqe: FQE | None) -> Scores:
    policies, without = policies_of(candidates, table)
    places = {one.name: k for k, one in enumerate(candidates)}
    reasons = {places[name]: why for name, why in without.items()}
    found, method = np.full(len(candidates), np.nan), candidates[0].runs.members[0].method
    if not policies:
        return Scores(found, np.full((2, len(candidates)), np.nan), None, reasons, None, 0)
    judged = judged_rewards(method, table)
    told = evaluate(policies, judged, discount=method.discount, fqe=fqe, importance=False)
    bootstrapped = np.full((len(told.fit.bootstrapped), len(candidates)), np.nan)
    gains = np.full_like(bootstrapped, np.nan)
    for number, one in enumerate(told.policies):
        place = places[one.name]
        found[place], bootstrapped[:, place] = told.fit.values[number], told.fit.bootstrapped[:, number]
        gains[:, place] = told.fit.bootstrapped[:, number] - told.fit.bootstrapped[:, -1]
        if "fqe" in one.reasons:
            reasons[place] = one.reasons["fqe"]
    return Scores(found, bootstrapped, gains, reasons, told.logged, told.episodes)


def _by_critics(candidates: Sequence[Candidate], table: Transitions, rule: str, _: FQE | None) -> Scores:
    """By the critics' own values and targets on the log: nothing is fitted."""
    values, targets, episodes = _looks(candidates, table)
    reasons = dict.fromkeys(np.flatnonzero(~np.isfinite(values + targets).all(axis=0)), "its values are not finite")
    reasons |= {k: "its training had diverged" for k, one in enumerate(candidates) if one.diverged}
    able = [k for k in range(len(candidates)) if k not in reasons]
    count = int(episodes[-1]) + 1
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), BOOTSTRAPS)
    weights = np.concatenate([np.ones((1, count)), draws])[:, episodes]  # (1 + B, n), the first is the log itself
    found = np.full((len(weights), len(candidates)), np.nan)
    if able and rule == "td-error":
        errors = (values[:, able] - targets[:, able]) ** 2
        found[:, able] = -(weights @ errors) / weights.sum(axis=1, keepdims=True)
    elif able:
        found[:, able] = -tournament(values[:, able], targets[:, able], weights)
    return Scores(found[0], found[1:], None, reasons, None, count)


def tournament(values: Floats, targets: Floats, weights: Floats) -> Floats:
    """BVFT (Xie and Jiang, 2021): for each critic the largest root mean square of Q_i - Π_ij T Q_i over all j.

    Π_ij projects onto functions that are constant where both critics' values fall into the same bins, so that a critic
    that is right has a small error against every other. Bins hold equal numbers of rows.

    Args:
        values: Q_i(s, a), (n, K).
        targets: T Q_i, (n, K): r + γ Q_i(s', a').
        weights: How often each row counts, (B, n).

    Returns:
        The errors, (B, K).
    """
    ranks = values.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    bins = ranks * BINS // len(values)
    worst = np.zeros((len(weights), values.shape[1]))
    for j in range(values.shape[1]):
        for i in range(values.shape[1]):
            cells = np.eye(BINS * BINS)[bins[:, i] * BINS + bins[:, j]]  # (n, cells)
            mass = weights @ cells
            means = (weights * targets[:, i]) @ cells / np.maximum(mass, 1e-12)
            # Σ w (Q - m)² over a cell, without an array over rows for each bootstrap.
            squares = weights @ (values[:, i] ** 2) - 2 * (means * ((weights * values[:, i]) @ cells)).sum(axis=1)
            error = (squares + (means**2 * mass).sum(axis=1)) / weights.sum(axis=1)
            worst[:, i] = np.maximum(worst[:, i], np.sqrt(np.maximum(error, 0)))
    return worst


def _looks(candidates: Sequence[Candidate], table: Transitions) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Q(s, a) and targets of every critic, (n, K) each, on some whole episodes, and the number of each row's."""
    method = candidates[0].runs.members[0].method
    prepared = method.prepare(table)
    starts = episode_starts(prepared)
    ends = np.append(starts[1:], len(prepared))
    lengths = (ends - starts)[np.random.default_rng(0).permutation(len(starts))]
    order = np.random.default_rng(0).permutation(len(starts))
    taken = np.sort(order[: max(3, int(np.searchsorted(np.cumsum(lengths), MOST_ROWS)))])
    rows = np.concatenate([np.arange(starts[e], ends[e]) for e in taken])
    episodes = np.repeat(np.arange(len(taken)), (ends - starts)[taken])
    batch = Batch.of(prepared.rows(rows)).all_rows()
    values, targets = (np.empty((len(rows), len(candidates))) for _ in range(2))
    for k, one in enumerate(candidates):
        member = one.runs.members[one.member]
        critic = one.runs.critics(one.step)[one.member]
        backup = backup_of(member.method, critic, one.runs.spec, batch, noise_of(member.seed, one.step))
        values[:, k] = np.asarray(jax.numpy.reshape(backup.values, (-1, len(rows))).mean(axis=0))
        targets[:, k] = np.asarray(backup.targets)
    return values, targets, episodes


def _plain(of: Interval) -> list[float | None]:
    return [for_json(value) for value in (of.estimate, of.lower, of.upper)]
