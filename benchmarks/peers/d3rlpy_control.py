"""Updates of d3rlpy's SAC and CQL as its `fit` makes them (draw a batch, then `update`), asked for by run.py."""

from __future__ import annotations

from functools import cache

import numpy as np
from d3rlpy.algos import CQLConfig, SACConfig
from d3rlpy.dataset import MDPDataset
from d3rlpy.models.encoders import VectorEncoderFactory
from d3rlpy_dqn import EPISODE, updates_of

from shapes import Control, Run, serve


@cache
def dataset_of(shape: Control) -> MDPDataset:
    rng = np.random.default_rng(0)
    return MDPDataset(
        rng.normal(size=(shape.rows, *shape.observation)).astype(np.float32),
        rng.uniform(-1, 1, (shape.rows, shape.actions)).astype(np.float32),
        rng.normal(size=(shape.rows, 1)).astype(np.float32),
        (np.arange(shape.rows) % EPISODE == EPISODE - 1).astype(np.float32),
    )


def build(shape: Control, work: str, members: int) -> Run:
    assert work == "q", "d3rlpy has no DR3"
    encoder = VectorEncoderFactory(hidden_units=list(shape.hidden))
    common = {"batch_size": shape.batch, "actor_encoder_factory": encoder, "critic_encoder_factory": encoder}
    if shape.sampled_actions:
        # Its Lagrange multiplier is on by default; without a step size the weight stays as it is.
        config = CQLConfig(
            **common,
            n_action_samples=shape.sampled_actions,
            conservative_weight=5.0,
            alpha_learning_rate=0.0,
        )
    else:
        config = SACConfig(**common)
    return updates_of(config, dataset_of(shape), shape.batch, members)


if __name__ == "__main__":
    serve(build)
