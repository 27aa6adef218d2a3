"""A page for each command: its own help, printed by itself."""

from __future__ import annotations

import contextlib
import io
import os
import re

from site_pages.places import GENERATED, write

SUBCOMMANDS = {
    "data": ("describe", "schema", "convert", "collect dqn", "collect sac", "collect maze", "collect drawers"),
    "paper": ("show", "audit"),
}
"""Those whose `--help` is a page of its own. The methods of `train` come from the registry."""

COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def write_command_pages() -> None:
    """`generated/commands.md`, the list, and `generated/commands/NAME.md`."""
    from dr3.cli import COMMANDS

    os.environ["COLUMNS"] = "100"
    os.environ["NO_COLOR"] = "1"
    for name, purpose in COMMANDS.items():
        subcommands = _methods() if name == "train" else SUBCOMMANDS.get(name, ())
        parts = [f"# dr3 {name}\n\n{purpose[0].upper()}{purpose[1:]}.\n\n{_block(help_of(name))}"]
        parts += [f"## dr3 {name} {sub}\n\n{_block(help_of(name, *sub.split()))}" for sub in subcommands]
        write(GENERATED / "commands" / f"{name}.md", "\n".join(parts))
    rows = "\n".join(f"| [`dr3 {name}`](commands/{name}.md) | {purpose} |" for name, purpose in COMMANDS.items())
    names = "\n".join(f"commands/{name}" for name in COMMANDS)
    write(
        GENERATED / "commands.md",
        "# Commands\n\nEvery page here is what `--help` prints, at 100 columns.\n\n"
        f"| command | what it does |\n|---|---|\n{rows}\n\n"
        "Every command takes `--plugin MODULE`, for what is [your own](../extending.md), and `--force`, to read a "
        "file that unpacks to gigabytes.\n\n"
        f"```{{toctree}}\n:hidden:\n\n{names}\n```\n",
    )


def help_of(*words: str) -> str:
    """What `dr3 WORDS --help` prints."""
    from dr3.cli import invoke

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        code = invoke([*words, "--help"])
        if code:
            raise RuntimeError(f"dr3 {' '.join(words)} --help ended with exit code {code}")
    return "\n".join(line.rstrip() for line in COLOURS.sub("", out.getvalue()).splitlines())


def _methods() -> list[str]:
    from dr3.methods import METHODS

    return list(METHODS)


def _block(text: str) -> str:
    return f"```text\n{text}\n```\n"
