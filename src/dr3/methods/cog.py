"""COG (Singh et al., 2020; appendix E.1): CQL on pictures, from task data and prior data together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods.base import Spec
from dr3.methods.continuous import Following, Learner
from dr3.methods.continuous_cql import ContinuousCQL
from dr3.networks import ActorCritic
from dr3.networks.action_critic import States
from dr3.networks.initialisation import tiny_dense

DENSE = 4  # which part of a learner's key draws dense layers anew


@hyperparameters
@dataclass(frozen=True)
class COG(ContinuousCQL):
    """COG: CQL with α = 1 on pictures, moved at random, and one sampled action of each kind.

    What makes it COG beside that is the data: task.npz+prior.npz, prior data with every reward 0. The networks are the
    release's: three convolutions of 16 filters, then 1024, 512, 256 units, the action coming in at the first of these;
    the policy's own convolutions, then 1024, 512, 256 and 3 x 256. (In the release the third of these has no ReLU.)
    """

    name: ClassVar[str] = "cog"

    feature_layer: Literal["penultimate", "convolution"] = "penultimate"
    """What regularizers and instruments see as phi: the input of the last layer, or the flattened output of the
    convolutions, which knows no action, as in the public code of DR3 on COG."""

    tiny_start: bool = False
    """Start dense layers at ±0.0001, as the release does: all of the critics', and the policy's first three."""

    alpha: float = 1.0
    sampled_actions: int = 1
    warm_start: int = 10_000
    hidden: tuple[int, ...] = (1024, 512, 256)
    policy_hidden: tuple[int, ...] = (1024, 512, 256, 256, 256, 256)
    crop: int = 4

    def prepare(self, data: Transitions) -> Transitions:
        if len(shape := tuple(data.observations.shape[1:])) != 3:
            raise UserError(f"cog learns from pictures, but {data.name} has observations {shape}; use continuous-cql.")
        return super().prepare(data)

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        if not self.tiny_start:
            return learner
        model = tiny_dense(learner.model, key=jax.random.fold_in(key, DENSE))
        return learner._replace(model=model, target=model.critics)

    def backup(self, states: States, model: ActorCritic, following: Following, batch: Batch) -> Backup:
        backup = super().backup(states, model, following, batch)
        if self.feature_layer == "penultimate":
            return backup
        following_states = model.critics.states(batch.next_observations)
        return backup._replace(phi=jnp.stack(states), phi_next=jnp.stack(following_states), readout=None)

    def features(self, model: ActorCritic, observations: Array, actions: Array) -> Array:
        if self.feature_layer == "penultimate":
            return super().features(model, observations, actions)
        return jnp.stack(model.critics.states(observations))
