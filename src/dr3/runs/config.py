"""The resolved configuration of a run: enough to build everything again, and to tell two runs apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions
from dr3.errors import UserError
from dr3.methods import Spec
from dr3.runs.member import Member

FORMAT = 1
# A finished run is lengthened by asking for more steps; a run that it started from may have moved; data is known by its
# fingerprint, whatever its name and wherever it is; and a run keeps to the cores that it began with.
_MAY_CHANGE = ("steps", "init_from.run", "data.name", "data.source", "data.discount", "one_core")
# Cadences that are not asked for follow from the steps, and how many cores there are from the machine.
_NOT_IN_NAME = ("steps", "metrics_every", "evaluate_every", "one_core")


def resolve(
    data: Transitions,
    members: Sequence[Member],
    evaluation: dict[str, Any] | None,
    *,
    steps: int,
    metrics_every: int | None,
    evaluate_every: int | None,
    execution: str,
    one_core: bool,
    init_from: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Every choice written out, defaults and all."""
    return {
        "format": FORMAT,
        "data": {
            "name": data.name,
            "source": data.source,
            "rows": len(data),
            "world": data.world,
            "discount": data.returns_discount,
            "fingerprint": data.fingerprint(),
        },
        "observation_shape": list(data.observations.shape[1:]),
        "action_space": {"kind": type(data.action_space).__name__, **asdict(data.action_space)},
        "members": [member.to_json() for member in members],
        "steps": steps,
        "metrics_every": metrics_every or max(1, steps // 100),
        "evaluate_every": evaluate_every or max(1, steps // 20),
        "evaluation": evaluation,
        "execution": execution,
        "one_core": one_core,
        **({} if init_from is None else {"init_from": init_from}),
    }


def folder_name(config: dict[str, Any]) -> str:
    """A name that follows from the configuration, so that a rerun finds its run."""
    lasting = {key: value for key, value in config.items() if key not in _NOT_IN_NAME}
    lasting["data"] = {key: value for key, value in config["data"].items() if key != "discount"}  # in the fingerprint
    digest = hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()
    return f"{config['members'][0]['method']['name']}-{config['data']['name']}-{digest[:8]}"


def check_same(path: Path, stored: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse to go on with another run than the one that the folder holds."""
    if len(stored["members"]) != len(asked["members"]):
        raise UserError(
            f"{path} holds another run: it has {_members(stored)} and the one asked for {_members(asked)}; choose "
            "another folder."
        )
    there, here = _flatten(stored), _flatten(asked)
    for key in {**there, **here}:
        if key not in _MAY_CHANGE and there.get(key) != here.get(key):
            raise UserError(
                f"{path} holds another run: its {key} is {there.get(key)!r} and the one asked for is "
                f"{here.get(key)!r}; choose another folder."
            )
    if asked["steps"] < stored["steps"]:
        raise UserError(
            f"{path} is a run of {stored['steps']} steps; it can be lengthened, not cut to {asked['steps']}."
        )


def _members(config: dict[str, Any]) -> str:
    count = len(config["members"])
    return "1 member" if count == 1 else f"{count} members"


def spec_of(config: dict[str, Any]) -> Spec:
    """The shapes that the run's networks fit."""
    kinds = {cls.__name__: cls for cls in (DiscreteActions, ContinuousActions)}
    space = dict(config["action_space"])
    return Spec(tuple(config["observation_shape"]), kinds[space.pop("kind")](**space))


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        pairs = [(f"{prefix}.{key}" if prefix else key, item) for key, item in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{prefix}[{number}]", item) for number, item in enumerate(value)]
    else:
        return {prefix: value}
    return {key: leaf for name, item in pairs for key, leaf in _flatten(item, name).items()}
