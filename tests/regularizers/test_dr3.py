from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.backup import Backup
from dr3.errors import UserError
from dr3.hyperparameters import from_json, to_json
from dr3.notation import spell
from dr3.regularizers import DR3, REGULARIZERS
from dr3.regularizers.parse import parse_regularizer

# Three pairs with products 1·3 + 2·(-1) = 1, 0·5 + (-1)·4 = -4, 2·1 + 2·2 = 6. The second row is a terminal.
PHI = jnp.array([[1.0, 2.0], [0.0, -1.0], [2.0, 2.0]])
PHI_NEXT = jnp.array([[3.0, -1.0], [5.0, 4.0], [1.0, 2.0]])


def backup(phi=PHI, phi_next=PHI_NEXT, bootstraps=(1.0, 0.0, 1.0), same_output=(1.0, 1.0, 0.25)):
    rows = phi.shape[-2]
    nothing = jnp.zeros(rows)
    return Backup(
        phi=phi,
        phi_next=phi_next,
        values=nothing,
        next_values=nothing,
        targets=nothing,
        bootstraps=jnp.array(bootstraps),
        discounts=0.9 * jnp.array(bootstraps),
        actions=nothing.astype(int),
        next_actions=nothing.astype(int),
        same_output=jnp.array(same_output),
    )


@pytest.mark.parametrize(
    ("regularizer", "penalty"),
    [
        (DR3(), (1 + 6) / 3),  # the mean is over all rows: a masked one counts as 0, as in γ(1 - d) φ·φ'
        (DR3(reduction="sum"), 1 + 6),
        (DR3(stop_gradient="next"), (1 + 6) / 3),
        (DR3(absolute=True), (1 + 6) / 3),
        (DR3(mask_terminals=False), (1 - 4 + 6) / 3),
        (DR3(mask_terminals=False, reduction="sum"), 1 - 4 + 6),
        (DR3(mask_terminals=False, absolute=True), (1 + 4 + 6) / 3),
        (DR3(per_action=True), (1 + 0.25 * 6) / 3),
        (DR3(per_action=True, mask_terminals=False), (1 - 4 + 0.25 * 6) / 3),
        (DR3.atari_agent(), (1 + 4 + 6) / 3),
    ],
)
def test_penalty_by_hand(regularizer, penalty):
    assert regularizer(backup()) == pytest.approx(penalty, rel=1e-6)


def test_the_coefficient_is_not_in_the_penalty():
    assert DR3(5.0)(backup()) == DR3(0.1)(backup())


def gradients(regularizer, **parts):
    one = backup(**parts)
    return jax.grad(lambda phi, phi_next: regularizer(one._replace(phi=phi, phi_next=phi_next)), argnums=(0, 1))(
        one.phi, one.phi_next
    )


def test_gradient_goes_into_both_sides():
    into_phi, into_next = gradients(DR3(reduction="sum", mask_terminals=False))
    np.testing.assert_array_equal(into_phi, PHI_NEXT)
    np.testing.assert_array_equal(into_next, PHI)


def test_stop_gradient_next_is_the_same_number_with_no_gradient_into_the_next_side():
    into_phi, into_next = gradients(DR3(stop_gradient="next", reduction="sum", mask_terminals=False))
    np.testing.assert_array_equal(into_phi, PHI_NEXT)
    np.testing.assert_array_equal(into_next, np.zeros_like(PHI))


def test_absolute_turns_the_gradient_where_the_product_is_negative():
    into_phi, _ = gradients(DR3(absolute=True, reduction="sum", mask_terminals=False))
    np.testing.assert_array_equal(into_phi, PHI_NEXT * jnp.array([[1.0], [-1.0], [1.0]]))


def test_what_is_stored_after_a_terminal_does_not_matter():
    """D4RL-style data stores the next episode's first state there."""
    planted = PHI_NEXT.at[1].set(jnp.array([1e6, -1e6]))
    assert DR3()(backup(phi_next=planted)) == DR3()(backup())
    for one, other in zip(gradients(DR3(), phi_next=planted), gradients(DR3()), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one[1], np.zeros(2))
    # … and without the mask it does.
    assert DR3(mask_terminals=False)(backup(phi_next=planted)) != DR3(mask_terminals=False)(backup())


def test_critics_of_an_ensemble_are_averaged_after_the_product():
    """Rows of the first critic give 1, -4, 6; the second's features are twice as long on both sides: 4, -16, 24."""
    phi, phi_next = jnp.stack([PHI, 2 * PHI]), jnp.stack([PHI_NEXT, 2 * PHI_NEXT])
    both = backup(phi=phi, phi_next=phi_next)
    assert DR3()(both) == pytest.approx(((1 + 6) / 3 + (4 + 24) / 3) / 2, rel=1e-6)
    assert DR3(reduction="sum")(both) == pytest.approx((7 + 28) / 2, rel=1e-6)
    # Averaging features first would give another number: 1.5² · 7 / 3.
    assert DR3()(both) != pytest.approx(2.25 * 7 / 3, rel=1e-3)


def test_scaling_both_sides_scales_the_penalty_by_the_square():
    assert DR3()(backup(phi=4 * PHI, phi_next=4 * PHI_NEXT)) == pytest.approx(16 * float(DR3()(backup())), rel=1e-6)


def test_defaults_are_the_papers_and_the_preset_is_the_atari_agents():
    assert DR3() == DR3(0.03, stop_gradient=None, reduction="mean", absolute=False, mask_terminals=True)
    assert DR3.atari_agent() == DR3(0.1, absolute=True, mask_terminals=False)
    assert DR3.atari_agent(0.3).coefficient == 0.3


# --- As a word ---


@pytest.mark.parametrize(
    ("word", "regularizer"),
    [
        ("none", None),
        ("dr3", DR3()),
        ("dr3:0.1", DR3(0.1)),
        ("dr3:1e-3:next:sum", DR3(0.001, stop_gradient="next", reduction="sum")),
        ("dr3:0.03:stop_gradient=next:absolute", DR3(0.03, stop_gradient="next", absolute=True)),
        ("dr3:coefficient=2:mask_terminals=false", DR3(2.0, mask_terminals=False)),
        ("dr3:per_action:0.5", DR3(0.5, per_action=True)),
        ("dr3:0.1:absolute:mask_terminals=false", DR3.atari_agent()),
    ],
)
def test_words(word, regularizer):
    assert parse_regularizer(word) == regularizer


@pytest.mark.parametrize(
    "regularizer",
    [
        DR3(),
        DR3.atari_agent(),
        DR3(0.123456789),  # more digits than %g keeps
        DR3(1e-12, stop_gradient="next", reduction="sum", per_action=True),
    ],
)
def test_a_spelled_regularizer_reads_back(regularizer):
    assert parse_regularizer(spell(regularizer)) == regularizer
    assert from_json(REGULARIZERS, to_json(regularizer)) == regularizer


def test_spelling_names_what_is_not_default():
    assert spell(DR3(0.03)) == "dr3:0.03"
    assert spell(DR3.atari_agent()) == "dr3:0.1:absolute:mask_terminals=False"


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("dr4:0.1", "no regularizer 'dr4'; there are beer"),
        ("", "no regularizer ''"),
        ("dr3:much", "coefficient must be a number, not 'much'"),
        ("dr3:nan", "coefficient must be a number, not 'nan'"),
        ("dr3:", "coefficient must be a number, not ''"),
        ("dr3:0.1:strength=2", "no setting 'strength'; it has coefficient, stop_gradient"),
        ("dr3:0.1:stop_gradient=both", "stop_gradient is one of next, not 'both'"),
        ("dr3:0.1:absolute=maybe", "absolute is true or false, not 'maybe'"),
        ("dr3:-1", "'dr3:-1': coefficient must be at least 0, not -1"),
        ("dr3:0.1:coefficient=0.2", "coefficient is set twice"),
        ("dr3:1:next:sum:true:true:true:true", "no setting 'true'"),
    ],
)
def test_words_that_make_no_sense_are_refused_in_one_sentence(word, says):
    with pytest.raises(UserError, match=says) as refused:
        parse_regularizer(word)
    assert "\n" not in str(refused.value)
