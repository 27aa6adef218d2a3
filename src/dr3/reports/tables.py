"""The tables of a report: returns with intervals, and the instruments at the end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dr3.reports.compare import MEASURED, Score
from dr3.reports.content import Content, ReportRow
from dr3.reports.markup import Html, join, tag
from dr3.reports.svg import colour_class
from dr3.stats import Interval

RETURNS = {"final": "final return", "average": "average return"}


def table(content: Content) -> Html:
    """A row for each group: first its returns, where policies were evaluated, then the instruments."""
    parts: list[Html] = [tag("h2", "Results")]
    if any(row.scores for row in content.rows):
        compared = any(score.gain for row in content.rows for score in row.scores.values())
        parts += [tag("p", _words(content, compared), class_="soft"), _returns(content.rows, compared)]
    caption = "The instruments: medians over seeds at the last measurement."
    cells = [{name: _number(row.measured[name]) for name in MEASURED} for row in content.rows]
    return join([*parts, tag("p", caption, class_="soft"), _table(content.rows, cells)])


def _returns(rows: Sequence[ReportRow], compared: bool) -> Html:
    cells: list[dict[str, Html | str]] = []
    for row in rows:
        cells.append({"seeds": str(len(row.group.members))})
        for key, name in RETURNS.items():
            cells[-1][name] = _mean(row.scores.get(key))
            if compared:
                cells[-1][f"gain in {name}"] = _gain(row.scores.get(key))
        if compared:
            cells[-1]["better"] = _better(row)
    return _table(rows, cells)


def _table(rows: Sequence[ReportRow], cells: Sequence[Mapping[str, Html | str]]) -> Html:
    """On a narrow screen each row becomes a list of its cells, named by their labels."""
    head = tag("tr", tag("th", "algorithm", scope="col"), *(tag("th", name, scope="col") for name in cells[0]))
    body = []
    for number, (row, values) in enumerate(zip(rows, cells, strict=True)):
        colour = colour_class(number).partition(" ")[2]
        name = tag("th", tag("span", tag("span", class_="swatch"), row.group.name), scope="row", class_=colour)
        body.append(tag("tr", name, *(tag("td", tag("span", cell), data_label=key) for key, cell in values.items())))
    return tag("table", tag("thead", head), tag("tbody", *body), class_="numbers")


def _words(content: Content, compared: bool) -> str:
    words = (
        "Returns are means over seeds with 95 % bootstrap intervals: at the last evaluation, and on average over 20 "
        "evaluations spread evenly over training."
    )
    name = content.reference.name
    return f"{words} Gains are over {name}; better: the probability to end above {name}." if compared else words


def _mean(score: Score | None) -> Html | str:
    if score is None:
        return "–"
    return _number(score.mean) if score.interval is None else _with_limits(_number(score.mean), score.interval, "")


def _gain(score: Score | None) -> Html | str:
    if score is None or score.gain is None:
        return "–"
    estimate = _number(score.gain.estimate, "+")
    return _with_limits(estimate, score.gain, "+") if score.interval else estimate


def _better(row: ReportRow) -> Html | str:
    """Of the final return. A single seed wins or loses: no interval can be had from it."""
    score = row.scores.get("final")
    if score is None or score.improvement is None or score.interval is None:
        return "–"
    found = score.improvement
    limits = tag("small", f"{found.lower:.0%} to {found.upper:.0%}")
    return join([f"{found.estimate:.0%}", limits])


def _with_limits(estimate: str, found: Interval, sign: str) -> Html:
    return join([estimate, tag("small", f"{_number(found.lower, sign)} to {_number(found.upper, sign)}")])


def _number(value: float, sign: str = "") -> str:
    return "–" if math.isnan(value) else format(value, f"{sign}.3g" if sign else ".4g").replace("-", "−")
