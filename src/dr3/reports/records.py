"""How the runs were made: the configuration and the environment record."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from dr3.files import read_json
from dr3.reports.markup import Html, join, tag
from dr3.runs import Runs


def configuration(runs: Sequence[Runs]) -> Html:
    """For each run the settings that all members share and those in which they differ, then the whole record."""
    parts: list[Html | None] = [tag("h2", "Configuration")]
    for number, one in enumerate(runs):
        whole = tag("pre", json.dumps(one.config.to_json(), indent=2, ensure_ascii=False))
        record = tag("details", tag("summary", "config.json"), whole, id=f"config-{number}")
        parts += [_name(one, runs), _facts(_settings(one)), record]
    return join(parts)


def environment(runs: Sequence[Runs]) -> Html:
    """For each run where it was trained: versions, commit, hardware."""
    parts: list[Html | None] = [tag("h2", "Environment")]
    for one in runs:
        file = one.folder.environment
        record = read_json(file) if file.exists() else {}
        parts += [_name(one, runs), _facts(record) if record else tag("p", "There is no record.", class_="soft")]
    return join(parts)


def _settings(one: Runs) -> dict[str, Any]:
    varying = {key: [label[key] for label in one.labels] for key in (one.labels[0] if one.labels else {})}
    method = dataclasses.asdict(one.members[0].method)  # ty: ignore
    data = one.config.data
    return {
        "method": one.members[0].method.name,
        "data": f"{data.name}, {data.rows:,} rows",
        "source": data.source,
        "updates": f"{one.config.steps:,}",
        "evaluation": one.config.evaluation,
        **{name: value for name, value in method.items() if name not in varying},
        **{key: list(dict.fromkeys(map(str, values))) for key, values in varying.items()},
    }


def _name(one: Runs, runs: Sequence[Runs]) -> Html | None:
    return tag("h3", tag("code", str(one.path))) if len(runs) > 1 else None


def _facts(record: dict[str, Any]) -> Html:
    rows = [tag("tr", tag("th", key.replace("_", " "), scope="row"), tag("td", _words(v))) for key, v in record.items()]
    return tag("table", tag("tbody", *rows), class_="facts")


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_words(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
