"""Worlds that a file names: a log, a run folder. They may come from a stranger, so only what is known counts.

Gymnasium imports whatever stands before a colon in a name, and its worlds take paths as arguments. Only a user may ask
for that, with `--env`.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from dr3.envs.atari import ATARI
from dr3.envs.drawers_tasks import DRAWERS
from dr3.envs.gridworld import is_gridworld, spelled_gridworld
from dr3.envs.minatar import MINATAR
from dr3.envs.worlds import WORLDS, register_robots
from dr3.errors import UserError

LONGEST = 1_000_000  # steps of an episode that a file may ask for
_PATH = re.compile("file|path|dir|folder|root|xml|model|module|import|entry|url|asset|wrapper", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_ +-]{0,64}")  # no dot, slash or colon: nothing that leads anywhere


def known_world(name: str) -> str:
    """The name of a world that a file gives, if it means one that is there already: no module is imported for it.

    Args:
        name: As the file has it: a world of dr3's, of a plugin's or of Gymnasium's, also with plain arguments.

    Returns:
        The same name.

    Raises:
        UserError: It means none of them, or has arguments that only a user may give.
    """
    if is_gridworld(name):
        spelled_gridworld(name)
        return name
    identity, brace, arguments = name.partition("{")
    if not brace and name in {*MINATAR, *ATARI, *WORLDS, *DRAWERS}:
        return name
    if re.fullmatch("atari/[A-Z][A-Za-z0-9]*", name):
        return name
    if not _is_registered(identity):
        raise UserError(
            f"The data come from a world {name[:80]!r}, which is none that is known by its name here; say --env NAME "
            "(in Python: env=…) for where policies are evaluated, or none."
        )
    try:
        settings = json.loads(brace + arguments) if brace else {}
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict) or not all(_is_plain(key, value) for key, value in settings.items()):
        raise UserError(
            f"The data name the world {identity} with arguments that only a user may give ({arguments[:80]!r}); say "
            "--env with the same name if you trust them."
        )
    return name


def _is_registered(identity: str) -> bool:
    try:
        import gymnasium
    except ImportError:
        return False
    with contextlib.suppress(UserError):  # where they are not installed, they are not known
        register_robots(identity)
    return identity in gymnasium.registry


def _is_plain(key: str, value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(key, one) for one in value)
    if key == "max_episode_steps":  # -1 would be for ever
        return isinstance(value, int) and 1 <= value <= LONGEST
    if isinstance(value, str):
        return _PATH.search(key) is None and _WORD.fullmatch(value) is not None
    return value is None or isinstance(value, bool | int | float)
