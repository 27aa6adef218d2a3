"""What the pages show can be typed: their Python runs, their names are there, and their commands have these flags."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from pathlib import Path

import pytest

import dr3
from dr3.cli import COMMANDS, invoke
from dr3.methods import FOR_CONTINUOUS_ACTIONS, METHODS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/results/*.md")])
GIVEN = {
    "theory": """
import jax.numpy as jnp
params = {"w": jnp.ones((2, 3)) / 4, "v": jnp.arange(3.0)}
q = lambda params, x: jnp.tanh(x @ params["w"]) @ params["v"]
inputs, next_inputs, rewards, gamma = jnp.eye(2), 0.5 * jnp.eye(2), jnp.ones(2), 0.9
"""
}
"""What a page takes to be there."""
PYTHON = [
    pytest.param(GIVEN.get(page.stem, "") + code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    )
]
VERBS = {
    "data": ("describe", "schema", "convert", "collect"),
    "paper": ("show", "audit"),
    "run": ("digest", "export"),
    "theory": ("check", "watch"),
}
EVERYWHERE = {"--plugin", "--force", "--help", "--version"}


@pytest.mark.slow
@pytest.mark.parametrize("code", PYTHON)
def test_blocks_of_python_run(code, tmp_path, monkeypatch):
    """As they stand, but for the size of the network and the number of updates."""
    monkeypatch.chdir(tmp_path)
    code = re.sub(r"steps=[\d_]+", "steps=20", re.sub(r"hidden=\([\d, ]+\)", "hidden=(8, 8)", code))
    exec(compile(code, "page", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_dr3_are_there(page):
    found = set(re.findall(r"(?<![\w./`\"-])dr3(?!\.jsonl)((?:\.[A-Za-z_]\w*)+)", _shown(page)))
    if any(name.startswith(".integrations.torch") for name in found):
        pytest.importorskip("torch")
    for name in sorted(found):
        assert _is_there(name.removeprefix(".")), f"dr3{name}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_have_these_flags(page):
    for line in _commands(page):
        words = line.split()
        assert words[0] in COMMANDS, line
        flags = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)} - EVERYWHERE
        if flags and (which := _which(words)) is not None:
            said = _help(which)
            assert not [flag for flag in flags if not re.search(rf"{flag}(?![\w-])", said)], line


def _shown(page: Path) -> str:
    """The blocks of code of a page, indented or fenced."""
    text = page.read_text("utf-8")
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return "\n".join([*fenced, *re.findall(r"^ {4,}.*$", text, re.MULTILINE)])


def _is_there(name: str) -> bool:
    """Whether `dr3.` and this is something: an attribute, or a module of dr3."""
    thing = dr3
    path = "dr3"
    for part in name.split("."):
        path += f".{part}"
        with contextlib.suppress(ImportError):
            importlib.import_module(path)
        if not hasattr(thing, part):
            return False
        thing = getattr(thing, part)
    return True


def _commands(page: Path) -> list[str]:
    """The lines `dr3 COMMAND …` of a page's blocks, those that go on after a backslash joined."""
    joined = re.sub(r"\\\n\s*", " ", _shown(page))
    found = re.findall(r"^\s*(?:\$ )?dr3 ([a-z]+\b.*)$", joined, re.MULTILINE)
    return [re.split(r"\s#\s|[;|>]|&&", line)[0] for line in found]


def _which(words: list[str]) -> tuple[str, ...] | None:
    """The words before `--help` that tell a command's flags; None where the page leaves them open."""
    command, *rest = words
    if command in ("train", "compare", "tune"):
        method = rest[0] if rest else ""
        return (command, method) if method in METHODS else None
    if command == "data" and rest and rest[0] == "collect":
        return ("data", "collect", rest[1]) if len(rest) > 1 else None
    if command == "cure":
        return (command, "grid16smoothobs")  # any data: without some its help is an overview
    if command in VERBS:
        return (command, rest[0]) if rest and rest[0] in VERBS[command] else None
    return (command,)


_said: dict[tuple[str, ...], str] = {}


def _help(which: tuple[str, ...]) -> str:
    if which not in _said:
        out = io.StringIO()
        command, *rest = which
        others = [(command, f"continuous-{name}") for name in rest if name in FOR_CONTINUOUS_ACTIONS]
        for words in (which, *others):  # a name may mean another class where actions are continuous
            with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
                invoke([*words, "--help"])
        _said[which] = out.getvalue()
    return _said[which]
