"""An experiment's report: one HTML file with the claim, the verdict, the picture and the numbers."""

from __future__ import annotations

import base64
from pathlib import Path

from dr3.files import write_text
from dr3.paper.experiments.declaration import Experiment
from dr3.paper.experiments.result import Result
from dr3.reports.markup import Html, data_block, join, tag
from dr3.reports.page import document


def write_page(experiment: Experiment, result: Result, path: Path) -> None:
    parts = {
        "head": _head(experiment, result),
        "checks": _checks(result),
        "picture": _picture(experiment, result, path.parent),
        "numbers": _numbers(result),
        "making": _making(result),
    }
    write_text(path, document(f"{experiment.id}: {result.verdict}", parts, groups=0, live=None))


def _head(experiment: Experiment, result: Result) -> Html:
    return join(
        [
            tag("h1", f"{experiment.id}: {experiment.title}"),
            tag("p", tag("strong", f"{result.verdict}. "), result.why),
            tag("p", "The paper: ", experiment.claim),
            tag("p", "What it prints: ", *_words(experiment.printed), class_="soft"),
        ]
    )


def _checks(result: Result) -> Html:
    items = [
        tag(
            "li",
            tag("strong", one.verdict),
            f": {f'{one.group}: ' if one.group else ''}{one.rule} ",
            tag("br"),
            one.sentence,
        )
        for one in sorted(result.answers, key=lambda one: one.shows)  # what fails first
    ]
    return join([tag("h2", "What was checked"), tag("ul", *items) if items else tag("p", "Nothing.")])


def _picture(experiment: Experiment, result: Result, folder: Path) -> Html:
    # The script of the page looks for values to show under the pointer; a picture has none.
    nothing = data_block("values", {})
    if result.picture is None:
        return nothing
    image = base64.b64encode((folder / result.picture).read_bytes()).decode()
    return join(
        [
            tag("h2", "Picture"),
            tag("img", src=f"data:image/png;base64,{image}", alt=experiment.title, width="100%"),
            nothing,
        ]
    )


def _numbers(result: Result) -> Html:
    if not result.rows:
        return Html("")
    columns = {"the paper": [row.paper for row in result.rows], "here": [row.ours for row in result.rows]}
    columns = {name: values for name, values in columns.items() if any(values)}
    head = tag("tr", tag("th", ""), *(tag("th", name, scope="col") for name in columns))
    rows = [
        # On a narrow screen a row becomes a list of its cells, named by their labels.
        tag(
            "tr",
            tag("th", tag("span", row.what), scope="row"),
            *(tag("td", tag("span", cell or ""), data_label=name) for name, cell in zip(columns, cells, strict=True)),
        )
        for row, *cells in zip(result.rows, *columns.values(), strict=True)
    ]
    return join([tag("h2", "Numbers"), tag("table", tag("thead", head), tag("tbody", *rows), class_="numbers")])


def _making(result: Result) -> Html:
    sizes = ", ".join(f"{count:,} {what}" for what, count in result.sizes.items() if count) or "nothing to train"
    return join(
        [
            tag("h2", "How it was made"),
            tag("p", tag("code", result.command)),
            tag("p", f"{sizes}; {result.seconds:,.0f} s of training and judging."),
            tag("p", result.note) if result.note else None,
        ]
    )


def _words(text: str) -> list[Html | str]:
    """With what stands between backquotes as code."""
    return [tag("code", part) if number % 2 else part for number, part in enumerate(text.split("`"))]
