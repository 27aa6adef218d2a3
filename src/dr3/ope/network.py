"""The network of fitted Q evaluation: one trunk, and a head for every policy that is evaluated.

All policies are judged by the same log, so what is worth knowing of a state is shared, and only the last layer is a
policy's own. Twenty checkpoints of four members cost little more than one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from dr3.data.batch import Batch
from dr3.data.transitions import DiscreteActions
from dr3.methods import Spec
from dr3.networks import trunk_for
from dr3.networks.action_critic import ActionCritic
from dr3.optimization import Adam


class Judges(eqx.Module):
    """Q_k(s, a) = θ_k · x(s, a) of K policies. With discrete actions x is the features of s in the place of a."""

    trunk: Any  # features of s, or an ActionCritic, whose own last layer is not used
    head: Array  # (K, D) θ: D is A · (d + 1), or d + 1; the 1 is for the bias
    actions: int = eqx.field(static=True)  # A, or 0 where they are continuous
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    def logged(self, observations: Array, actions: Array) -> Array:
        """Q_k(s, a): (n, K)."""
        if not self.actions:
            return self._inputs(observations, actions) @ self.head.T
        return jnp.take_along_axis(self._all(observations), actions[:, None, None], axis=2)[..., 0]

    def chosen(self, observations: Array, acting: Array) -> Array:
        """Q_k(s, π_k(s)): acting (n, K) actions, (n, K, A) probabilities or (n, K, size) actions -> (n, K)."""
        if not self.actions:
            return jnp.einsum("knd,kd->nk", self._inputs(observations, jnp.moveaxis(acting, 1, 0)), self.head)
        if acting.ndim == 3:
            return jnp.sum(self._all(observations) * acting, axis=2)
        return jnp.take_along_axis(self._all(observations), acting.astype(jnp.int32)[..., None], axis=2)[..., 0]

    def _inputs(self, observations: Array, acting: Array) -> Array:
        """x(s, a) of continuous actions: (…, n, size) -> (…, n, D)."""
        unit = (acting - self.low) / (self.high - self.low) * 2 - 1
        return _with_one(self.trunk.features(self.trunk.states(observations), unit))

    def _all(self, observations: Array) -> Array:
        """Q_k(s, ·): (n, K, A)."""
        phi = _with_one(self.trunk(observations))
        heads = self.head.reshape(-1, phi.shape[1])  # (K · A, d + 1)
        return (phi @ heads.T).reshape(len(phi), len(self.head), self.actions)


class Scaling(NamedTuple):
    """Observations that are vectors of floats are brought to mean 0 and spread 1; rewards to values of about 1."""

    mean: Array
    spread: Array
    value: Array

    def __call__(self, observations: Array) -> Array:
        return (observations - self.mean) / self.spread if observations.dtype == jnp.float32 else observations


class State(NamedTuple):
    """Where one network of the ensemble stands."""

    judges: Judges
    memory: Any
    updates: Array


def begin(spec: Spec, policies: int, hidden: tuple[int, ...], learning_rate: float, key: Array) -> State:
    """A network before its first update; its heads begin at zero."""
    space = spec.action_space
    if isinstance(space, DiscreteActions):
        trunk: Any = trunk_for("auto", spec.seen, hidden, key=key, standardisation=spec.standardisation)
        size, limits = space.count * (trunk.width + 1), (space.count, 0.0, 0.0)
    else:
        channels = (16, 16, 16) if spec.parts is not None or len(spec.observation_shape) == 3 else ()
        several: dict[str, Any] = {"channels": channels, "standardisation": spec.standardisation}
        trunk = ActionCritic.create(spec.seen, space.size, hidden, key=key, **several)
        size, limits = trunk.width + 1, (0, space.low, space.high)
    judges = Judges(trunk, jnp.zeros((policies, size)), *limits)
    return State(judges, Adam(learning_rate).init(judges), jnp.zeros((), jnp.int32))


class Rows(NamedTuple):
    """Which rows one network learns from: those of the episodes that its bootstrap drew."""

    numbers: Array  # (most,) row numbers, padded
    count: Array  # () how many of them count
    starts: Array  # (m,) first rows of some of these episodes


class Log(NamedTuple):
    """What all networks learn from."""

    table: Batch  # its `returns` are those of this discount
    following: Array  # what the policies do at s'
    scaling: Scaling
    discount: Array
    low: Array  # between what a value can lie, in units of `scaling.value`
    high: Array


@partial(jax.jit, static_argnames=("copies", "batch_size", "warm"))
def advance(
    state: State,
    log: Log,
    rows: Rows,
    starting: Array,
    learning_rate: Array,
    updates_per_copy: Array,
    key: Array,
    *,
    copies: int,
    batch_size: int,
    warm: bool,
) -> tuple[State, Array]:
    """`copies` times: copy the network into its target, then fit it to r + γ Q̄_k(s', π_k(s')).

    Values of s' are held between the returns that the rewards allow: what extrapolates beyond them is wrong, and would
    run away. `warm` regresses on the logged returns instead: where the other copies begin.

    Returns:
        The state, and the mean value of first states over the copies: (K,).
    """
    table, following, scaling, discount, low, high = log
    optimizer = Adam(learning_rate)
    first = scaling(table.take(rows.starts).observations)

    def loss(judges: Judges, batch: Batch, wanted: Array) -> Array:
        return jnp.mean((judges.logged(scaling(batch.observations), batch.actions) - wanted) ** 2)

    def one_copy(state: State, _: None) -> tuple[State, Array]:
        target = state.judges

        def update(_: Array, state: State) -> State:
            drawn = jax.random.randint(jax.random.fold_in(key, state.updates), (batch_size,), 0, rows.count)
            chosen = rows.numbers[drawn]
            batch = table.take(chosen)
            if warm:
                wanted = batch.returns[:, None] / scaling.value
            else:
                at_next = jnp.clip(target.chosen(scaling(batch.next_observations), following[chosen]), low, high)
                wanted = batch.rewards[:, None] / scaling.value + discount * (1 - batch.terminals)[:, None] * at_next
            gradient = jax.grad(loss)(state.judges, batch, lax.stop_gradient(wanted))
            judges, memory = optimizer.step(state.judges, gradient, state.memory)
            return State(judges, memory, state.updates + 1)

        state = lax.fori_loop(0, updates_per_copy, update, state)
        return state, jnp.clip(state.judges.chosen(first, starting), low, high).mean(axis=0)

    state, values = lax.scan(one_copy, state, None, length=copies)
    return state, values.mean(axis=0)


@jax.jit
def look(judges: Judges, log: Log, batch: Batch, here: Array, following: Array) -> tuple[Array, Array, Array]:
    """Q_k(s, a), V_k(s) and V_k(s'), (n, K) each, in units of the rewards."""
    seen, after = log.scaling(batch.observations), log.scaling(batch.next_observations)
    found = judges.logged(seen, batch.actions), judges.chosen(seen, here), judges.chosen(after, following)
    q, v, v_next = (jnp.clip(values, log.low, log.high) * log.scaling.value for values in found)
    return q, v, v_next


def _with_one(phi: Array) -> Array:
    return jnp.concatenate([phi, jnp.ones((*phi.shape[:-1], 1))], axis=-1)
