"""The remedies that there are names for, with their sources, and what each changes in a method."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dr3.data.return_bounds import return_bounds
from dr3.data.transitions import ContinuousActions, Transitions
from dr3.errors import UserError, did_you_mean
from dr3.methods import Method
from dr3.methods.units import scaled_rewards
from dr3.notation import spell
from dr3.regularizers import REGULARIZERS, Regularizer, Sum
from dr3.regularizers.parse import parse_regularizer

NONE = "none"
_PLUS = re.compile(r"\+(?=[A-Za-z])")  # not that of 1e+3


@dataclass(frozen=True)
class Remedy:
    """One thing to try. Exactly one of `settings`, `regularizer` and `rule` says what it is."""

    about: str
    source: str
    settings: Callable[[Any, Transitions], dict[str, Any]] | None = None  # of (method, data): what it sets
    regularizer: str | None = None  # the word of a term
    continuous_regularizer: str | None = None  # … where actions are continuous, if that is another
    rule: str | None = None  # of `dr3.diagnostics.select`: the base method's runs, stopped earlier


def _support(method: Any, data: Transitions) -> dict[str, Any]:
    rewards = scaled_rewards(data, method.reward_scale, method.reward_shift).rewards
    bounds = return_bounds(rewards, method.discount, ends=bool(data.terminals.any()))
    # To six digits: a user is to write them, and 1 / (1 - 0.99) is 99.99999999999991.
    low, high = (float(f"{bound:.6g}") for bound in bounds)
    return {"hl_gauss": 101, "support": (low, high if high > low else low + 1.0)}


def _slower_target(method: Any, data: Transitions) -> dict[str, Any]:
    if getattr(method, "target_rate", 1.0) < 1:
        return {"target_rate": method.target_rate / 4}
    return {"target_period": 4 * method.target_period}


REMEDIES = {
    NONE: Remedy("the method as it is", ""),
    "dr3": Remedy(
        "smaller dot products of φ(s, a) and φ(s', a')",
        "Kumar et al. (2022), DR3",
        regularizer="dr3:0.03",
        continuous_regularizer="dr3:0.01",
    ),
    "dr3-next": Remedy(
        "the same, without a gradient into φ(s', a')",
        "Kumar et al. (2022), appendix A.5",
        regularizer="dr3:0.03:stop_gradient=next",
        continuous_regularizer="dr3:0.01:stop_gradient=next",
    ),
    "layer-norm": Remedy(
        "LayerNorm in every hidden layer of the critic",
        "Ba et al. (2016); for critics Ball et al. (2023), Yue et al. (2023)",
        lambda method, data: {"layer_norm": True},
    ),
    "unit-features": Remedy(
        "features of length 1 before the last layer",
        "Kumar et al. (2023)",
        lambda method, data: {"normalise_features": True},
    ),
    "hypersphere": Remedy(
        "features and weights of length 1 in every layer",
        "Lee et al. (2025), SimbaV2",
        lambda method, data: {"hyperspherical": True},
    ),
    "norm": Remedy("smaller features, whatever their directions", "the control beside DR3", regularizer="norm:0.03"),
    "srank": Remedy("the penalty against rank collapse", "Kumar et al. (2021)", regularizer="srank:0.001"),
    "beer": Remedy("the Bellman equation's bound on the cosine", "He et al. (2024), BEER", regularizer="beer:0.001"),
    "l2": Remedy("smaller weights", "weight decay as a term of the loss", regularizer="l2:1e-05"),
    "l2-init": Remedy(
        "weights near where they began", "Kumar, Marklund and Van Roy (2023)", regularizer="l2-init:1e-05"
    ),
    "adamw": Remedy(
        "weight decay beside the step",
        "Loshchilov and Hutter (2019)",
        lambda method, data: {"optimizer": "adamw", "weight_decay": 0.01},
    ),
    "hl-gauss": Remedy(
        "values by cross-entropy to a histogram, 101 bins", "Farebrother et al. (2024), HL-Gauss", _support
    ),
    "quantiles": Remedy(
        "quantiles of the return", "Dabney et al. (2018), QR-DQN", lambda method, data: {"quantiles": 50}
    ),
    "target-clip": Remedy(
        "targets within what rewards allow",
        "r_min / (1 - γ) to r_max / (1 - γ)",
        lambda method, data: {"target_clip": True},
    ),
    "chain": Remedy("less churn", "Tang and Berseth (2024), CHAIN", regularizer="chain:10"),
    "redo": Remedy(
        "silent units drawn anew, every 1,000 updates",
        "Sokar et al. (2023), ReDo",
        lambda method, data: {"redo_every": 1000},
    ),
    "small-steps": Remedy(
        "a third of the step size", "", lambda method, data: {"learning_rate": method.learning_rate / 3}
    ),
    "slow-target": Remedy("a target network that is four times slower", "", _slower_target),
    "early-stop": Remedy(
        "no other training: the last checkpoint without a sign of ill health",
        "dr3 select --rule healthy",
        rule="healthy",
    ),
}

# What is tried where nobody says: the best known of each kind, and two together. Others cost a program each.
DEFAULT = (NONE, "dr3", "layer-norm", "dr3+layer-norm", "beer", "target-clip", "hl-gauss", "slow-target", "early-stop")


@dataclass(frozen=True)
class Treatment:
    """A remedy, or several together, for one method: what is trained."""

    name: str
    method: Method
    regularizer: Regularizer | None
    rule: str | None = None

    def flags(self, base: Method) -> list[str]:
        """What to add to `dr3 train` for it."""
        words: list[str] = []
        for field in dataclasses.fields(self.method):  # ty: ignore[invalid-argument-type]
            value = getattr(self.method, field.name)
            if value == getattr(base, field.name):
                continue
            flag = f"--{field.name.replace('_', '-')}"
            if isinstance(value, bool):
                words.append(flag if value else f"--no-{flag[2:]}")
            else:
                words += [flag, *(_word(one) for one in (value if isinstance(value, tuple) else (value,)))]
        if self.regularizer is not None:
            words += ["--regularizer", spell(self.regularizer)]
        return words

    @property
    def program(self) -> tuple[Any, ...]:
        """What is the same for treatments that share a compiled program."""
        import jax

        return jax.tree.structure(self.method), jax.tree.structure(self.regularizer)


def treatment_for(word: str, method: Method, data: Transitions) -> Treatment:
    """The treatment that a word names: a remedy, a regularizer, or several joined by +.

    Args:
        word: `layer-norm`, `dr3:0.1`, `dr3+layer-norm`, `none`.
        method: The base method.
        data: What it is trained on.

    Raises:
        UserError: There is no such remedy, or the method has no such setting.
    """
    parts = _PLUS.split(word)
    settings: dict[str, Any] = {}
    terms: list[Regularizer] = []
    rule = None
    for part in parts:
        remedy = REMEDIES.get(part)
        if len(parts) > 1 and (part == NONE or (remedy is not None and remedy.rule)):
            raise UserError(f"{word!r}: {part} stands alone.")
        if remedy is None or remedy.regularizer is not None:
            terms.append(_term(part, remedy, data))
        elif remedy.settings is not None:
            changed = remedy.settings(method, data)
            if twice := set(changed) & set(settings):
                raise UserError(f"{word!r}: two of its remedies set {', '.join(sorted(twice))}.")
            settings |= changed
        rule = rule if remedy is None else rule or remedy.rule
    known = {field.name for field in dataclasses.fields(method)}  # ty: ignore[invalid-argument-type]
    if missing := sorted(set(settings) - known):
        raise UserError(f"{word} does not apply to {method.name}: it has no {', '.join(missing)}.")
    try:
        changed_method = dataclasses.replace(method, **settings)  # ty: ignore[invalid-argument-type]
        regularizer = terms[0] if len(terms) == 1 else Sum(terms=tuple(terms)) if terms else None
    except UserError as mistake:
        raise UserError(f"{word} does not apply to {method.name}: {mistake}") from None
    return Treatment(word, changed_method, regularizer, rule)


def default_treatments(method: Method, data: Transitions) -> list[Treatment]:
    """Those of `DEFAULT` that apply to the method.

    Args:
        method: The base method.
        data: What it is trained on.
    """
    found = []
    for word in DEFAULT:
        try:
            found.append(treatment_for(word, method, data))
        except UserError:
            continue
    return found


def about(word: str) -> str:
    """A treatment in plain words."""
    parts = (REMEDIES.get(part) for part in _PLUS.split(word))
    return "; ".join(part.about for part in parts if part is not None)


def _term(word: str, remedy: Remedy | None, data: Transitions) -> Regularizer:
    if remedy is None:
        name = word.partition(":")[0]
        if name not in REGULARIZERS or name == "sum":
            known = [*REMEDIES, *(one for one in REGULARIZERS if one not in (*REMEDIES, "sum"))]
            raise UserError(f"There is no remedy {word!r}; there are {', '.join(known)}{did_you_mean(name, known)}")
    elif isinstance(data.action_space, ContinuousActions) and remedy.continuous_regularizer is not None:
        word = remedy.continuous_regularizer
    else:
        word = remedy.regularizer or word
    found = parse_regularizer(word)
    assert found is not None
    return found


def _word(value: Any) -> str:
    """The shortest that is read back as the same number."""
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
