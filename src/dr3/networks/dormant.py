"""ReDo: units that have gone silent are drawn anew (Sokar et al., 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.networks.layer_norm import LayerNorm


def dormant_units(outputs: Array, threshold: float) -> Array:
    """Which units have at most `threshold` times the mean size of their layer: (n, …, d) -> (d,)."""
    sizes = jnp.mean(jnp.abs(outputs), axis=tuple(range(outputs.ndim - 1)))
    return sizes <= threshold * jnp.mean(sizes)


def hidden_outputs(critic: Any, observations: Array, actions: Array) -> list[dict[str, Array]]:
    """What each hidden layer passes on, by its name, one mapping for each critic of an ensemble.

    A network that does not say so has none.

    Args:
        critic: What a method's values come from: discrete, or with a policy beside it.
        observations: (n, *shape).
        actions: Logged ones; where they are continuous they are an input.
    """
    if (ensemble := getattr(critic, "critics", None)) is not None:
        pairs = zip(ensemble.members, ensemble.states(observations), strict=True)
        return [own.outputs(seen, critic.to_unit(actions)) for own, seen in pairs]
    outputs = getattr(getattr(critic, "trunk", None), "outputs", None)
    return [] if outputs is None else [outputs(observations)]


def recycle(critic: Any, fresh: Any, outputs: Mapping[str, Array], threshold: float) -> tuple[Any, Any]:
    """The critic with dormant units drawn anew, and which of its weights that changed.

    What such a unit reads with is taken from `fresh`, and what it is read with is 0: its layer's outputs do not jump.
    With a LayerNorm its scale and shift are drawn anew as well: a shift far below 0 keeps a unit silent, whatever it
    reads. `outputs` are those of hidden layers, by their names in `critic.layers()`.
    """
    layers, drawn = critic.layers(), fresh.layers()
    anew = {name: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, bool), layer) for name, layer in layers.items()}
    silent, dormant = dict(anew), {name: dormant_units(output, threshold) for name, output in outputs.items()}
    for name, following in pairwise(layers):
        if name not in outputs:
            continue
        asleep = dormant[name]
        anew[name] = jax.tree.map(lambda leaf, asleep=asleep: jnp.broadcast_to(asleep, leaf.shape), layers[name])
        weight = layers[following].weight
        # A dense layer after a convolution reads its filters at every place of the picture.
        rows = jnp.tile(asleep, weight.shape[-2] // len(asleep))
        read = jnp.broadcast_to(rows[:, None], weight.shape)
        silent[following] = eqx.tree_at(lambda layer: layer.weight, silent[following], read)

    def mended(name: str) -> Any:
        # A weight between two such units is 0, as all that such a unit is read with.
        new = jax.tree.map(jnp.where, anew[name], drawn[name], layers[name])
        return jax.tree.map(lambda zero, leaf: jnp.where(zero, 0, leaf), silent[name], new)

    changed = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, bool), critic)
    norms, drawn_norms = _norms(critic), _norms(fresh)
    # Those of an encoder, which is not looked at, come first; the last layer has none.
    awake = [jnp.zeros_like(norm.gain, bool) for norm in norms[: -len(dormant)]]
    masks = [LayerNorm(one, one) for one in (*awake, *dormant.values())] if norms else []
    return (
        _with_norms(
            _with_layers(critic, {name: mended(name) for name in layers}),
            [jax.tree.map(jnp.where, *three) for three in zip(masks, drawn_norms, norms, strict=True)],
        ),
        _with_norms(
            _with_layers(changed, {name: jax.tree.map(jnp.logical_or, anew[name], silent[name]) for name in layers}),
            masks,
        ),
    )


def _norms(critic: Any) -> list[LayerNorm]:
    """Every LayerNorm, in the order of the layers they belong to."""
    leaves = jax.tree.leaves(critic, is_leaf=lambda part: isinstance(part, LayerNorm))
    return [leaf for leaf in leaves if isinstance(leaf, LayerNorm)]


def _with_norms(critic: Any, norms: list[LayerNorm]) -> Any:
    return eqx.tree_at(_norms, critic, norms) if norms else critic


def _with_layers(critic: Any, layers: Mapping[str, Any]) -> Any:
    return eqx.tree_at(lambda tree: [tree.layers()[name] for name in layers], critic, list(layers.values()))
