"""Settings of methods and regularizers are checked when they are constructed, and nowhere else."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any, get_args, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dr3
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods import METHODS
from dr3.regularizers import REGULARIZERS, check_regularizer

KINDS: list[Any] = [*METHODS.values(), *REGULARIZERS.values()]
SETTINGS = [(cls, field.name) for cls in KINDS for field in dataclasses.fields(cls)]
MAY_BE_NEGATIVE = {"reward_shift", "target_entropy"}


def wrong_for(hint: Any, name: str) -> list[Any]:
    """Values that no setting of this kind has."""
    if hint is bool:
        return ["no", 1, None]
    if hint == tuple[int, ...]:
        return [4, (4.5,), ("4",), (2**40,), (-1,), (True,)]
    below = [] if name in MAY_BE_NEGATIVE else [-1]
    if hint is int:
        return ["1", 2.5, None, True, 2**40, *below]
    if hint is float or float in get_args(hint):
        unset = [] if hint is not float else [None]
        return ["a", "0.1", True, math.nan, math.inf, -math.inf, jnp.ones(2), *unset, *below]
    return ["another", 1, True]  # one of several words


@pytest.mark.parametrize(("cls", "name"), SETTINGS, ids=lambda one: getattr(one, "name", one))
def test_a_wrong_value_is_refused_by_the_constructor_in_one_sentence(cls, name):
    for value in wrong_for(get_type_hints(cls)[name], name):
        with pytest.raises(UserError, match=name) as refused:
            cls(**{name: value})
        assert "\n" not in str(refused.value)
        with pytest.raises(UserError, match=name):
            dataclasses.replace(cls(), **{name: value})


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: dr3.CQL(alpha=-1), "alpha must be at least 0, not -1"),
        (lambda: dr3.DR3(-1), "coefficient must be at least 0, not -1"),
        (lambda: dr3.DR3(math.nan), "coefficient must be a finite number, not nan"),
        (lambda: dr3.DQN(discount=1.01), r"discount must be between 0 and 1, not 1\.01"),
        (lambda: dr3.SAC(target_rate=2.0), r"target_rate must be between 0 and 1, not 2\.0"),
        (lambda: dr3.SAC(hidden=()), "the number of widths in hidden must be at least 1, not 0"),
        (lambda: dr3.LabelNoiseDR3(step_size=0.0), r"step_size must be above 0, not 0\.0"),
        (lambda: dr3.LabelNoiseDR3(rows=-4), "rows must be at least 0, not -4"),
        (lambda: dr3.DQN(target_period=2**40), "target_period must be at most 2147483647, not 1099511627776"),
    ],
)
def test_what_is_said(build, says):
    with pytest.raises(UserError, match=says):
        build()


def test_what_is_said_of_wrong_types():
    untyped: Any = dr3
    for build, says in (
        (lambda: untyped.DR3("a"), "coefficient must be a number, not 'a'"),
        (lambda: untyped.DR3(absolute="no"), "absolute must be True or False, not 'no'"),
        (lambda: untyped.DR3(reduction="avg"), "reduction must be one of 'mean', 'sum', not 'avg'"),
        (lambda: untyped.DR3(stop_gradient="both"), "stop_gradient must be one of 'next', None, not 'both'"),
        (lambda: untyped.DQN(hidden=4), r"hidden must be whole numbers in a tuple, such as \(256, 256\), not 4"),
        (lambda: untyped.DQN(hidden=(4.5,)), "every number in hidden must be a whole number, not 4.5"),
        (lambda: untyped.DQN(network="resnet"), "network must be one of 'auto', 'mlp', .*, not 'resnet'"),
        (lambda: untyped.DQN(discount=None), "discount must be a number, not None"),
    ):
        with pytest.raises(UserError, match=says):
            build()


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.name)
def test_jax_rebuilds_settings_from_whatever_it_likes(cls):
    """Tracers, arrays of a population and placeholders pass: only a constructor asks."""
    settings = cls()
    leaves, structure = jax.tree.flatten(settings)
    assert jax.tree.unflatten(structure, [object()] * len(leaves)) is not None
    assert jax.tree.unflatten(structure, leaves) == settings
    stacked = jax.tree.map(lambda *several: jnp.stack(several), *[jax.tree.map(jnp.asarray, settings)] * 2)
    assert all(leaf.shape == (2,) for leaf in jax.tree.leaves(stacked))
    doubled = jax.vmap(lambda one: jax.tree.map(lambda leaf: 2 * leaf, one))(stacked)
    for single, leaf in zip(leaves, jax.tree.leaves(doubled), strict=True):
        np.testing.assert_allclose(leaf, 2 * single, rtol=1e-6)
    # Also where an extension changes one inside a compiled function.
    name, *_ = names_of(settings)
    compiled = jax.jit(lambda one, value: dataclasses.replace(one, **{name: value}))(settings, 0.25)
    assert float(getattr(compiled, name)) == 0.25
    assert getattr(cls(**{name: jnp.float32(0.25)}), name) == 0.25
    assert pickle.loads(pickle.dumps(settings)) == copy.deepcopy(settings) == settings


def names_of(settings: Any) -> list[str]:
    return [path[-1].name for path, _ in jax.tree_util.tree_leaves_with_path(settings)]


class Own:
    """A regularizer without a dataclass."""

    name = "own"

    def __init__(self, coefficient: Any) -> None:
        self.coefficient = coefficient

    def __call__(self, backup: Any) -> Any:
        return backup.phi.sum()


def test_one_of_a_users_own_is_asked_for_its_coefficient():
    @hyperparameters
    @dataclasses.dataclass(frozen=True)
    class Plain:
        coefficient: float = 0.1

    with pytest.raises(UserError, match="coefficient must be at least 0, not -1"):
        Plain(-1)
    check_regularizer(Own(0.1))
    for wrong, says in (("a", "must be a number, not 'a'"), (-1, "at least 0, not -1"), (math.nan, "not nan")):
        with pytest.raises(UserError, match=f"coefficient of own must be .*{says}|{says}"):
            check_regularizer(Own(wrong))
