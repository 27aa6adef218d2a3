"""Updates of d3rlpy's DQN and discrete CQL as its `fit` makes them (draw a batch, `update`), asked for by run.py."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import torch
from d3rlpy.algos import DiscreteCQLConfig, DQNConfig
from d3rlpy.dataset import MDPDataset
from d3rlpy.models.encoders import PixelEncoderFactory, VectorEncoderFactory
from d3rlpy.preprocessing import PixelObservationScaler

from shapes import ACTIONS, DISCOUNT, LEARNING_RATE, TARGET_PERIOD, Run, Shape, serve

torch.set_num_threads(len(os.sched_getaffinity(0)))

EPISODE = 100


@cache
def dataset_of(shape: Shape) -> MDPDataset:
    rng = np.random.default_rng(0)
    size = (shape.rows, *shape.observation[-1:], *shape.observation[:-1])  # channels first
    if shape.dtype == "float32":
        observations = rng.normal(size=size).astype(np.float32)
    else:
        observations = rng.integers(0, 256 if shape.dtype == "uint8" else 2, size).astype(np.uint8)
    return MDPDataset(
        observations,
        rng.integers(0, ACTIONS, (shape.rows, 1)),
        rng.normal(size=(shape.rows, 1)).astype(np.float32),
        (np.arange(shape.rows) % EPISODE == EPISODE - 1).astype(np.float32),
        action_size=ACTIONS,
    )


def build(shape: Shape, work: str, members: int) -> Run:
    assert work in ("q", "cql"), "d3rlpy has no DR3"
    if shape.stages:
        assert not shape.same_padding, "its convolutions never pad"
        encoder = PixelEncoderFactory(filters=[list(stage) for stage in shape.stages], feature_size=shape.hidden[-1])
    else:
        encoder = VectorEncoderFactory(hidden_units=list(shape.hidden))
    kind = DiscreteCQLConfig if work == "cql" else DQNConfig
    config = kind(
        batch_size=shape.batch,
        learning_rate=LEARNING_RATE,
        gamma=DISCOUNT,
        target_update_interval=TARGET_PERIOD,
        encoder_factory=encoder,
        observation_scaler=PixelObservationScaler() if shape.dtype == "uint8" else None,
    )
    return updates_of(config, dataset_of(shape), shape.batch, members)


def updates_of(config: Any, dataset: MDPDataset, batch: int, members: int) -> Run:
    """What its `fit` does at every step: draw a batch, then `update`."""
    population = [config.create() for _ in range(members)]
    for member in population:
        member.build_with_dataset(dataset)

    def run(updates: int) -> None:
        for member in population:
            for _ in range(updates):
                member.update(dataset.sample_transition_batch(batch))

    return run


if __name__ == "__main__":
    serve(build)
