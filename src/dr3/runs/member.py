"""A member: one (method, regularizer, seed) of a population."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dr3.errors import UserError
from dr3.hyperparameters import from_json, to_json, whole_number
from dr3.methods import METHODS, Method
from dr3.notation import spell
from dr3.regularizers import REGULARIZERS, Regularizer, check_regularizer
from dr3.seeds import check_seed


@dataclass(frozen=True)
class Member:
    """One training run of a population. All that it draws is a function of `seed` and the step."""

    method: Method
    regularizer: Regularizer | None
    seed: int

    def to_json(self) -> dict[str, Any]:
        return {"method": to_json(self.method), "regularizer": to_json(self.regularizer), "seed": self.seed}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Member:
        method, regularizer = from_json(METHODS, record["method"]), from_json(REGULARIZERS, record["regularizer"])
        return cls(method, regularizer, check_seed(record["seed"]))

    @property
    def algorithm(self) -> str:
        """What the results call it, seeds aside: `dqn`, `dqn+dr3:0.03`."""
        if self.regularizer is None:
            return self.method.name
        return f"{self.method.name}+{spell(self.regularizer)}"


def population(
    methods: Method | Sequence[Method],
    regularizers: Regularizer | Sequence[Regularizer | None] | None,
    seeds: int | Sequence[int],
) -> list[Member]:
    """Every method with every regularizer and every seed; a number of seeds means 0, 1, …"""
    methods = [_checked_method(one) for one in _several(methods)]
    regularizers = [_checked_regularizer(one) for one in _several(regularizers)]
    if not regularizers:
        raise UserError("A population needs at least one regularizer; none at all is written None (none in a shell).")
    numbers = seeds if isinstance(seeds, Sequence | np.ndarray) else range(whole_number("seeds", seeds))
    members = [Member(*choice) for choice in itertools.product(methods, regularizers, map(check_seed, numbers))]
    if not members:
        raise UserError("A population needs at least one method and one seed.")
    if len({type(member.method) for member in members}) > 1:
        raise UserError("The members of one run share one method; train each method in a run of its own.")
    if len({_identity(member) for member in members}) < len(members):
        raise UserError("Two members of the population are the same: each seed and each setting may appear once.")
    return members


def _several(choice: Any) -> list[Any]:
    return list(choice) if isinstance(choice, Sequence | np.ndarray) and not isinstance(choice, str) else [choice]


def _checked_method(method: Any) -> Method:
    if isinstance(method, type) or not dataclasses.is_dataclass(method):
        raise UserError(f"A method is one such as dr3.DQN(), not {method!r}.")
    return cast(Method, method)


def _checked_regularizer(regularizer: Any) -> Regularizer | None:
    if regularizer is not None:
        check_regularizer(regularizer)
    return regularizer


def differences(members: Sequence[Member]) -> list[dict[str, Any]]:
    """For each member, the settings in which the members differ: what to call it in a table or a legend."""
    flat = [_flatten(member) for member in members]
    names = {name: None for one in flat for name in one}
    varying = [name for name in names if len({repr(one.get(name)) for one in flat}) > 1]
    return [{key: one.get(key) for key in varying} for one in flat]


def _flatten(member: Member) -> dict[str, Any]:
    regularizer = "none" if member.regularizer is None else spell(member.regularizer)
    return {**dataclasses.asdict(member.method), "regularizer": regularizer, "seed": member.seed}  # ty: ignore


def _identity(member: Member) -> str:
    return repr(sorted(_flatten(member).items(), key=lambda item: item[0]))
