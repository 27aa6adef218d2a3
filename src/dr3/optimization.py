"""The two steps every method takes with its weights: an optimizer's, and a target network's towards its critic."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.typing import ArrayLike

from dr3.errors import UserError
from dr3.hyperparameters import within

T = TypeVar("T")

OptimizerName = Literal["adam", "adamw", "sgd", "rmsprop"]
WEIGHT_DECAY = 1e-4  # AdamW's, by Optax's default


def check_weight_decay(optimizer: OptimizerName, weight_decay: float) -> None:
    """Refuse a decay that is none, or that nothing would look at."""
    within("weight_decay", weight_decay, 0)
    if optimizer != "adamw" and weight_decay != WEIGHT_DECAY:
        raise UserError("weight_decay is adamw's: choose that optimizer, too (or the regularizer l2).")


# Decay of the two moments: the defaults of Adam's authors, of Optax and of PyTorch, and what the paper's agents use.
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999


class Adam(NamedTuple):
    """Adam with a step size and ε that may be traced numbers: w - α m̂ / (√v̂ + ε), m̂ = m / (1 - β₁ᵗ), v̂ = v / (1 - β₂ᵗ).

    The memory is Optax's own. The step is written out because Optax's divides three times for every weight, and here
    both corrections are in two scalars (Kingma and Ba, end of section 2): one division, which takes 4 % off an update
    of a MinAtar-sized network. It agrees with Optax's up to rounding.
    """

    learning_rate: ArrayLike
    epsilon: ArrayLike = 1e-8

    def init(self, parameters: Any) -> optax.OptState:
        return optax.adam(cast(Array, self.learning_rate)).init(parameters)

    def step(self, parameters: T, gradient: T, memory: optax.OptState) -> tuple[T, optax.OptState]:
        moments, *rest = cast(Any, memory)
        count = moments.count + 1
        mean = jax.tree.map(lambda old, new: MEAN_DECAY * old + (1 - MEAN_DECAY) * new, moments.mu, gradient)
        square = jax.tree.map(lambda old, new: SQUARE_DECAY * old + (1 - SQUARE_DECAY) * new**2, moments.nu, gradient)
        root = jnp.sqrt(1 - SQUARE_DECAY**count)
        rate, floor = self.learning_rate * root / (1 - MEAN_DECAY**count), self.epsilon * root
        moved = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + floor), parameters, mean, square)
        return moved, (moments._replace(count=count, mu=mean, nu=square), *rest)


class Optax(NamedTuple):
    """One of Optax's optimizers, taken as Adam is."""

    transformation: optax.GradientTransformation

    def init(self, parameters: Any) -> optax.OptState:
        return self.transformation.init(parameters)

    def step(self, parameters: T, gradient: T, memory: optax.OptState) -> tuple[T, optax.OptState]:
        change, memory = self.transformation.update(cast(Any, gradient), memory, cast(Any, parameters))
        return cast(T, optax.apply_updates(cast(Any, parameters), change)), memory


Optimizer = Adam | Optax


def optimizer_for(
    name: OptimizerName, learning_rate: ArrayLike, epsilon: ArrayLike, weight_decay: ArrayLike = WEIGHT_DECAY
) -> Optimizer:
    """The optimizer of that name. What it has beside these numbers is at Optax's default.

    AdamW takes α · `weight_decay` of a weight from it at every step; others have no decay of weights. RMSProp's squares
    decay by 0.9, its ε is outside the root, as Adam's is; SGD is plain, w - α g, as in the theory.
    """
    rate, floor, decay = cast(Any, learning_rate), cast(Any, epsilon), cast(Any, weight_decay)
    if name == "adam":
        return Adam(learning_rate, epsilon)
    if name == "adamw":
        return Optax(optax.adamw(rate, eps=floor, weight_decay=decay))
    if name == "rmsprop":
        return Optax(optax.rmsprop(rate, eps=floor, eps_in_sqrt=False))
    return Optax(optax.sgd(rate))


def gradient_length(memory: optax.OptState) -> Array | None:
    """Root of the mean squared length of past gradients, regularizer and all, as an optimizer's squares remember them.

    Adam remembers some 1,000 updates and RMSProp ten; SGD keeps nothing, and has none. It costs no further gradient.

    Args:
        memory: Of any of these optimizers.
    """
    states = jax.tree.leaves(memory, is_leaf=lambda part: hasattr(part, "nu"))
    if (state := next((one for one in states if hasattr(one, "nu")), None)) is None:
        return None
    total = sum((jnp.sum(leaf) for leaf in jax.tree.leaves(state.nu)), start=jnp.zeros(()))
    if isinstance(state, optax.ScaleByAdamState):  # its squares began at 0
        total = total / jnp.maximum(1 - SQUARE_DECAY**state.count, 1 - SQUARE_DECAY)
    return jnp.sqrt(total)


def cleared(memory: optax.OptState, changed: Any) -> optax.OptState:
    """The memory of an optimizer with its moments set to 0 where `changed`, a tree like the parameters, is true."""
    structure = jax.tree.structure(changed)

    def is_moment(part: Any) -> bool:
        return jax.tree.structure(part) == structure

    def clear(part: Any) -> Any:
        return jax.tree.map(lambda gone, leaf: jnp.where(gone, 0, leaf), changed, part) if is_moment(part) else part

    return jax.tree.map(clear, memory, is_leaf=is_moment)


def move(target: T, towards: T, rate: ArrayLike) -> T:
    """target + rate (towards - target), leaf by leaf: rate 1 copies, a small rate trails (Polyak)."""
    return cast(T, optax.incremental_update(cast(Any, towards), cast(Any, target), cast(Array, rate)))
