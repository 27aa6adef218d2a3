"""What goes wrong because of an input is said in one sentence."""

from __future__ import annotations

from collections.abc import Iterable


class UserError(Exception):
    """A mistake in what was asked for or handed over, not in the program.

    The message is one sentence that names the thing (file, field, row, flag) and, where there is one, the next step.
    The command line prints it without a traceback and exits with code 2.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that nothing has: the known one that is nearest, if one is near."""
    near = nearest(name, known, most=1)
    return f"; did you mean {near[0]}?" if near else "."


def nearest(name: str, known: Iterable[str], *, most: int) -> list[str]:
    """The known names that are near to one, the nearest first."""
    from difflib import get_close_matches  # only where something has gone wrong

    spellings = {one.lower(): one for one in known}
    return [spellings[one] for one in get_close_matches(name.lower(), spellings, n=most)]
