"""Docstrings are written to be read in the source; this makes reStructuredText of them, for napoleon to go on with."""

from __future__ import annotations

import re

_SECTION = re.compile(r"(Args|Arguments|Attributes|Returns|Raises|Yields|Example|Examples|Note):$")
_PIECES = re.compile(r"(``?[^`\n]+``?)")


def to_rst(lines: list[str]) -> list[str]:
    """Indented lines become blocks of code, names in backticks code, and all other marks of the language plain text."""
    made: list[str] = []
    code, in_section, in_list = False, False, False
    for line in lines:
        text = line.strip()
        if text and not line.startswith("  "):
            code, in_section = False, bool(_SECTION.match(text))
            if in_list != text.startswith("- "):
                in_list = not in_list
                made.append("")
        elif text and not code and not in_section and not (made and made[-1].strip()):
            code = True
            made += ["::", ""]
        made.append(line if code else _PIECES.sub(lambda piece: "``" + piece[0].strip("`") + "``", _plain(line)))
    return made


def _plain(line: str) -> str:
    """The line with `*`, `|` and closing underscores escaped, but for what stands in backticks."""
    pieces = _PIECES.split(line)
    pieces[::2] = [re.sub(r"_(?=\W|$)", r"\\_", re.sub(r"([*|\\])", r"\\\1", piece)) for piece in pieces[::2]]
    return "".join(pieces)


def process(app, what, name, obj, options, lines: list[str]) -> None:
    """For Sphinx's event `autodoc-process-docstring`."""
    lines[:] = to_rst(lines)
    if what in ("attribute", "property"):
        lines.insert(0, "")  # napoleon takes what stands before a colon in the first line for a type
