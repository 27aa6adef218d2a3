"""Modules that bring methods, regularizers, readers or worlds of a user's own, and which of them may be imported.

What a file names is never imported for that alone: a run folder may come from a stranger. A module counts that an entry
point of an installed package names, that the user names (`--plugin`, DR3_PLUGINS), or that this process has imported.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dr3.errors import UserError

VARIABLE = "DR3_PLUGINS"  # names of modules, with commas between them

_loaded: dict[str, None] = {}  # those that the user has named
_remembered: dict[str, Any] = {}  # what was registered or used in this process, by its home


def home_of(thing: Any) -> str:
    """Where a class or function lives: `package.module:Name`."""
    return f"{thing.__module__}:{thing.__qualname__}"


def remember(thing: Any) -> str | None:
    """The home to be written into a record, None of what dr3 has itself; this process then finds the thing by it."""
    if thing.__module__.startswith("dr3."):
        return None
    _remembered[home_of(thing)] = thing
    return home_of(thing)


def recall(home: str) -> Any:
    """What lives there, if this process knows it: nothing is imported. None otherwise."""
    if home in _remembered:
        return _remembered[home]
    try:
        return pkgutil.resolve_name(home) if home.partition(":")[0] in sys.modules else None
    except (AttributeError, ValueError):
        return None


def load_plugin(module: str) -> None:
    """Import a module that the user has named; if it is nowhere else, it is looked for in the working folder."""
    if module in _loaded:
        return
    _loaded[module] = None  # first, because a plugin may look a method up while it is being imported
    try:
        root = module.partition(".")[0]
        # Not unless it is there alone: Python, JAX and others would import what lies beside somebody's data.
        if root not in sys.modules and find_spec(root) is None and os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        import_module(module)
    except Exception as error:
        del _loaded[module]
        raise UserError(f"The plugin {module} cannot be imported ({type(error).__name__}: {error}).") from error


def load_named_plugins() -> None:
    """Import what DR3_PLUGINS names."""
    for module in filter(None, os.environ.get(VARIABLE, "").split(",")):
        load_plugin(module.strip())


def carried() -> dict[str, list[str]]:
    """What a worker process must import to know what this one knows, and where it finds that."""
    modules = list(dict.fromkeys([*_loaded, *(home.partition(":")[0] for home in _remembered)]))
    modules = [module for module in modules if module != "__main__" and module in sys.modules]
    return {"modules": modules, "path": [root for module in modules if (root := _root(module))]}


def take_up(plugins: dict[str, list[str]]) -> None:
    """In the worker. A module that it cannot import is no reason to stop: a task that needs it will say so."""
    sys.path.extend(root for root in dict.fromkeys(plugins["path"]) if root not in sys.path)
    for module in plugins["modules"]:
        try:
            load_plugin(module)
        except UserError as error:
            print(error, file=sys.stderr, flush=True)


def _root(module: str) -> str | None:
    """The folder that must be on Python's path for it."""
    file = getattr(sys.modules[module], "__file__", None)
    if file is None:
        return None
    levels = module.count(".") + (Path(file).stem == "__init__")
    return str(Path(file).absolute().parents[levels])
