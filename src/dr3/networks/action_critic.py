"""Critics that are given the action: features of (s, a), and one value."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.networks.image_encoder import ImageEncoder, encoder_for
from dr3.networks.kernels.product import product
from dr3.networks.layer_norm import Norms, hidden_output, norms_for
from dr3.networks.linear import Linear
from dr3.networks.mixed import MixedEncoder, Seen
from dr3.networks.mlp import standardised

States = tuple[Array, ...]  # (n, …) for each of several critics


class StateActionLinear(eqx.Module):
    """W_s s + W_a a + b: one dense layer over (s, a), with its weights in two parts.

    Many actions at one state share W_s s: (n, states) and (…, n, actions) -> (…, n, out).
    """

    state_weight: Array  # (states, out)
    action_weight: Array  # (actions, out)
    bias: Array  # (out,)

    @classmethod
    def create(cls, states: int, actions: int, outputs: int, *, key: Array) -> StateActionLinear:
        whole = Linear.biased(states + actions, outputs, key=key)
        return cls(whole.weight[:states], whole.weight[states:], whole.bias)

    def __call__(self, states: Array, actions: Array) -> Array:
        return product(actions, self.action_weight) + (product(states, self.state_weight) + self.bias)


class ActionCritic(eqx.Module):
    """Q(s, a) = w · phi(s, a) + b; phi are dense layers over s and a together, a ReLU after each.

    Of a picture the dense layers see what an encoder makes of it. That is looked at once for all actions: `states`,
    then `features` for as many actions as there are.
    """

    first: StateActionLinear
    stack: tuple[Linear, ...]
    head: Linear
    width: int = eqx.field(static=True)
    encoder: ImageEncoder | MixedEncoder | None = None
    norms: Norms = ()
    standardisation: Standardisation | None = eqx.field(static=True, default=None)  # of states that are vectors

    @classmethod
    def create(
        cls,
        shape: Seen,
        actions: int,
        hidden: tuple[int, ...],
        *,
        key: Array,
        channels: tuple[int, ...] = (),
        layer_norm: bool = False,
        standardisation: Standardisation | None = None,
    ) -> ActionCritic:
        """`channels` are those of the encoder, where the observations are pictures."""
        encoder = encoder_for(shape, channels, key=key, layer_norm=layer_norm, standardisation=standardisation)
        inputs = math.prod(cast(tuple[int, ...], shape)) if encoder is None else encoder.width
        of_first, *of_stack, of_head = jax.random.split(key, len(hidden) + 1)
        first = StateActionLinear.create(inputs, actions, hidden[0], key=of_first)
        sizes = zip(hidden[:-1], hidden[1:], of_stack, strict=True)
        stack = tuple(Linear.biased(inputs, outputs, key=of_layer) for inputs, outputs, of_layer in sizes)
        head, norms = Linear.small(hidden[-1], 1, key=of_head), norms_for(hidden, layer_norm)
        return cls(first, stack, head, hidden[-1], encoder, norms, standardisation)

    def states(self, observations: Array) -> Array:
        """What the dense layers see of states: (n, *shape) -> (n, …)."""
        if self.encoder is not None:
            return self.encoder(observations)
        return standardised(observations.reshape(len(observations), -1).astype(jnp.float32), self.standardisation)

    def features(self, states: Array, actions: Array) -> Array:
        """phi(s, a): (n, …) of `states`, (…, n, size) -> (…, n, width)."""
        return list(self.outputs(states, actions).values())[-1]

    def outputs(self, states: Array, actions: Array) -> dict[str, Array]:
        """What every dense layer passes on, by its name."""
        x = hidden_output(self.norms, 0, self.first(states, actions))
        outputs = {"dense1": x}
        for number, layer in enumerate(self.stack, start=1):
            outputs[f"dense{number + 1}"] = x = hidden_output(self.norms, number, layer(x))
        return outputs

    def values(self, phi: Array) -> Array:
        """(…, width) -> (…)."""
        return self.head(phi)[..., 0]

    def layers(self) -> dict[str, Any]:
        """All layers by name, in forward order; the last one is `head`."""
        stack = self.stack if isinstance(self.stack, tuple) else ()  # an empty one tree_at wraps as a leaf
        hidden = {f"dense{number}": layer for number, layer in enumerate((self.first, *stack), start=1)}
        return {**({} if self.encoder is None else self.encoder.layers()), **hidden, "head": self.head}


class TwinCritics(eqx.Module):
    """Critics side by side, each with weights of its own; whatever they say has their axis first.

    A strided encoder they share, so that a picture is looked at once for both; another each has for itself.

    They run one after the other. As one batched product (weights with a leading axis) an update of two critics, batch
    256, took 0.94, 1.18 and 1.06 times as long on one core: for 2 x 256, for 3 x 256, and for 3 x 256 with 31 actions.
    """

    members: tuple[ActionCritic, ...]
    encoder: ImageEncoder | MixedEncoder | None  # the one they share

    @classmethod
    def create(
        cls,
        shape: Seen,
        actions: int,
        hidden: tuple[int, ...],
        *,
        key: Array,
        channels: tuple[int, ...] = (),
        layer_norm: bool = False,
        standardisation: Standardisation | None = None,
        strided: bool = False,
    ) -> TwinCritics:
        how: dict[str, Any] = {"layer_norm": layer_norm, "standardisation": standardisation}
        shared = encoder_for(shape, channels, key=key, strided=True, **how) if strided else None
        if shared is not None:
            shape, how["standardisation"] = (shared.width,), None
        create = partial(ActionCritic.create, shape, actions, hidden, channels=channels, **how)
        return cls(tuple(create(key=of) for of in jax.random.split(key)), shared)

    def states(self, observations: Array) -> States:
        """What each critic's dense layers see of states (n, *shape): one array for each."""
        if self.encoder is not None:
            return (self.encoder(observations),) * len(self.members)
        return tuple(critic.states(observations) for critic in self.members)

    def features(self, states: States, actions: Array) -> Array:
        """phi_k(s, a): what `states` gives, (…, n, size) -> (critics, …, n, width)."""
        pairs = zip(self.members, states, strict=True)
        return jnp.stack([critic.features(seen, actions) for critic, seen in pairs])

    def values(self, phi: Array) -> Array:
        """Q_k from features: (critics, …, width) -> (critics, …)."""
        return jnp.stack([critic.values(of) for critic, of in zip(self.members, phi, strict=True)])

    def q(self, states: States, actions: Array) -> Array:
        """Q_k(s, a): what `states` gives, (…, n, size) -> (critics, …, n), without an array of all features."""
        pairs = zip(self.members, states, strict=True)
        return jnp.stack([critic.values(critic.features(seen, actions)) for critic, seen in pairs])

    def layers(self) -> dict[str, Any]:
        """The layers of all critics by name, in forward order; one that they share stands alone."""
        each = [critic.layers() for critic in self.members]
        shared = {} if self.encoder is None else {name: (layer,) for name, layer in self.encoder.layers().items()}
        return {**shared, **{name: tuple(layers[name] for layers in each) for name in each[0]}}
