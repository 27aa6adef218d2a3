"""The penalty in PyTorch must be the penalty in JAX, choice by choice."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dr3
from dr3.backup import Backup
from dr3.errors import UserError
from dr3.regularizers import DR3

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test TORCH=1 installs it")

CHOICES = [
    dict(zip(("stop_gradient", "reduction", "absolute", "mask_terminals", "per_action"), values, strict=True))
    for values in itertools.product((None, "next"), ("mean", "sum"), (False, True), (False, True), (False, True))
]


@pytest.mark.parametrize("critics", [(), (2,)])
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_same_number_and_same_gradients_as_in_jax(choices, critics):
    from dr3.integrations.torch import dr3_penalty

    random = np.random.default_rng(0)
    phi, phi_next = random.normal(size=(2, *critics, 6, 3)).astype(np.float32)
    bootstraps = np.array([1, 1, 0, 1, 0, 1], np.float32)
    same = np.array([1, 0, 1, 1, 0, 0], np.float32)

    def in_jax(phi, phi_next):
        rest = {name: jnp.zeros(6) for name in Backup._fields if name not in ("phi", "phi_next")}
        tie = {"bootstraps": jnp.asarray(bootstraps), "same_output": jnp.asarray(same)}
        return DR3(**choices)(Backup(phi=phi, phi_next=phi_next, **{**rest, **tie}))

    value, gradients = jax.value_and_grad(in_jax, argnums=(0, 1))(jnp.asarray(phi), jnp.asarray(phi_next))
    here, there = (torch.tensor(side, requires_grad=True) for side in (phi, phi_next))
    penalty = dr3_penalty(here, there, bootstraps=torch.tensor(bootstraps), same_output=torch.tensor(same), **choices)
    penalty.backward()
    assert penalty.item() == pytest.approx(float(value), rel=1e-5)
    np.testing.assert_allclose(here.grad, gradients[0], rtol=1e-5, atol=1e-7)
    next_gradient = np.zeros_like(phi) if there.grad is None else there.grad  # none flowed: the gradient is zero
    np.testing.assert_allclose(next_gradient, gradients[1], rtol=1e-5, atol=1e-7)


def test_what_a_choice_needs_is_asked_for():
    from dr3.integrations.torch import dr3_penalty

    phi = torch.ones(2, 3)
    with pytest.raises(UserError, match="bootstraps"):
        dr3_penalty(phi, phi)
    with pytest.raises(UserError, match="same_output"):
        dr3_penalty(phi, phi, bootstraps=torch.ones(2), per_action=True)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stop_gradient": True}, "stop_gradient must be one of 'next', None, not True"),
        ({"reduction": "max"}, "reduction must be one of 'mean', 'sum', not 'max'"),
        ({"bootstraps": torch.ones(1)}, r"bootstraps has the shape \(1,\), but phi has 2 rows"),
        ({"phi_next": torch.ones(1, 3)}, r"phi has the shape \(2, 3\) and phi_next \(1, 3\); they must agree"),
    ],
)
def test_what_would_be_taken_for_something_else_is_refused(changes, says):
    from dr3.integrations.torch import dr3_penalty

    with pytest.raises(UserError, match=says):
        dr3_penalty(**{"phi": torch.ones(2, 3), "phi_next": torch.ones(2, 3), "bootstraps": torch.ones(2), **changes})


def test_terminals_may_be_a_column():
    from dr3.integrations.torch import dr3_penalty

    phi = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert dr3_penalty(phi, phi, bootstraps=torch.tensor([[1.0], [0.0]])).item() == 2.5


def module():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(5, 3))


def columns(found):
    return {name: values[0, -1] for name, values in found.measurements.columns.items()}


def test_a_module_by_the_names_of_its_layers(logged):
    critic = module().train()
    first, last = critic[0], critic[3]

    def features(s, a):
        return np.maximum(s @ first.weight.detach().numpy().T + first.bias.detach().numpy(), 0)

    expected = dr3.diagnose(features, logged, last_layer=last)
    found = dr3.diagnose(critic, logged, layer="2", last_layer="3")
    assert columns(found) == pytest.approx(columns(expected), rel=1e-4, abs=1e-6)
    assert critic.training
    assert not critic[2]._forward_hooks


def test_a_function_of_tensors(logged):
    critic = module().eval()
    found = dr3.diagnose(lambda s, a: critic[:3](s), logged, last_layer=critic[3], arrays="torch")
    assert columns(found) == pytest.approx(columns(dr3.diagnose(critic, logged, layer="2", last_layer="3")))


def test_a_wrong_name_lists_the_names(logged):
    with pytest.raises(UserError, match="'0', '1', '2', '3'"):
        dr3.diagnose(module(), logged, layer="penultimate")
    with pytest.raises(UserError, match="'head'"):
        dr3.diagnose(module(), logged, layer="2", last_layer="head")
