"""HTML and SVG in which nothing that comes from a file can become markup: what is not `Html` is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

_EMPTY = frozenset({"meta", "input", "img", "br", "line", "path", "rect", "circle"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """One element. Children are escaped unless they are `Html`; None and False leave a child or an attribute out.

    Attributes: `class_` is `class`, and underscores inside a name are hyphens; True is an attribute without a value.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{escape(str(value))}"')
    if name in _EMPTY:
        return Html(f"<{' '.join(words)}/>")
    return Html(f"<{' '.join(words)}>{join(children)}</{name}>")


def join(children: Iterable[object], separator: str = "") -> Html:
    """Children one after another, escaped unless they are `Html`."""
    shown = (child for child in children if child is not None and child is not False)
    return Html(separator.join(child if isinstance(child, Html) else escape(str(child)) for child in shown))


def data_block(identity: str, record: Any) -> Html:
    """JSON for a script to read. A `<` inside it could end the block, so it is written as an escape of JSON's own."""
    text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{escape(identity)}">{text}</script>')
