"""Behaviour cloning: a policy fitted to logged actions, where the policy that logged them is not known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from dr3.data.batch import Batch
from dr3.data.frames import CHUNK, Frames, Observations, chunks
from dr3.data.standardisation import Standardisation
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.methods.allowed import allowed_only
from dr3.networks import DiscreteCritic, trunk_for
from dr3.networks.mixed import Seen
from dr3.optimization import Adam


class Clone(NamedTuple):
    """The policy with the smallest error on held-out rows so far, and that error."""

    policy: DiscreteCritic
    error: Array


def clone_behavior(data: Transitions, **settings: Any) -> NDArray[np.float32]:
    """π_β(·|s') for every row: (N, A). Settings are those of `cloned_policy`."""
    return cloned_policy(data, **settings)(data.next_observations, data.next_masks)


def cloned_policy(
    data: Transitions,
    *,
    hidden: tuple[int, ...] = (256, 256),
    learning_rate: float = 1e-3,
    batch_size: int = 128,
    rounds: int = 40,
    steps_per_round: int = 50,
    seed: int = 0,
    standardise: bool = False,
) -> Callable[..., NDArray[np.float32]]:
    """π_β of a network trained to predict a from s: (n, *shape) -> (n, A); with masks (n, A) of allowed actions.

    A tenth of the rows is held out, and the network of the round that predicts them best is kept: a policy that has
    memorised a small log would call every unlogged action impossible, and TD-learning would turn into SARSA.
    """
    assert isinstance(data.action_space, DiscreteActions)
    order = np.random.default_rng(seed).permutation(len(data))
    held_out, kept = np.split(order, [len(order) // 10])
    if len(held_out) == 0:
        held_out = kept
    policy = _fit(
        Batch.of(data),
        jnp.asarray(kept),
        jnp.asarray(held_out),
        jax.random.key(seed),
        learning_rate,
        action_count=data.action_space.count,
        hidden=hidden,
        batch_size=batch_size,
        rounds=rounds,
        steps_per_round=steps_per_round,
        seen=tuple(data.observations.shape[1:]) if data.parts is None else data.parts,
        standardisation=Standardisation.of(data.vectors) if standardise else None,
    )

    def probabilities(observations: Observations, masks: NDArray[np.bool_] | None = None) -> NDArray[np.float32]:
        parts = [policy.values(policy.features(jnp.asarray(rows))) for rows in chunks(observations)]
        allowed = None if masks is None else jnp.asarray(masks)
        return np.asarray(jax.nn.softmax(allowed_only(jnp.concatenate(parts), allowed)), np.float32)

    return probabilities


@partial(jax.jit, static_argnames=("action_count", "hidden", "batch_size", "seen", "standardisation"))
def _fit(
    table: Batch,
    kept: Array,
    held_out: Array,
    key: Array,
    learning_rate: float,
    *,
    action_count: int,
    hidden: tuple[int, ...],
    batch_size: int,
    rounds: int,
    steps_per_round: int,
    seen: Seen,
    standardisation: Standardisation | None,
) -> DiscreteCritic:
    """The policy that the held-out rows like best, of those at the end of each round."""
    of_trunk, of_head, of_batches = jax.random.split(key, 3)
    trunk = trunk_for("auto", seen, hidden, key=of_trunk, standardisation=standardisation)
    policy = DiscreteCritic.create(trunk, action_count, key=of_head)
    optimizer = Adam(learning_rate)

    def errors(policy: DiscreteCritic, rows: Array) -> Array:
        batch = table.take(rows)
        logits = allowed_only(policy.values(policy.features(batch.observations)), batch.masks)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch.actions)

    def error(policy: DiscreteCritic, rows: Array) -> Array:
        return errors(policy, rows).mean()

    def held_out_error(policy: DiscreteCritic) -> Array:
        if not isinstance(table.observations, Frames):  # in parts, the last bit of the sum could be another one
            return error(policy, held_out)
        together = min(CHUNK, len(held_out))
        filled = jnp.pad(held_out, (0, -len(held_out) % together)).reshape(-1, together)
        return jax.lax.map(partial(errors, policy), filled).ravel()[: len(held_out)].mean()

    def step(number: Array, state: tuple[DiscreteCritic, optax.OptState]) -> tuple[DiscreteCritic, optax.OptState]:
        policy, memory = state
        drawn = jax.random.randint(jax.random.fold_in(of_batches, number), (batch_size,), 0, len(kept))
        return optimizer.step(policy, jax.grad(error)(policy, kept[drawn]), memory)

    def one_round(number: Array, carry: tuple[DiscreteCritic, optax.OptState, Clone]) -> tuple:
        policy, memory, best = carry
        first = number * steps_per_round
        policy, memory = jax.lax.fori_loop(first, first + steps_per_round, step, (policy, memory))
        now = Clone(policy, held_out_error(policy))
        best = jax.tree.map(lambda new, old: jnp.where(now.error < best.error, new, old), now, best)
        return policy, memory, best

    start = (policy, optimizer.init(policy), Clone(policy, jnp.asarray(jnp.inf)))
    return jax.lax.fori_loop(0, rounds, one_round, start)[2].policy
