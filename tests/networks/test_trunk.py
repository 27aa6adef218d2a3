"""Networks by their names."""

from __future__ import annotations

import jax
import pytest

from dr3.errors import UserError
from dr3.networks import trunk_for
from dr3.networks.trunk import Network


@pytest.mark.parametrize(("name", "inputs"), [("auto", 7744), ("nature", 7744), ("nature-valid", 3136)])
def test_the_nature_network_pads_unless_told_not_to(name: Network, inputs: int) -> None:
    trunk = jax.eval_shape(lambda key: trunk_for(name, (84, 84, 4), (64, 512), key=key), jax.random.key(0))
    assert trunk.layers()["dense"].weight.shape == (inputs, 512)


def test_convolutions_are_for_images() -> None:
    with pytest.raises(UserError, match="'nature-valid' is for images"):
        trunk_for("nature-valid", (7,), (16,), key=jax.random.key(0))
