"""What `import dr3` offers."""

from __future__ import annotations

import ast
import builtins
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import dr3
from dr3.regularizers.base import WideRegularizer

ROOT = Path(__file__).parents[1]


def test_every_name_is_there_and_every_room_is_a_name():
    rooms = {module.name for module in pkgutil.iter_modules(dr3.__path__) if module.ispkg}
    assert rooms <= set(dr3.__all__)
    for name in dr3.__all__:
        assert getattr(dr3, name) is not None
    for room in rooms:
        module = getattr(dr3, room)
        assert module.__name__ == f"dr3.{room}"
        assert all(hasattr(module, name) for name in module.__all__)


def test_type_checkers_and_python_see_the_same_names():
    tree = ast.parse((ROOT / "src" / "dr3" / "__init__.py").read_text(encoding="utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {alias.asname or alias.name for node in guarded.body for alias in getattr(node, "names", ())}
    assert names == {*dr3.__all__, "open"}


def test_a_star_import_replaces_no_builtin():
    assert not set(dr3.__all__) & set(dir(builtins))
    assert dr3.open is dr3.Runs


def test_importing_it_loads_nothing_heavy():
    script = "import sys, dr3, dr3.cli; print(sorted({'jax', 'numpy', 'importlib.metadata'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_has_one_source():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/dr3/__init__.py"
    assert f"version: {dr3.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert metadata.version("dr3") == dr3.__version__


def public_functions():
    """Of `dr3` and of every room, each once."""
    rooms = [getattr(dr3, module.name) for module in pkgutil.iter_modules(dr3.__path__) if module.name in dr3.__all__]
    offered = {f"{room.__name__}.{name}": getattr(room, name) for room in (dr3, *rooms) for name in room.__all__}
    found = {inspect.unwrap(thing): name for name, thing in offered.items() if callable(thing)}
    return {name: thing for thing, name in found.items() if inspect.isfunction(thing)}


@pytest.mark.parametrize(("name", "function"), public_functions().items())
def test_a_docstring_names_every_argument(name, function):
    described = re.findall(r"^    (\w+): \S", _section(function, "Args"), re.MULTILINE)
    assert described == list(inspect.signature(function).parameters), f"{name} says Args: {described}"


def public_methods():
    """Of every class that `dr3` itself offers: what users call, and what an extension implements or overrides."""
    offered = (getattr(dr3, name) for name in dr3.__all__)
    classes = dict.fromkeys(base for cls in offered if inspect.isclass(cls) for base in reversed(cls.__mro__))
    for cls in (one for one in classes if one.__module__.startswith("dr3.")):
        for name, of in vars(cls).items():
            function = of.__func__ if isinstance(of, classmethod | staticmethod) else of
            if inspect.isfunction(function) and (not name.startswith("_") or (cls in CALLED and name == "__call__")):
                yield pytest.param(cls, name, id=f"{cls.__name__}.{name}")


CALLED = (dr3.Regularizer, dr3.Evaluator)
# What a class need not say again: its bases, and the contracts that classes fulfil without having them as bases.
CONTRACTS = (dr3.Method, WideRegularizer)


@pytest.mark.parametrize(("cls", "name"), [*public_methods()])
def test_a_method_names_every_argument(cls, name):
    said = {
        tuple(re.findall(r"^    (\w+): \S", _section(vars(one)[name], "Args"), re.MULTILINE))
        for one in (*cls.__mro__, *CONTRACTS)
        if name in vars(one)
    }
    arguments = [one for one in inspect.signature(getattr(cls, name)).parameters if one != "self"]
    # Where only the place counts, a discrete method calls its model a critic.
    assert said & {tuple(arguments), tuple("model" if one == "critic" else one for one in arguments)}, arguments


def _section(function, title):
    """What is indented under `Args:`."""
    found = re.search(rf"^{title}:\n((?:    .*\n?)+)", inspect.getdoc(function) or "", re.MULTILINE)
    return found[1] if found else ""


def test_the_great_ones_say_what_they_return_and_raise():
    for function in (dr3.load, dr3.register, dr3.train):
        assert _section(function, "Returns")
        assert "UserError:" in _section(function, "Raises")
