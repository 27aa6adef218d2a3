"""The same updates in eager PyTorch, asked for by run.py; with the argument "fused", with its fused Adam."""

from __future__ import annotations

import copy
import os
import sys
from functools import cache

import numpy as np
import pytorch_cog
import torch
from torch import Tensor, nn

from shapes import ACTIONS, COEFFICIENT, DISCOUNT, LEARNING_RATE, TARGET_PERIOD, Control, Run, Shape, serve

torch.set_num_threads(len(os.sched_getaffinity(0)))

FUSED = "fused" in sys.argv[1:] or None  # one pass over the weights: the fastest of its three Adams on CPU, by request


def trunk(shape: Shape) -> nn.Sequential:
    layers: list[nn.Module] = []
    if shape.stages:
        height, width, channels = shape.observation
        for filters, kernel, stride in shape.stages:
            if shape.same_padding:
                rows, columns = -(-height // stride), -(-width // stride)
                down, across = (rows - 1) * stride + kernel - height, (columns - 1) * stride + kernel - width
                if down == across and down % 2 == 0:
                    layers.append(nn.Conv2d(channels, filters, kernel, stride, padding=down // 2))
                else:
                    # The odd row of zeros goes to the far side, which Conv2d itself cannot say.
                    layers.append(nn.ZeroPad2d((across // 2, across - across // 2, down // 2, down - down // 2)))
                    layers.append(nn.Conv2d(channels, filters, kernel, stride))
            else:
                rows, columns = (height - kernel) // stride + 1, (width - kernel) // stride + 1
                layers.append(nn.Conv2d(channels, filters, kernel, stride))
            layers.append(nn.ReLU())
            height, width, channels = rows, columns, filters
        layers.append(nn.Flatten())
        inputs = height * width * channels
    else:
        (inputs,) = shape.observation
    for units in shape.hidden:
        layers += [nn.Linear(inputs, units), nn.ReLU()]
        inputs = units
    return nn.Sequential(*layers)


class Member:
    """One learner; the table is shared."""

    def __init__(self, shape: Shape, work: str, table: tuple[Tensor, ...]) -> None:
        self.shape, self.work, self.table = shape, work, table
        self.trunk, self.head = trunk(shape), nn.Linear(shape.hidden[-1], ACTIONS)
        self.target_trunk, self.target_head = copy.deepcopy(self.trunk), copy.deepcopy(self.head)
        parameters = [*self.trunk.parameters(), *self.head.parameters()]
        self.adam = torch.optim.Adam(parameters, lr=LEARNING_RATE, fused=FUSED)
        self.step = 0

    def update(self) -> None:
        rows = torch.randint(self.shape.rows, (self.shape.batch,))
        observations, actions, rewards, next_observations, terminals = (column[rows] for column in self.table)
        observations, next_observations = as_input(observations), as_input(next_observations)
        bootstraps = 1 - terminals
        with torch.no_grad():
            following = self.target_head(self.target_trunk(next_observations)).amax(1)
            targets = rewards + DISCOUNT * bootstraps * following

        phi = self.trunk(observations)
        values = self.head(phi).gather(1, actions[:, None]).squeeze(1)
        loss = torch.mean((values - targets) ** 2)
        if self.work != "q":
            with torch.set_grad_enabled(self.work == "q+dr3"):
                phi_next = self.trunk(next_observations)
            loss = loss + COEFFICIENT * torch.mean((phi * phi_next).sum(1) * bootstraps)

        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()
        self.step += 1
        if self.step % TARGET_PERIOD == 0:
            self.target_trunk.load_state_dict(self.trunk.state_dict())
            self.target_head.load_state_dict(self.head.state_dict())


def as_input(observations: Tensor) -> Tensor:
    return observations.float() / 255 if observations.dtype == torch.uint8 else observations.float()


@cache
def table_of(shape: Shape) -> tuple[Tensor, ...]:
    rng = np.random.default_rng(0)
    size = (shape.rows, *shape.observation[-1:], *shape.observation[:-1])  # channels first

    def observations() -> Tensor:
        if shape.dtype == "float32":
            return torch.from_numpy(rng.normal(size=size).astype(np.float32))
        return torch.from_numpy(rng.integers(0, 256 if shape.dtype == "uint8" else 2, size).astype(shape.dtype))

    actions = torch.from_numpy(rng.integers(0, ACTIONS, shape.rows))
    rewards = torch.from_numpy(rng.normal(size=shape.rows).astype(np.float32))
    terminals = torch.from_numpy((rng.random(shape.rows) < 0.01).astype(np.float32))
    return observations(), actions, rewards, observations(), terminals


def build(shape: Shape | Control, work: str, members: int) -> Run:
    if isinstance(shape, Control):
        return pytorch_cog.build(shape, work, members, FUSED)
    table = table_of(shape)
    population = [Member(shape, work, table) for _ in range(members)]

    def run(updates: int) -> None:
        for member in population:
            for _ in range(updates):
                member.update()

    return run


if __name__ == "__main__":
    serve(build)
