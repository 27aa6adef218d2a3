"""Worlds that a file names: a log, a run folder. They may come from a stranger, so only what is known counts.

Gymnasium imports whatever stands before a colon in a name, and its worlds take paths as arguments. Only a user may ask
for that, with `--env`.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

from dr3.envs.atari import ATARI
from dr3.envs.drawers_tasks import DRAWERS
from dr3.envs.gridworld import is_gridworld, spelled_gridworld
from dr3.envs.minatar import MINATAR
from dr3.envs.worlds import WORLDS, register_robots
from dr3.errors import UserError
from dr3.files import parse_json

# What a file may ask for: steps of an episode (-1 would be for ever); steps of the simulator in one of them, during
# which nothing can stop it; the sides of a picture.
MOST = {"max_episode_steps": 1_000_000, "skip": 100, "repeat": 100, "width": 4096, "height": 4096}
# The last would open a window.
_PATH = re.compile("file|path|dir|folder|root|xml|model|module|import|entry|url|asset|wrapper|render", re.IGNORECASE)
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
    if not isinstance(name, str):
        raise UserError(f"The data name a world {name!r}, which is no name; say --env NAME, or none.")
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
        settings = parse_json(brace + arguments) if brace else {}
    except ValueError:
        settings = None
    if not isinstance(settings, dict) or not all(_is_plain(key, value) for key, value in settings.items()):
        raise UserError(
            f"The data name the world {identity} with arguments that only a user may give ({arguments[:80]!r}); say "
            "--env with the same name if you trust them."
        )
    return name


def _is_registered(identity: str) -> bool:
    if identity in DRAWERS:
        return True
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
    bounds = [most for part, most in MOST.items() if part in key.lower()]
    if bounds and value is not None:
        return isinstance(value, int) and 1 <= value <= min(bounds)
    if isinstance(value, str):
        return _PATH.search(key) is None and _WORD.fullmatch(value) is not None
    return value is None or isinstance(value, bool | int | float)
