"""The report as one HTML file: styles, pictures, values and script inside it, nothing fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.reports.content import Content, Reading
from dr3.reports.curves import Panel
from dr3.reports.groups import Group
from dr3.reports.markup import Html, data_block, join, tag
from dr3.reports.names import algorithm_name
from dr3.reports.records import configuration, environment
from dr3.reports.svg import chart, colour_class, summary, thinned
from dr3.reports.tables import table
from dr3.reports.verdicts import verdicts


@dataclass(frozen=True)
class Live:
    """A page that looks for news of itself: its version, and the milliseconds between two looks."""

    version: str
    every: int = 2000


def render(content: Content, live: Live | None = None) -> str:
    """The whole page."""
    parts = {
        "head": _head(content, live),
        "verdicts": verdicts(content.readings, content.groups),
        "curves": _curves(content.panels, content.groups),
        "table": table(content),
        "configuration": configuration([reading.runs for reading in content.readings]),
        "environment": environment([reading.runs for reading in content.readings]),
    }
    return document(title(content.readings), parts, groups=len(content.groups), live=live)


def waiting(sentence: str, live: Live) -> str:
    """The page of a run that has nothing to show yet, and why."""
    head = join([tag("h1", "Waiting"), tag("p", tag("span", class_="live"), sentence)])
    return document("Waiting", {"head": head, "curves": data_block("values", {})}, groups=0, live=live)


def document(name: str, parts: dict[str, Html], *, groups: int, live: Live | None) -> str:
    """Head and body around the parts.

    The policy in its head allows this style and this script by their digests, and no other; and no connection, except
    that a live page may ask its own server.
    """
    style, script = _resource("page.css") + _toggles(groups), _resource("page.js")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "connect-src 'none'" if live is None else "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", name),
            # An empty icon: a browser would else ask the server for one.
            Html('<link rel="icon" href="data:,">'),
            tag("style", Html(style)),
        ],
        "\n",
    )
    top, *others = (
        tag("header" if key == "head" else "section", part, data_part=key, id=key) for key, part in parts.items()
    )
    attributes = {} if live is None else {"data_refresh": live.every, "data_version": live.version}
    body = tag("body", top, tag("main", *others), tag("script", Html(script)), **attributes)
    return f"<!doctype html>\n{tag('html', tag('head', head), body, lang='en')}\n"


def title(readings: Sequence[Reading]) -> str:
    """`DQN on grid16smoothobs-256`, for all runs together."""
    methods = dict.fromkeys(algorithm_name(reading.runs.members[0].method.name) for reading in readings)
    data = dict.fromkeys(reading.runs.config.data.name for reading in readings)
    return f"{', '.join(methods)} on {', '.join(data)}"


def _head(content: Content, live: Live | None) -> Html:
    lines = []
    for reading in content.readings:
        status, steps = reading.runs.status, reading.runs.config.steps
        # The status is written with the state, the metrics between two states.
        now = max([status["step"], *reading.runs.steps[-1:].tolist()])
        far = f"{now:,} steps, finished" if status["finished"] else f"step {now:,} of {steps:,}"
        lines.append(
            tag("p", tag("code", str(reading.runs.path)), f" · {len(reading.runs)} members · {far}", class_="soft")
        )
    going = not all(reading.runs.status["finished"] for reading in content.readings)
    follows = live and going and tag("p", tag("span", class_="live"), "Updates while the run trains.", class_="soft")
    return join([tag("h1", title(content.readings)), *lines, follows])


def _curves(panels: Sequence[Panel], groups: Sequence[Group]) -> Html:
    if not panels:
        return join([tag("h2", "Curves"), tag("p", "Nothing has been measured yet."), data_block("values", {})])
    entries = [
        tag(
            "label",
            tag("input", type="checkbox", checked=True, id=f"show-{number}"),
            tag(
                "span",
                tag("span", class_="swatch"),
                one.name,
                _seeds(one),
                class_=colour_class(number).partition(" ")[2],
            ),
        )
        for number, one in enumerate(groups)
    ]
    switch = tag("label", tag("input", type="checkbox", id="seeds"), tag("span", "single seeds"), class_="switch")
    values = {
        panel.title: [_values(n, name, *line) for n, (name, line) in enumerate(panel.lines.items())] for panel in panels
    }
    return join(
        [
            tag("h2", "Curves"),
            tag(
                "p",
                "Over gradient updates. The line is the median over seeds, the band goes from the lowest seed to the "
                "highest. Click a name to hide it.",
                class_="soft",
            ),
            tag("div", *entries, any(len(one.members) > 1 for one in groups) and switch, class_="legend"),
            tag("div", *(_figure(number, panel) for number, panel in enumerate(panels)), class_="charts"),
            data_block("values", values),
        ]
    )


def _seeds(group: Group) -> Html:
    words = f" · {len(group.members)} seed{'s' if len(group.members) > 1 else ''}"
    return tag("span", words + (f", {group.diverged} diverged" if group.diverged else ""), class_="soft")


def _figure(number: int, panel: Panel) -> Html:
    pictures = [chart(panel, log=panel.log, title=f"{panel.title} over training")]
    switch = None
    if panel.log:
        switch = tag(
            "label", tag("input", type="checkbox", checked=True, id=f"log-{number}"), "log axis", class_="scale"
        )
        pictures = [
            tag("div", pictures[0], class_="log"),
            tag("div", chart(panel, log=False, title=f"{panel.title} over training"), class_="linear"),
        ]
    top = tag("div", tag("h3", panel.title), switch, class_="top")
    return tag("figure", top, tag("figcaption", panel.ylabel), *pictures, class_="card", data_panel=panel.title)


def _values(number: int, name: str, steps: NDArray[Any], values: NDArray[np.float64]) -> dict[str, Any]:
    kept = thinned(len(steps))
    middle, low, high = (
        [None if np.isnan(v) else float(f"{v:.6g}") for v in column] for column in summary(values[:, kept])
    )
    colour = colour_class(number).partition(" ")[2]
    return {"name": name, "colour": colour, "steps": steps[kept].tolist(), "middle": middle, "low": low, "high": high}


def _toggles(groups: int) -> str:
    """The switches work by style alone, without a script.

    There are rules for more groups than most reports have: the policy of a live page knows one style, and groups come.
    """
    rules = [f"body:has(#show-{n}:not(:checked)) svg .g{n} {{ display: none; }}" for n in range(max(groups, 32))]
    rules.append("body:has(#seeds:checked) .seed { display: inline; }")
    rules.append("figure:has(.scale input:not(:checked)) .log { display: none; }")
    rules.append("figure:has(.scale input:not(:checked)) .linear { display: block; }")
    return "\n".join(rules) + "\n"


def _resource(name: str) -> str:
    return resources.files("dr3.reports").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
