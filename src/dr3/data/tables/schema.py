"""What the columns of a table mean: which are the observation, the action, the reward, and how episodes end."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from dr3.data.checks import MOST_ACTIONS, refuse
from dr3.errors import UserError, did_you_mean
from dr3.files import read_toml

MOST = 2**24  # numbers in a column of lists
LARGEST = float(np.finfo(np.float32).max)
UNKNOWN = "?"  # what `dr3 data schema` writes where it found no column

Missing = float | Literal["drop", "flag"]


@dataclass(frozen=True)
class Schema:
    """Names of columns, and what to do with what is in them. In a file it is TOML with the same names.

    Names of columns may be patterns (`visits_*`) wherever several are meant. A single name in `action` is a discrete
    action: an integer from 0, or one of its `categories`, in their order. A list, or a column of lists, is a vector.
    """

    observation: tuple[str, ...]
    action: str | tuple[str, ...]
    reward: str
    episode: str | None = None
    time: str | None = None  # the order inside an episode; None: the order of the rows
    terminal: str | None = None  # true where the process itself ended
    timeout: str | None = None  # true where the log was cut
    ends: Literal["terminal", "timeout"] | None = None  # what an episode's last row is that neither column marks
    next_observation: tuple[str, ...] = ()  # as many as in `observation`, in its order
    next_action: str | tuple[str, ...] | None = None
    mask: str | tuple[str, ...] | None = None  # a column for each action, or one of lists
    next_mask: str | tuple[str, ...] | None = None
    propensity: str | None = None  # the probability that the logging policy gave to the action
    num_actions: int | None = None
    action_low: float | None = None
    action_high: float | None = None
    step: float | None = None  # the time between rows (of dates: in seconds); where it is longer, the episode is cut
    duplicates: Literal["refuse", "first", "last"] = "refuse"  # of rows with one episode and one time
    categories: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # a column of 0 and 1 for each of them
    missing: Mapping[str, Missing] = field(
        default_factory=dict
    )  # a number; "flag": 0, and a column that says so; "drop"
    sizes: Mapping[str, int] = field(default_factory=dict)  # of columns of lists
    world: str | None = None  # where policies can be tried

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def of(cls, given: Schema | Mapping[str, Any] | str | os.PathLike[str], *, where: str = "the schema") -> Schema:
        """A schema from what a user has: a mapping, or the name of a TOML file.

        Args:
            given: The schema itself, a mapping of its names, or a file.
            where: What to call a mapping in a refusal.

        Raises:
            UserError: A name is not one of a schema's, or its value is of another kind.
        """
        if isinstance(given, Schema):
            return given
        if not isinstance(given, Mapping):
            where, given = str(given), read_toml(Path(given))
        known = [one.name for one in dataclasses.fields(cls)]
        for name in given:
            if name not in known:
                refuse(where, f"a schema has no {name!r}; it has {', '.join(known)}{did_you_mean(name, known)}")
        for name in ("observation", "action", "reward"):
            if name not in given:
                refuse(where, f"{name!r} is missing; a schema names the columns of observation, action and reward.")
        try:
            return cls(**{name: _frozen(value) for name, value in given.items()})
        except UserError as error:
            refuse(where, str(error).removeprefix("the schema: "))

    def resolved(self, names: Sequence[str], source: str) -> Schema:
        """With the columns of a table in place of patterns.

        Args:
            names: Of all columns that the table has.
            source: What to call the table in a refusal.
        """
        mask = self._in_order_of_actions(self.mask, names, source)
        following = self._in_order_of_actions(self.next_mask, names, source)
        used = {*_several(self.action), self.reward, self.episode, self.time, self.terminal, self.timeout}
        used |= {*_several(mask), *_several(following), *_several(self.next_action), self.propensity}
        used |= set(_expanded(self.next_observation, names, source, "next_observation"))
        changes: dict[str, Any] = {
            "observation": _expanded(self.observation, names, source, "observation", used),
            "next_observation": _expanded(self.next_observation, names, source, "next_observation"),
            "mask": mask,
            "next_mask": following,
        }
        for role in ("action", "next_action"):
            if isinstance(value := getattr(self, role), tuple):
                changes[role] = _expanded(value, names, source, role)
        for role in ("action", "reward", "episode", "time", "terminal", "timeout", "next_action", "propensity"):
            if isinstance(value := getattr(self, role), str):
                check_there(value, names, source, role)
        schema = dataclasses.replace(self, **changes)
        if schema.next_observation and len(schema.next_observation) != len(schema.observation):
            refuse(
                source,
                f"the schema's 'next_observation' names {len(schema.next_observation)} columns, but 'observation' "
                f"{len(schema.observation)}; they must be the same ones, in the same order.",
            )
        for part in ("categories", "missing"):
            for name in getattr(schema, part):
                check_there(name, names, source, part)
        return schema

    def _in_order_of_actions(
        self, given: str | tuple[str, ...] | None, names: Sequence[str], source: str
    ) -> str | tuple[str, ...] | None:
        """The columns of a mask. What `*` stands for in allow_* is the action's name or number, and says its place."""
        if given is None or given in names:
            if given is not None:
                check_there(str(given), names, source, "mask")
            return given
        if isinstance(given, tuple) and not any(_is_pattern(one) for one in given):
            return _expanded(given, names, source, "mask")
        pattern = given if isinstance(given, str) else given[0]
        if not isinstance(given, str) and len(given) > 1:
            refuse(source, "the schema's 'mask' is one pattern, or a list of columns in the order of the actions.")
        if not _is_pattern(pattern):
            check_there(pattern, names, source, "mask")
        found = _expanded((pattern,), names, source, "mask")
        before, after = pattern.split("*", 1) if pattern.count("*") == 1 else (pattern, "")
        middles = [name[len(before) : len(name) - len(after) or None] for name in found]
        labels = [str(one) for one in self.categories.get(str(self.action), range(len(found)))]
        if sorted(middles) != sorted(labels):
            refuse(
                source,
                f"the schema's 'mask' {pattern!r} finds {', '.join(found)}, which do not name the actions "
                f"{', '.join(labels)}; list the columns in the order of the actions.",
            )
        return tuple(found[middles.index(label)] for label in labels)

    def to_toml(self) -> str:
        """The text of a file that `Schema.of` reads back as this schema."""
        lines, tables = [], []
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if isinstance(value, Mapping):
                if value:
                    entries = [f"{json.dumps(name)} = {_literal(entry)}" for name, entry in value.items()]
                    tables += ["", f"[{one.name}]", *entries]
            elif value is not None and value != one.default:
                lines.append(f"{one.name} = {_literal(value)}")
        return "\n".join([*lines, *tables]) + "\n"


def _literal(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _frozen(entry) for name, entry in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _several(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value or ()


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def check_there(name: str, names: Sequence[str], source: str, role: str) -> None:
    if name == UNKNOWN:
        refuse(source, f"the schema leaves {role!r} open ({UNKNOWN!r}); put the name of its column there.")
    if name not in names:
        refuse(source, f"there is no column {name!r}, which the schema names in {role!r}{did_you_mean(name, names)}")


def _expanded(
    patterns: Sequence[str], names: Sequence[str], source: str, role: str, not_these: set[Any] | None = None
) -> tuple[str, ...]:
    """The columns that patterns stand for, each once. A pattern leaves out what has another role; a name does not."""
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern in names or not _is_pattern(pattern) or pattern == UNKNOWN:
            check_there(pattern, names, source, role)
            found[pattern] = None
            continue
        matching = [one for one in names if fnmatch.fnmatchcase(one, pattern) and one not in (not_these or ())]
        if not matching:
            refuse(source, f"no column fits {pattern!r}, which the schema names in {role!r}.")
        found |= dict.fromkeys(matching)
    return tuple(found)


def _check(schema: Schema) -> None:
    hints = typing.get_type_hints(Schema)

    def wrong(name: str, needed: str) -> NoReturn:
        raise UserError(f"the schema: {name!r} must be {needed}, not {getattr(schema, name)!r}.")

    for name in hints:
        value = getattr(schema, name)
        if value is None and name not in ("observation", "action", "reward"):
            continue
        if name in ("observation", "next_observation") and not _are_names(value):
            wrong(name, "a list of columns")
        if name in ("action", "next_action", "mask", "next_mask") and not (isinstance(value, str) or _are_names(value)):
            wrong(name, "a column or a list of columns")
        if name in ("reward", "episode", "time", "terminal", "timeout", "propensity") and not isinstance(value, str):
            wrong(name, "the name of a column")
        if name in ("action_low", "action_high", "step") and not _is_number(value):
            wrong(name, "a number")
        if name in ("categories", "missing", "sizes") and not isinstance(value, Mapping):
            wrong(name, f"a table of columns: [{name}]")
        if name == "world" and not isinstance(value, str):
            wrong(name, "the name of a world")
    if not schema.observation:
        wrong("observation", "a list of at least one column")
    if schema.ends not in (None, "terminal", "timeout"):
        wrong("ends", "'terminal' or 'timeout'")
    if schema.duplicates not in ("refuse", "first", "last"):
        wrong("duplicates", "'refuse', 'first' or 'last'")
    if schema.step is not None and schema.step <= 0:
        wrong("step", "above 0")
    if schema.num_actions is not None and not _is_whole(schema.num_actions, MOST_ACTIONS):
        wrong("num_actions", f"a whole number from 1 to {MOST_ACTIONS}")
    for name, size in schema.sizes.items():
        if not _is_whole(size, MOST):
            raise UserError(f"the schema: the size of {name!r} must be a whole number above 0, not {size!r}.")
    for name, values in schema.categories.items():
        if not isinstance(values, tuple | list) or not values or len(set(map(str, values))) < len(values):
            raise UserError(
                f"the schema: the categories of {name!r} must be a list of different values, not {values!r}."
            )
    for name, rule in schema.missing.items():
        if rule not in ("drop", "flag") and not _is_number(rule):
            raise UserError(f"the schema: 'missing' of {name!r} is a number, 'flag' or 'drop', not {rule!r}.")
    if schema.next_mask is not None and schema.mask is None:
        raise UserError("the schema: 'next_mask' is there but 'mask' is not; give both, or 'mask' alone.")


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(one, str) for one in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST  # false for NaN


def _is_whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
