"""The contract beside an exported policy: what goes in, what comes out, and where it came from."""

from __future__ import annotations

import dataclasses
from importlib import metadata
from typing import Any

import numpy as np

from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.export.policy_function import PolicyFunction
from dr3.files import for_json
from dr3.runs import Runs
from dr3.runs.folder import source_commit
from dr3.runs.selected import selected, selection_record

FORMAT = 1


def contract(
    runs: Runs, member: int, step: int, policy: PolicyFunction, outputs: dict[str, np.dtype[Any]]
) -> dict[str, Any]:
    """The record, but for the files that it speaks of.

    Args:
        runs: The run.
        member: Whose policy it is.
        step: Of which checkpoint.
        policy: What is exported.
        outputs: The type of each output.
    """
    one, space = runs.members[member], runs.spec.action_space
    chosen = selected(runs.path, member) == (member, step)
    method: Any = one.method
    return for_json(
        {
            "kind": "dr3 policy",
            "format": FORMAT,
            "dr3": metadata.version("dr3"),
            "commit": source_commit(),
            "run": runs.path.name,
            "member": member,
            "step": step,
            "algorithm": one.algorithm,
            **one.to_json(),
            "acts": "greedily" if policy.noise is None else f"by the input `noise`, {_DRAWN[policy.noise]}",
            "inputs": [
                {
                    "name": name,
                    "shape": ["n", *shape],
                    "dtype": np.dtype(dtype).name,
                    "is": _INPUTS[name.partition(".")[0]],
                }
                for name, (shape, dtype) in policy.rows.items()
            ],
            "outputs": [
                {"name": name, "shape": ["n", *_sides(name, space)], "dtype": dtype.name, "is": _output(name, space)}
                for name, dtype in outputs.items()
            ],
            "actions": {"kind": type(space).__name__, **dataclasses.asdict(space)},
            "discount": method.discount,
            # Values are sums of what was learned from: scale · (r + shift) of each logged reward r.
            "rewards": {name: getattr(method, f"reward_{name}", plain) for name, plain in _PLAIN.items()},
            "scaling": {
                "inside": "observations go in as they were logged",
                "standardised": _standardised(runs, method),
            },
            "mask": "mask" in policy.rows,
            "data": dataclasses.asdict(runs.config.data),
            "selection": selection_record(runs.path) if chosen else None,
        }
    )


_PLAIN = {"scale": 1.0, "shift": 0.0}
_DRAWN = {"normal": "independent standard normal numbers", "uniform": "a number that is uniform in [0, 1)"}
_INPUTS = {
    "observation": "rows as they were logged, finite",
    "mask": "true for the actions that are allowed, at least one in each row",
    "noise": "what an action is drawn by",
}


def _standardised(runs: Runs, method: Any) -> dict[str, Any] | None:
    """The mean and the deviation of each column, where the networks take them off."""
    columns = runs.spec.standardisation if getattr(method, "standardise", False) else None
    return None if columns is None else dataclasses.asdict(columns)


def _sides(name: str, space: DiscreteActions | ContinuousActions) -> tuple[int, ...]:
    if isinstance(space, DiscreteActions):
        return () if name == "action" else (space.count,)
    return (space.size,) if name == "action" else ()


def _output(name: str, space: DiscreteActions | ContinuousActions) -> str:
    if name == "action":
        return "the action, a whole number" if isinstance(space, DiscreteActions) else "the action, in the logged range"
    if name == "probabilities":
        return "of all actions"
    return "Q of all actions, allowed or not" if isinstance(space, DiscreteActions) else "Q of the action"
