"""How programs are compiled: options that XLA may not know, and its cache of programs, which a kill can damage."""

from __future__ import annotations

import glob
import os
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

_UNREADABLE = re.compile(r"Error reading persistent compilation cache entry for '([^']+)'")


def keep_compiled_programs() -> None:
    """In the user's cache folder, unless JAX's own variable names another. To be called before JAX is loaded."""
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
    replace_torn_programs()
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    with suppress(OSError, RuntimeError):  # nothing is kept where there is no home or nothing may be written
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dr3" / "xla"
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK):
            os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache)


def replace_torn_programs() -> None:
    """Have an entry that cannot be read removed when JAX finds it: JAX compiles, and then writes it anew.

    JAX writes entries in place, so a kill can tear one, and never over one that is there: without this it would warn,
    and compile, in every later process.
    """
    warnings.showwarning = _show  # ty: ignore[invalid-assignment]  # Python documents that it may be replaced


_shown_by_python = warnings.showwarning


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    unreadable = _UNREADABLE.match(str(message))
    if unreadable is None or not _remove(unreadable[1]):
        _shown_by_python(message, category, filename, lineno, file, line)


def _remove(program: str) -> bool:
    """Remove the entries of a program, and say whether there were any.

    The warning does not tell which of those with this name is torn. The others are compiled again when they are needed;
    one that another process is just writing goes on being written, and is no longer found.
    """
    import jax

    config: Any = jax.config  # its options are attributes that no type knows
    removed = False
    with suppress(OSError):  # somebody else's folder: the warning is shown, and is true
        for entry in Path(config.jax_compilation_cache_dir).glob(f"{glob.escape(program)}-*-cache"):
            entry.unlink(missing_ok=True)
            removed = True
    return removed


def known_options(options: dict[str, Any]) -> dict[str, Any]:
    """Those that this version of XLA's compiler knows: they come and go, and one that it does not know is an error."""
    import jax

    def known(name: str, value: Any) -> bool:
        try:
            jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
        except RuntimeError as error:
            if "No such compile option" not in str(error):
                raise
            return False
        return True

    return {name: value for name, value in options.items() if known(name, value)}
