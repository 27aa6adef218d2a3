"""The table of a report: returns with intervals, and the instruments at the end."""

from __future__ import annotations

import math

from dr3.reports.compare import MEASURED, Score
from dr3.reports.content import Content, Row
from dr3.reports.markup import Html, join, tag
from dr3.reports.svg import colour_class
from dr3.stats import Interval

RETURNS = {"final": "final return", "average": "average return"}


def table(content: Content) -> Html:
    """A row for each group; on a narrow screen each row becomes a list of its cells, named by their labels."""
    scored = any(row.scores for row in content.rows)
    compared = any(score.gain for row in content.rows for score in row.scores.values())
    columns = ["seeds"]
    for name in RETURNS.values() if scored else ():
        columns += [name, "gain"] if compared else [name]
    columns += ["better", *MEASURED] if compared else [*MEASURED]
    rows = []
    for number, row in enumerate(content.rows):
        cells = [str(len(row.group.members))]
        for key in RETURNS if scored else ():
            score = row.scores.get(key)
            cells += [_mean(score), _gain(score)] if compared else [_mean(score)]
        cells += [_better(row)] if compared else []
        cells += [_number(row.measured[name]) for name in MEASURED]
        name = tag("th", tag("span", tag("span", class_="swatch"), row.group.name), scope="row", class_=_colour(number))
        labelled = zip(columns, cells, strict=True)
        rows.append(tag("tr", name, *(tag("td", tag("span", cell), data_label=label) for label, cell in labelled)))
    head = tag("thead", tag("tr", tag("th", "algorithm"), *(tag("th", column, scope="col") for column in columns)))
    return join(
        [
            tag("h2", "Results"),
            tag("p", _words(content, scored, compared), class_="soft"),
            tag("table", head, tag("tbody", *rows), class_="numbers"),
        ]
    )


def _words(content: Content, scored: bool, compared: bool) -> str:
    words = []
    if scored:
        words.append(
            "Returns are means over seeds with 95 % bootstrap intervals: at the last evaluation, and on average over "
            "20 evaluations spread evenly over training."
        )
    if compared:
        words.append(
            f"Gains are over {content.reference.name}; better: the probability that a run ends above one of "
            f"{content.reference.name}."
        )
    return " ".join([*words, "The instruments are medians over seeds at the last measurement."])


def _mean(score: Score | None) -> Html | str:
    if score is None:
        return "–"
    return _number(score.mean) if score.interval is None else _with_limits(_number(score.mean), score.interval, "")


def _gain(score: Score | None) -> Html | str:
    if score is None or score.gain is None:
        return "–"
    estimate = _number(score.gain.estimate, "+")
    return _with_limits(estimate, score.gain, "+") if score.interval else estimate


def _better(row: Row) -> Html | str:
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
    return "–" if math.isnan(value) else format(value, f"{sign}.4g").replace("-", "−")


def _colour(number: int) -> str:
    return colour_class(number).partition(" ")[2]
