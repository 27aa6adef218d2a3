"""The configuration of a run: enough to build everything again, and to tell two runs apart.

What is read from a `config.json` is held to the same types and ranges as what is asked for: both are a `RunConfig`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dr3.data.source import absolute
from dr3.data.standardisation import Standardisation
from dr3.data.subsets import split_episodes
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions
from dr3.envs.parts import Parts
from dr3.errors import UserError
from dr3.files import read_json
from dr3.hyperparameters import MOST, check_settings, within
from dr3.methods import Spec
from dr3.runs.member import Member

FORMAT = 2  # since 2 the arrays of a checkpoint are named; 1 is read too
ACTIONS = {cls.__name__: cls for cls in (DiscreteActions, ContinuousActions)}
# A finished run is lengthened by asking for more steps; a run that it started from may have moved; data is known by its
# fingerprint, whatever its name and wherever it is; and a run keeps to the cores that it began with.
_MAY_CHANGE = (
    "steps",
    "init_from.run",
    "data.name",
    "data.source",
    "data.found_at",
    "data.discount",
    "data.schema",
    "one_core",
)
_ALWAYS = ("source", "world")  # what every record of data has, though it be null
# Cadences that are not asked for follow from the steps, and how many cores there are from the machine.
_NOT_IN_NAME = ("steps", "metrics_every", "evaluate_every", "one_core")


@dataclass(frozen=True)
class DataConfig:
    """The table that a run learns from."""

    name: str
    source: str | None
    rows: int
    world: str | None
    discount: float  # of its Monte-Carlo returns, which need not be the method's
    fingerprint: str
    found_at: str | None = None  # the source with whole paths, so that it is found from any folder
    held_out: str | None = None  # the share of the episodes that was kept aside: `split_episodes` finds them again
    kept: str | None = None  # the fingerprint of the others, where some were
    schema: str | None = (
        None  # of a table of decisions: what its columns mean, as TOML, so that new rows can be encoded
    )

    def __post_init__(self) -> None:
        check_settings(self)
        within("rows", self.rows, 1)
        within("discount", self.discount, 0, 1)


@dataclass(frozen=True)
class StartConfig:
    """The critic of another run that all members start from. Its fingerprint counts: the other run may move."""

    run: str
    step: int
    member: int
    fingerprint: str

    def __post_init__(self) -> None:
        check_settings(self)
        within("step", self.step, 0)
        within("member", self.member, 0)


@dataclass(frozen=True)
class RunConfig:
    """Every choice of a run, defaults and all."""

    data: DataConfig
    spec: Spec
    members: tuple[Member, ...]
    steps: int
    metrics_every: int
    evaluate_every: int
    evaluation: dict[str, Any] | None = None  # as the evaluator describes itself
    execution: Literal["threads", "stacked"] = "threads"
    one_core: bool = False
    init_from: StartConfig | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        for name in ("steps", "metrics_every", "evaluate_every"):
            within(name, getattr(self, name), 1)
        with _in_part("action_space"):
            check_settings(actions := self.spec.action_space)
            (name, count), *_ = dataclasses.asdict(actions).items()
            within(name, count, 1)
        check_settings(self.spec)
        within("every number in observation_shape", min(self.spec.observation_shape, default=1), 1)
        within("the numbers of an observation", math.prod(self.spec.observation_shape), 1, MOST)
        if not self.members:
            raise UserError("it has no members.")
        if not isinstance(self.evaluation, dict | None):
            raise UserError(f"evaluation must be a record or none, not {self.evaluation!r}.")

    @classmethod
    def of(
        cls,
        data: Transitions,
        members: Sequence[Member],
        *,
        steps: int,
        metrics_every: int | None = None,
        evaluate_every: int | None = None,
        held_out: str | None = None,
        **others: Any,
    ) -> RunConfig:
        """Of what is asked for: cadences that are not follow from `steps`."""
        known = (data.name, data.source, len(data), data.world, data.returns_discount, data.fingerprint())
        learned_from = data if held_out is None else split_episodes(data, held_out)[0]
        kept = None if held_out is None else learned_from.fingerprint()
        return cls(
            DataConfig(
                *known,
                found_at=None if data.source is None else absolute(data.source),
                held_out=held_out,
                kept=kept,
                schema=None if data.schema is None else data.schema.to_toml(),
            ),
            Spec.of(learned_from, standardise=any(getattr(member.method, "standardise", False) for member in members)),
            tuple(members),
            steps,
            metrics_every or max(1, steps // 100),
            evaluate_every or max(1, steps // 20),
            **others,
        )

    # --- As a file ---

    @classmethod
    def read(cls, file: Path) -> RunConfig:
        """The configuration in a `config.json`, or one sentence with the file and the field at fault."""
        needed = {"data": dict, "observation_shape": list, "action_space": dict, "members": list}
        record = read_json(file, **needed, steps=int, metrics_every=int, evaluate_every=int)
        version = record.get("format", 1)
        if type(version) is not int or not 1 <= version <= FORMAT:
            raise UserError(f"{file} is of format {version!r}, and this dr3 knows 1 up to {FORMAT}; update dr3.")
        try:
            return cls.from_json(record)
        except UserError as mistake:
            raise UserError(f"{file}: {mistake}") from None
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"{file} is not of a run that this dr3 can read ({error!r}).") from None

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> RunConfig:
        """The inverse of `to_json`. What older versions did not write is as it was with them."""
        members = []
        for number, one in enumerate(record["members"]):
            with _in_part(f"members[{number}]"):
                members.append(Member.from_json(one))
        discount: dict[str, Any] = {"discount": members[0].method.discount} if members else {}
        space, start = dict(record["action_space"]), record.get("init_from")
        actions = ACTIONS[space.pop("kind")](**space)
        with _in_part("data"):
            data = DataConfig(**discount | record["data"])
        names = [field.name for field in dataclasses.fields(cls)]
        others: dict[str, Any] = {name: record[name] for name in names[names.index("steps") :] if name in record}
        with _in_part("init_from"):
            others["init_from"] = None if start is None else StartConfig(**start)
        with _in_part("parts"):
            parts = None if (text := record.get("parts")) is None else Parts.from_json(text)
            if parts is not None and record["observation_shape"] != [parts.nbytes]:
                raise UserError(
                    f"they have {parts.nbytes} bytes, but observation_shape is {record['observation_shape']}."
                )
        columns = record.get("standardisation")
        with _in_part("standardisation"):
            shape = record["observation_shape"] if parts is None else [parts.numbers]
            columns = None if columns is None else _standardisation(columns, shape)
        spec = Spec(tuple(record["observation_shape"]), actions, columns, parts)
        return cls(data, spec, tuple(members), **others)

    def to_json(self) -> dict[str, Any]:
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del record["spec"], record["init_from"]
        actions, columns = self.spec.action_space, self.spec.standardisation
        known = dataclasses.asdict(self.data)
        return {
            "format": FORMAT,
            **record,
            "data": {key: one for key, one in known.items() if one is not None or key in _ALWAYS},
            "observation_shape": list(self.spec.observation_shape),
            "action_space": {"kind": type(actions).__name__, **dataclasses.asdict(actions)},
            **(
                {}
                if columns is None
                else {"standardisation": {"mean": [*columns.mean], "deviation": [*columns.deviation]}}
            ),
            **({} if self.spec.parts is None else {"parts": self.spec.parts.to_json()}),
            "members": [member.to_json() for member in self.members],
            **({} if self.init_from is None else {"init_from": dataclasses.asdict(self.init_from)}),
        }

    # --- Beside another ---

    @property
    def folder_name(self) -> str:
        """A name that follows from the configuration, so that a rerun finds its run, whichever version began it."""
        lasting = {key: value for key, value in self.to_json().items() if key not in _NOT_IN_NAME}
        lasting["format"] = 1
        del lasting["data"]["discount"]  # in the fingerprint
        for name in ("found_at", "schema"):
            lasting["data"].pop(name, None)
        digest = hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()
        return f"{self.members[0].method.name}-{self.data.name}-{digest[:8]}"

    def check_continues(self, path: Path, stored: RunConfig) -> None:
        """Refuse to go on with another run than the one that the folder holds."""
        if len(stored.members) != len(self.members):
            raise UserError(
                f"{path} holds another run: it has {_count(stored)} and the one asked for {_count(self)}; choose "
                "another folder."
            )
        there, here = _flatten(stored.to_json()), _flatten(self.to_json())
        for key in {**there, **here}:
            if key not in _MAY_CHANGE and there.get(key) != here.get(key):
                raise UserError(
                    f"{path} holds another run: its {key} is {there.get(key)!r} and the one asked for is "
                    f"{here.get(key)!r}; choose another folder."
                )
        if self.steps < stored.steps:
            raise UserError(f"{path} is a run of {stored.steps} steps; it can be lengthened, not cut to {self.steps}.")


@contextmanager
def _in_part(name: str) -> Generator[None]:
    """What is wrong is said with the part of the configuration that it is in."""
    try:
        yield
    except UserError as mistake:
        raise UserError(f"{name}: {mistake}") from None


def _standardisation(record: dict[str, Any], shape: list[int]) -> Standardisation:
    columns = Standardisation(tuple(record["mean"]), tuple(record["deviation"]))
    for name, column in dataclasses.asdict(columns).items():
        if [len(column)] != shape or not all(isinstance(value, float) and math.isfinite(value) for value in column):
            raise UserError(f"{name} must be a finite number for each of the {shape[0]} columns.")
    if min(columns.deviation) <= 0:
        raise UserError("every deviation must be above 0.")
    return columns


def _count(config: RunConfig) -> str:
    return "1 member" if len(config.members) == 1 else f"{len(config.members)} members"


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        pairs = [(f"{prefix}.{key}" if prefix else key, item) for key, item in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{prefix}[{number}]", item) for number, item in enumerate(value)]
    else:
        return {prefix: value}
    return {key: leaf for name, item in pairs for key, leaf in _flatten(item, name).items()}
