"""A user's own grid, as a TOML file: methods x data x regularizers x coefficients x seeds."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from dr3.data import files_of
from dr3.errors import UserError
from dr3.files import read_toml
from dr3.methods import METHODS, Method
from dr3.notation import settings_for, split
from dr3.regularizers import REGULARIZERS, Regularizer
from dr3.regularizers.parse import parse_regularizer
from dr3.sweeps.task import Job, Preparation, Task, data_of

KEYS = (
    "data",
    "methods",
    "regularizers",
    "coefficients",
    "seeds",
    "seeds_per_task",
    "steps",
    "env",
    "episodes",
    "metrics_every",
    "evaluate_every",
    "prepare",
)


def read_grid(file: str | Path, run_command: Callable[[list[str]], Any]) -> list[Job]:
    """The tasks that a file describes: one for each choice of method, its settings, data and regularizer.

    All seeds of such a choice are members of one population, or `seeds_per_task` of them. A list where a setting
    takes one value is a choice of values.

    Args:
        file: The grid, in TOML.
        run_command: Carries out the words of a line of [prepare].
    """
    path = Path(file)
    return _Grid(path, read_toml(path), run_command).jobs()


def missing_files(jobs: Iterable[Job]) -> list[str]:
    """The data files that are not there and that no preparation makes.

    Args:
        jobs: Tasks and preparations.
    """
    jobs = list(jobs)
    made = {file for job in jobs if isinstance(job, Preparation) for file in (job.makes, *job.also)}
    return [file for file in data_of(jobs) if file not in made and not Path(file).exists()]


class _Grid:
    """One file, and sentences that name it and the key at fault."""

    def __init__(self, path: Path, table: dict[str, Any], run_command: Callable[[list[str]], Any]) -> None:
        self.path, self.table, self.run_command = path, table, run_command
        for key in table:
            if key not in KEYS:
                raise UserError(f"{path}: there is no key {key!r}; there are {', '.join(KEYS)}.")
        for key in ("data", "methods", "steps"):
            if key not in table:
                raise UserError(f"{path}: the key {key!r} is missing.")

    def jobs(self) -> list[Job]:
        preparations = self._preparations()
        makers = {one.makes: one.name for one in preparations}
        settings: dict[str, Any] = {
            "steps": self._whole("steps"),
            "env": self._env(),
            "episodes": self._whole("episodes", 10),
            "metrics_every": self._whole("metrics_every", None),
            "evaluate_every": self._whole("evaluate_every", None),
        }
        choices = itertools.product(self._methods(), self._words("data"), self._regularizers(), self._seeds())
        tasks = []
        for method, data, regularizer, seeds in choices:
            needs = tuple(dict.fromkeys(makers[file] for file in files_of(data) if file in makers))
            tasks.append(Task(data, method, (regularizer,), seeds, needs=needs, **settings))
        for task in tasks:
            task.members  # noqa: B018 (refuses what is no population, such as a seed twice)
        return [*preparations, *tasks]

    # --- What is varied ---

    def _methods(self) -> list[Method]:
        tables = self.table["methods"]
        if not isinstance(tables, dict) or not tables:
            raise UserError(f"{self.path}: methods are tables such as [methods.dqn].")
        return [method for name, settings in tables.items() for method in self._variants(name, settings)]

    def _variants(self, name: str, settings: Any) -> list[Method]:
        """One method with every choice of its settings."""
        place = f"methods.{name}"
        if not isinstance(settings, dict):
            raise UserError(f"{self.path}: {place} is a table of settings, not {settings!r}.")
        try:
            cls = METHODS.lookup(name)
        except UserError as mistake:
            raise UserError(f"{self.path}: {mistake}") from None
        types = get_type_hints(cls)
        hints = {field.name: types[field.name] for field in dataclasses.fields(cls)}
        choices: list[list[Any]] = []
        for key, value in settings.items():
            if key not in hints:
                raise UserError(f"{self.path}: {place} has no setting {key!r}; it has {', '.join(hints)}.")
            whole = get_origin(hints[key]) is tuple
            several = isinstance(value, list) and (not whole or all(isinstance(item, list) for item in value))
            values = value if several else [value]
            if not values:
                raise UserError(f"{self.path}: {place}.{key} is an empty list.")
            choices.append([self._setting(f"{place}.{key}", hints[key], item) for item in values])
        return [cls(**dict(zip(settings, chosen, strict=True))) for chosen in itertools.product(*choices)]

    def _regularizers(self) -> list[Regularizer | None]:
        """Every word; one that names no coefficient with each of `coefficients`, or with its own default."""
        coefficients = self.table.get("coefficients")
        if coefficients is not None:
            coefficients = [self._setting("coefficients", float, item) for item in self._list("coefficients")]
        chosen: list[Regularizer | None] = []
        without = False
        for word in self._words("regularizers", ["none"]):
            if word == "none":
                chosen.append(None)
                continue
            if "+" in word:
                chosen.append(self._sum(word))
                continue
            try:
                cls = REGULARIZERS.lookup(split(word)[0])
                settings = settings_for(cls, word)
            except UserError as mistake:
                raise UserError(f"{self.path}: regularizers: {mistake}") from None
            if "coefficient" in settings or coefficients is None:
                chosen.append(cls(**settings))
            else:
                without = True
                chosen += [cls(**{**settings, "coefficient": number}) for number in coefficients]
        if coefficients is not None and not without:
            raise UserError(f"{self.path}: coefficients are of regularizers that name none, and there is no such one.")
        return list(dict.fromkeys(chosen))

    def _sum(self, word: str) -> Regularizer | None:
        try:
            return parse_regularizer(word)
        except UserError as mistake:
            raise UserError(f"{self.path}: regularizers: {mistake}") from None

    def _seeds(self) -> list[tuple[int, ...]]:
        """The seeds of each population."""
        seeds = self.table.get("seeds", 1)
        if not isinstance(seeds, list):
            seeds = range(self._whole("seeds", 1))
        seeds = [self._setting("seeds", int, seed) for seed in seeds]
        if not seeds:
            raise UserError(f"{self.path}: seeds is an empty list.")
        size = self._whole("seeds_per_task", len(seeds))
        return [tuple(seeds[start : start + size]) for start in range(0, len(seeds), size)]

    # --- What comes first ---

    def _preparations(self) -> list[Preparation]:
        """[prepare]: `"FILE" = "a dr3 command that makes it"`."""
        commands = self.table.get("prepare", {})
        if not isinstance(commands, dict) or not all(isinstance(line, str) for line in commands.values()):
            raise UserError(f'{self.path}: prepare is a table of lines "FILE" = "data collect …".')
        lines = {file: self._command(line) for file, line in commands.items()}
        return [Preparation(file, self.run_command, {"arguments": line}) for file, line in lines.items()]

    def _command(self, line: str) -> list[str]:
        try:
            return shlex.split(line.removeprefix("dr3 "))
        except ValueError as error:
            raise UserError(f"{self.path}: prepare has a line that is no command ({error}): {line}") from None

    # --- Values ---

    def _list(self, key: str, default: Sequence[Any] = ()) -> list[Any]:
        value = self.table.get(key, list(default))
        value = value if isinstance(value, list) else [value]
        if not value:
            raise UserError(f"{self.path}: {key} is an empty list.")
        return value

    def _words(self, key: str, default: Sequence[str] = ()) -> list[str]:
        return [self._setting(key, str, item) for item in self._list(key, default)]

    def _env(self) -> str | None:
        env = self._setting("env", str, self.table.get("env", "auto"))
        return None if env == "none" else env

    def _whole(self, key: str, default: Any = None) -> Any:
        """A number from 1 on."""
        if key not in self.table:
            return default
        number = self._setting(key, int, self.table[key])
        if number < 1:
            raise UserError(f"{self.path}: {key} must be at least 1, not {number}.")
        return number

    def _setting(self, place: str, hint: Any, value: Any) -> Any:
        """The value in the type of its field: 1e5 is a whole number too, and a list is a tuple."""
        kind = type(value)
        if get_origin(hint) is UnionType:  # a setting that may also be None, which TOML cannot say
            hint = next(one for one in get_args(hint) if one is not NoneType)
        if get_origin(hint) is Literal:
            if value in get_args(hint):
                return value
            raise UserError(f"{self.path}: {place} is one of {', '.join(map(str, get_args(hint)))}, not {value!r}.")
        if get_origin(hint) is tuple and kind is list:
            return tuple(self._setting(place, get_args(hint)[0], item) for item in value)
        if hint is float and kind in (int, float):
            return float(value)
        if hint is int and kind is float and value.is_integer():
            return int(value)
        if kind is hint:
            return value
        names = {int: "a whole number", float: "a number", str: "a word in quotes", bool: "true or false"}
        raise UserError(f"{self.path}: {place} must be {names.get(hint, 'a list')}, not {value!r}.")
