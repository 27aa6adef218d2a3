"""The answer as one HTML file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from dr3.cures.outcome import CureOutcome, CureRow
from dr3.cures.remedies import NONE
from dr3.reports.markup import Html, data_block, join, tag
from dr3.reports.page import document
from dr3.stats import Interval


def cure_page(outcome: CureOutcome) -> str:
    """The whole page: what is best, a row for each remedy, and how to have it.

    Args:
        outcome: What came out.
    """
    name = f"Which cure: {outcome.method} on {outcome.data}"
    head = join([tag("h1", name), tag("p", f"{outcome.steps:,} updates each.", class_="soft")])
    answer = join([tag("h2", "Answer"), tag("p", outcome.ranking.sentence, class_="headline"), _how(outcome)])
    table = join([tag("h2", "Remedies"), _tables(outcome.rows), _failed(outcome)])
    parts = {"head": head, "verdicts": answer, "table": table, "curves": data_block("values", {})}
    return document(name, parts, groups=0, live=None)


WORDS = (
    "Returns are means over seeds at the end with 95 % bootstrap intervals; gains are over none, seed by seed; better: "
    "the probability that a run with it ends above one without. Healthy: seeds of which the doctor has no verdict. "
    "Value by the log: the discounted return that fitted Q evaluation finds for its policies, the mean over seeds, and "
    "an interval over episodes. Q outside: the share of values that no policy could earn. The instruments are medians "
    "over seeds; churn: how much Q of logged pairs changed between the last two checkpoints, as a share of its size; "
    "BEER can act: the share of pairs whose bound is below 1. "
    "Time: of an update, measured alone, as a multiple of none's. Flags: what to add to dr3 train to have the remedy."
)


CAN_ACT = "BEER can act"
WORTH = ("return", "gain", "better", "value by the log")  # the columns on what policies earn; others are on critics


def columns_of(rows: Iterable[Mapping[str, str]]) -> tuple[list[str], list[str]]:
    """Those of `cells` on what policies earn, and those on critics."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [name for name in names if name in WORTH], [name for name in names if name not in WORTH]


def cells(row: CureRow, base: CureRow | None) -> dict[str, str]:
    """What is told of a row, by column: the same in the terminal and on the page."""
    told = {"healthy": f"{row.healthy} of {row.seeds}"}
    told |= {name: number(value) for name, value in row.measured.items() if name != CAN_ACT}
    if CAN_ACT in row.measured:
        told[CAN_ACT] = f"{row.measured[CAN_ACT]:.0%}"
    if row.returns is not None:
        own = row.returns
        told["return"] = number(own.mean) if own.interval is None else own.interval.text(number)
        told["gain"] = "" if own.gain is None else own.gain.text(lambda gain: f"{_rounded(gain):+.2g}")
        told["better"] = "" if own.improvement is None else _percent(own.improvement)
    if row.value is not None:
        told["value by the log"] = row.value.text(number)
    if row.seconds_per_update is None:
        told["time"] = "–"
    elif base is not None and base.seconds_per_update:
        told["time"] = f"{row.seconds_per_update / base.seconds_per_update:.2f}x"
    return told


def base_of(rows: Sequence[CureRow]) -> CureRow | None:
    """The row of none, if it has come to its end."""
    return next((row for row in rows if row.name == NONE), None)


def verdict_words(row: CureRow) -> str:
    """`divergence (3), rank collapse (1)`."""
    return ", ".join(f"{name} ({seeds})" for name, seeds in row.verdicts.items())


def number(value: float) -> str:
    """Three digits; what is 0 but for rounding is 0."""
    return "–" if math.isnan(value) else f"{_rounded(value):.3g}"


def _rounded(value: float) -> float:
    return round(value, 5) + 0.0  # + 0.0: not -0


def _percent(found: Interval) -> str:
    return found.text("{:.0%}".format)


def _tables(rows: Sequence[CureRow]) -> Html:
    """One on what policies earn, one on critics: side by side they would be wider than a page."""
    base = base_of(rows)
    told = [cells(row, base) for row in rows]
    worth, critics = columns_of(told)
    words = [verdict_words(row) or "none" for row in rows]
    return join(
        [
            tag("p", WORDS, class_="soft"),
            _table(rows, told, worth, "flags", [tag("code", row.flags) for row in rows]),
            tag("h2", "Their critics"),
            _table(rows, told, critics, "verdicts", [tag("span", one) for one in words]),
        ]
    )


def _table(
    rows: Sequence[CureRow], told: Sequence[Mapping[str, str]], columns: Sequence[str], last: str, ends: Sequence[Html]
) -> Html:
    """`last` is the heading of a column of words, which are `ends`."""
    head = tag("tr", *(tag("th", name, scope="col") for name in ("remedy", *columns, last)))
    body = []
    for row, values, end in zip(rows, told, ends, strict=True):
        name = tag("th", tag("span", row.name, title=row.about), scope="row")
        own = [tag("td", tag("span", values.get(key, "")), data_label=key) for key in columns]
        body.append(tag("tr", name, *own, tag("td", end, data_label=last)))
    return tag("table", tag("thead", head), tag("tbody", *body), class_="numbers named")


def _how(outcome: CureOutcome) -> Html | None:
    rows = {row.name: row for row in outcome.rows}
    if not outcome.ranking.decided or not rows[outcome.ranking.best[0]].flags:
        return None
    return tag("p", "To have it: ", tag("code", rows[outcome.ranking.best[0]].flags))


def _failed(outcome: CureOutcome) -> Html:
    return join([tag("p", f"{name} has no result: {why}") for name, why in outcome.failed.items()])
