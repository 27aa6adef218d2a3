"""Names that mean a method, a regularizer, a reader or a world: dr3's own, and those that plugins bring."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any, Literal, TypeVar, overload

from dr3.errors import UserError, did_you_mean
from dr3.plugins import home_of, load_named_plugins, recall, remember

T = TypeVar("T")
Kind = Literal["method", "regularizer", "reader", "world"]

_added: dict[Kind, dict[str, Any]] = {"method": {}, "regularizer": {}, "reader": {}, "world": {}}
_registries: dict[Kind, Registry] = {}


class Registry(Mapping[str, Any]):
    """All names of one kind, in the order: dr3's own, registered in this process, of entry points (`dr3.methods`, …).

    An entry point is imported when its name is looked up, and not before.
    """

    def __init__(self, kind: Kind, built_in: Mapping[str, Any]) -> None:
        self.kind: Kind = kind
        self.built_in = dict(built_in)
        _registries[kind] = self
        for name in _added[kind]:
            self.refuse_own(name)

    def __getitem__(self, name: str) -> Any:
        if name in self.built_in:
            return self.built_in[name]
        load_named_plugins()
        if name not in _added[self.kind]:
            self._import(self._entry_points()[name])  # a KeyError where there is none
        return _added[self.kind][name]

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in iter(self)

    def __iter__(self) -> Iterator[str]:
        load_named_plugins()
        return iter(dict.fromkeys([*self.built_in, *_added[self.kind], *self._entry_points()]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def lookup(self, name: str) -> Any:
        """What a name means, or one sentence that lists the names there are."""
        if name not in self:
            known = ", ".join(sorted(self))
            raise UserError(f"There is no {self.kind} {name!r}; there are {known}{did_you_mean(name, self)}")
        return self[name]

    def class_of(self, name: str, home: str | None) -> Any:
        """The class that a record speaks of; `home` is where it lived, None of dr3's own."""
        if home is None or (name in self and home_of(self[name]) == home):
            return self.lookup(name)
        found = recall(home)
        # Not whatever lives there: a record must not be able to call any function of any module.
        if kind_of(found) == self.kind and found.name == name:
            return found
        if name in self and name not in self.built_in:  # it has moved to another module
            return self[name]
        module = home.partition(":")[0]
        if module == "__main__":
            raise UserError(
                f"The {self.kind} {name!r} was defined in a script ({home}): move it to a module of its own and name "
                "that with --plugin MODULE."
            )
        raise UserError(
            f"The {self.kind} {name!r} lives in the module {module}, which is not imported unasked: install the "
            f"package that brings it, or say --plugin {module} (in Python: import {module} first)."
        )

    def refuse_own(self, name: str) -> None:
        if name in self.built_in:
            raise UserError(f"The {self.kind} {name!r} is one of dr3's own: give yours another name.")

    def _entry_points(self) -> dict[str, metadata.EntryPoint]:
        points: dict[str, metadata.EntryPoint] = {}
        for point in metadata.entry_points(group=f"dr3.{self.kind}s"):
            name = _spelled(self.kind, point.name)
            self.refuse_own(name)
            if points.setdefault(name, point).value != point.value:
                raise UserError(
                    f"Two installed packages bring a {self.kind} {name!r}: {points[name].value} and {point.value}; "
                    "remove one of them."
                )
        return points

    def _import(self, point: metadata.EntryPoint) -> None:
        try:
            found = point.load()
        except Exception as error:
            raise UserError(
                f"The {self.kind} {point.name!r} of an installed package lives in {point.value}, which cannot be "
                f"imported ({type(error).__name__}: {error})."
            ) from error
        name = _spelled(self.kind, point.name)
        if self.kind in ("method", "regularizer") and name != getattr(found, "name", None):
            raise UserError(
                f"The entry point {name!r} of dr3.{self.kind}s leads to {point.value}, whose name is not that."
            )
        _add(self.kind, name, found)


def kind_of(thing: Any) -> Literal["method", "regularizer"] | None:
    """Whether a class is a method (it has an `update`) or a regularizer (a `coefficient`, and it can be called)."""
    if not (isinstance(thing, type) and dataclasses.is_dataclass(thing) and isinstance(getattr(thing, "name", 0), str)):
        return None
    if callable(getattr(thing, "update", None)):
        return "method"
    fields = {field.name for field in dataclasses.fields(thing)}
    return "regularizer" if "coefficient" in fields and "__call__" in dir(thing) else None


@overload
def register(thing: T, *, reader: str | None = None, world: str | None = None) -> T: ...
@overload
def register(*, reader: str) -> Callable[[T], T]: ...
@overload
def register(*, world: str) -> Callable[[T], T]: ...
def register(thing: Any = None, *, reader: str | None = None, world: str | None = None) -> Any:
    """Make a method, regularizer, reader or world of your own known by its name: a decorator.

        @dr3.register                       # a method or a regularizer: a frozen dataclass that says its `name`
        @dr3.register(reader=".rows")       # a function (path, *, discount) -> Transitions
        @dr3.register(world="mine/maze")    # a function (*, render_mode=None) -> gymnasium.Env

    It then has all that dr3's own have: commands, flags and help, resuming, reports, sweeps. Fields of a class that are
    floats become arguments of the compiled program, so that a sweep over them compiles once.

    Args:
        thing: The class or function. With `reader` or `world`, what is returned takes it.
        reader: The ending of the files that it reads.
        world: The name that `--env` and data know it by.

    Returns:
        The same class or function.

    Raises:
        UserError: It is neither, or its name is taken.
    """
    if thing is None:
        return lambda thing: register(thing, reader=reader, world=world)
    if reader is not None:
        _add("reader", _spelled("reader", reader), thing)
    elif world is not None:
        _add("world", world, thing)
    elif (kind := kind_of(thing)) is not None:
        _add(kind, thing.name, thing)
    else:
        raise UserError(
            f"{getattr(thing, '__name__', thing)} is neither a method nor a regularizer: those are dataclasses with a "
            "name, and with an update or with a coefficient and a __call__. Of a reader or a world, say which: "
            '@dr3.register(reader=".rows"), @dr3.register(world="mine/maze").'
        )
    return thing


def _spelled(kind: Kind, name: str) -> str:
    """A reader is known by an ending, with its dot."""
    return f".{name.lower().lstrip('.')}" if kind == "reader" else name


def _add(kind: Kind, name: str, thing: Any) -> None:
    if kind in _registries:
        _registries[kind].refuse_own(name)
    other = _added[kind].get(name)
    if other is not None and home_of(other) != home_of(thing):  # the same one anew is a cell of a notebook run again
        raise UserError(f"There are two of the {kind} {name!r}: {home_of(other)} and {home_of(thing)}.")
    if kind in ("method", "regularizer"):
        from dr3.hyperparameters import hyperparameters  # it loads JAX, which readers and worlds do without

        if kind_of(thing) != kind:
            raise UserError(f"{home_of(thing)} is no {kind}: see docs/extending.md.")
        hyperparameters(thing)
    remember(thing)
    _added[kind][name] = thing
