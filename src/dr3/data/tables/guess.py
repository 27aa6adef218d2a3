"""A first guess of what a table's columns mean, as a schema to be read and mended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dr3.data.gate import gated
from dr3.data.tables.schema import UNKNOWN
from dr3.data.tables.source import Source, arrow, open_source

LOOKED_AT = 200_000  # rows
MOST_CATEGORIES = 50  # of text: more of them are names of things

# Words that people use, the surest first. They are looked for as whole words of a column's name.
WORDS = {
    "reward": ("reward", "rewards", "profit", "revenue", "gain", "payoff", "margin"),
    "action": ("action", "actions", "decision", "offer", "arm", "treatment", "choice", "dose"),
    "episode": ("episode", "episode_id", "trajectory", "trajectory_id", "session", "session_id", "customer",
                "customer_id", "user_id", "patient_id", "stay_id"),
    "time": ("time", "timestamp", "step", "t", "datetime", "date", "ts", "week", "day", "month", "event_time"),
    "terminal": ("terminal", "terminated", "termination", "is_terminal", "churned", "ended"),
    "timeout": ("timeout", "truncated", "truncation", "is_truncated", "censored"),
    "propensity": ("propensity", "action_probability", "action_prob", "pscore", "behavior_probability", "logging_prob",
                   "probability", "prob"),
}  # fmt: skip
EITHER_END = ("done", "dones", "end", "is_last", "last")  # a terminal or a time-out: the name does not say
MASKS = ("mask_", "action_mask_", "allow_", "allowed_", "can_", "eligible_", "valid_")
MASK_LISTS = ("mask", "action_mask", "allowed", "allowed_actions", "eligible_actions", "valid_actions")


@gated
def guess_schema(given: Any) -> str:
    """The text of a schema for a table, with comments on what was guessed and what must be said.

    Args:
        given: A file, a folder, or a table in memory, as `read_table` takes it.

    Returns:
        TOML. What no column's name tells is left open as "?", which a reader refuses until it is filled in.
    """
    source = open_source(given)
    return "\n".join(_Guess(source).lines()) + "\n"


class _Guess:
    def __init__(self, source: Source) -> None:
        self.source, self.pyarrow = source, arrow(source.name)
        self.types = self.pyarrow.types
        self.free = list(source.names)
        parts = []
        for part in source.parts(source.names):
            parts.append(part.columns)
            if sum(len(one) for one in parts) >= LOOKED_AT:
                break
        self.head = self.pyarrow.Table.from_batches(parts, source.types) if parts else source.types.empty_table()

    def lines(self) -> list[str]:
        roles = {role: self._find(words) for role, words in WORDS.items()}
        following = {name: f"next_{name}" for name in self.source.names if f"next_{name}" in self.source.names}
        self.free = [name for name in self.free if name not in following.values()]
        mask, labels = self._mask(roles["action"])
        if roles["terminal"] is None:
            roles["terminal"] = self._last_flag(roles["episode"], roles["time"])
        either = self._find(EITHER_END) if roles["terminal"] is None and roles["timeout"] is None else None
        if roles["action"] and labels is None:
            labels = self._categories(roles["action"])
        observed, categories, missing, unused = self._observed()

        out = [
            f"# A first guess for {self.source.title}, from the names and {len(self.head):,} rows. Read every line.",
            "",
            f"observation = {_listed(observed)}",
        ]
        if unused:
            out += ["# Left out, because they look like names of things or hold no numbers: " + ", ".join(unused)]
        out += self._role("action", roles["action"], "the decision")
        out += self._role("reward", roles["reward"], "what the decision was worth")
        if roles["episode"]:
            out += self._role("episode", roles["episode"], "")
        else:
            out += ["# episode = …  # whose decisions follow each other; without it, episodes are cut at their ends"]
        out += (
            self._role("time", roles["time"], "")
            if roles["time"]
            else ["# time = …  # without it: the order of the rows"]
        )
        out += [""]
        for role, what in (("terminal", "the process itself ended: nothing follows"), ("timeout", "the log was cut")):
            out += [f'{role} = "{roles[role]}"  # true where {what}'] if roles[role] else []
        if either:
            out += [
                f'terminal = "{UNKNOWN}"  # {either!r} marks ends: "{either}" here if nothing follows them,',
                f'#               or timeout = "{either}" and ends = "timeout" if the log only stops there',
            ]
        elif roles["terminal"] is None:
            out += [
                f'ends = "{UNKNOWN}"  # how an episode ends that no column marks: "terminal" if nothing follows it,',
                '#           "timeout" if the log only stops there',
            ]
        if mask is not None:
            out += [f"mask = {mask if isinstance(mask, str) else _listed(mask)}  # which actions were allowed"]
        if roles["propensity"]:
            out += [f'propensity = "{roles["propensity"]}"']
        if nexts := [following[name] for name in observed if name in following]:
            out += (
                [f"next_observation = {_listed(nexts)}"]
                if len(nexts) == len(observed)
                else ["# Some columns have a next_… of their own, but not all of the observation's: they are not used."]
            )
        if labels is not None and roles["action"]:
            categories = {roles["action"]: labels, **categories}
        if categories:
            out += ["", "[categories]  # each becomes a column of 0 and 1; a value that is not listed is refused"]
            out += [f"{json.dumps(name)} = {_listed(values)}" for name, values in categories.items()]
        if missing:
            out += [
                "",
                '[missing]  # a number to put there, "flag" (0, and a column that says so), or "drop" (the row)',
            ]
            out += [f'{json.dumps(name)} = "{UNKNOWN}"  # {count:,} missing' for name, count in missing.items()]
        return out

    def _role(self, role: str, found: str | None, what: str) -> list[str]:
        if found is None:
            return [f'{role} = "{UNKNOWN}"  # {what}: which column is it?']
        return [f"{role} = {json.dumps(found)}"]

    def _find(self, words: tuple[str, ...]) -> str | None:
        """The column that has one of the words as its name, or else as a part of it."""
        tests: list[Callable[[str, str], bool]] = [
            lambda name, word: name.lower() == word,
            lambda name, word: word in re.split(r"[^a-z0-9]+", name.lower()) and not name.lower().startswith("next"),
        ]
        for fits in tests:
            for word in words:
                for name in self.free:
                    if fits(name, word) and len(word) > (1 if fits is tests[1] else 0):
                        self.free.remove(name)
                        return name
        return None

    def _last_flag(self, episode: str | None, time: str | None) -> str | None:
        """A column of true and false that is true in the last row of some episodes, and nowhere else."""
        flags = [name for name in self.free if self.types.is_boolean(self.source.types.field(name).type)]
        if episode is None or time is None or not flags or not len(self.head):
            return None
        order = self.pyarrow.compute.sort_indices(self.head, sort_keys=[(episode, "ascending"), (time, "ascending")])
        whose = self.head[episode].take(order).combine_chunks().dictionary_encode()
        whose = (whose.combine_chunks() if hasattr(whose, "combine_chunks") else whose).indices.to_numpy()
        followed = np.r_[whose[1:] == whose[:-1], False]
        for name in flags:
            marked = self.head[name].fill_null(False).take(order).to_numpy()
            if marked.any() and not (marked & followed).any():
                self.free.remove(name)
                return name
        return None

    def _mask(self, action: str | None) -> tuple[str | list[str] | None, list[Any] | None]:
        """The pattern, list or column of a mask, and the actions in its order where the columns name them."""
        for name in self.free:
            if name.lower() in MASK_LISTS and self._is_list(name):
                self.free.remove(name)
                return json.dumps(name), None
        for prefix in MASKS:
            columns = [name for name in self.free if name.lower().startswith(prefix)]
            if len(columns) < 2:
                continue
            self.free = [name for name in self.free if name not in columns]
            ends = [name[len(prefix) :] for name in columns]
            seen = {str(one) for one in self._values(action)} if action else set()
            text = action is not None and not self.types.is_integer(self.source.types.field(action).type)
            if text and seen <= set(ends):
                return json.dumps(f"{prefix}*"), ends
            if sorted(ends) == sorted(map(str, range(len(ends)))):
                return json.dumps(f"{prefix}*"), None
            return columns, None
        return None, None

    def _observed(self) -> tuple[list[str], dict[str, list[Any]], dict[str, int], list[str]]:
        observed, unused = [], []
        categories: dict[str, list[Any]] = {}
        missing: dict[str, int] = {}
        for name in self.free:
            kind = self.source.types.field(name).type
            kind = kind.value_type if self.types.is_dictionary(kind) else kind
            numbers = self.types.is_integer(kind) or self.types.is_floating(kind) or self.types.is_boolean(kind)
            numbers = numbers or self.types.is_decimal(kind)
            if (labels := self._categories(name)) is not None:
                categories[name] = labels
            elif not numbers and not self._is_list(name):
                unused.append(name)
                continue
            if re.search(r"(^|_)id$", name.lower()):
                categories.pop(name, None)
                unused.append(name)
                continue
            observed.append(name)
            column = self.head[name]
            gone = column.null_count
            if self.types.is_floating(kind) and not self.types.is_dictionary(self.source.types.field(name).type):
                gone = int(np.isnan(column.to_numpy(zero_copy_only=False).astype(np.float64)).sum())
            if gone:
                missing[name] = gone
        return observed, categories, missing, unused

    def _is_list(self, name: str) -> bool:
        kind = self.source.types.field(name).type
        return hasattr(kind, "value_field")

    def _values(self, name: str) -> list[Any]:
        found = self.head[name].unique()
        return [one for one in found.to_pylist() if one is not None]

    def _categories(self, name: str) -> list[Any] | None:
        """The different values of a column of text, unless there are too many."""
        kind = self.source.types.field(name).type
        kind = kind.value_type if self.types.is_dictionary(kind) else kind
        if not (self.types.is_string(kind) or self.types.is_large_string(kind)):
            return None
        values = self._values(name)
        return sorted(values) if 0 < len(values) <= MOST_CATEGORIES else None


def _listed(values: list[Any]) -> str:
    return json.dumps(values, ensure_ascii=False)
