"""COG's update with the strided encoder in eager PyTorch: CQL on pictures, one sampled action of each kind."""

from __future__ import annotations

import copy
import math
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shapes import COEFFICIENT, DISCOUNT, LEARNING_RATE, Control, Run

TARGET_RATE = 0.005
POLICY_LEARNING_RATE = 1e-4


def encoder(shape: Control) -> nn.Sequential:
    """Patches of 4 x 4, then 3 x 3 with stride 2, zeros at the far side where they are odd."""
    inputs = shape.observation[-1]
    layers: list[nn.Module] = [nn.Conv2d(inputs, shape.channels[0], 4, 4), nn.ReLU()]
    for before, after in zip(shape.channels[:-1], shape.channels[1:], strict=True):
        layers += [nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(before, after, 3, 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten())


def dense(inputs: int, shape: Control, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for units in shape.hidden:
        layers += [nn.Linear(inputs, units), nn.ReLU()]
        inputs = units
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


class Critics(nn.Module):
    """Two of them over one encoder."""

    def __init__(self, shape: Control) -> None:
        super().__init__()
        self.encoder = encoder(shape)
        width = (shape.observation[0] // 2 ** (len(shape.channels) + 1)) ** 2 * shape.channels[-1]
        self.width = width
        self.members = nn.ModuleList(dense(width + shape.actions, shape, 1) for _ in range(2))

    def features(self, seen: Tensor, actions: Tensor) -> list[Tensor]:
        """phi_k(s, a): (…, n, width)."""
        pairs = torch.cat([seen.expand(*actions.shape[:-1], -1), actions], -1)
        return [critic[:-1](pairs) for critic in self.members]

    def q(self, seen: Tensor, actions: Tensor) -> Tensor:
        return self.values(self.features(seen, actions))

    def values(self, phi: list[Tensor]) -> Tensor:
        return torch.stack([critic[-1](of).squeeze(-1) for critic, of in zip(self.members, phi, strict=True)])


class Policy(nn.Module):
    """A Gaussian that tanh squashes."""

    def __init__(self, shape: Control, width: int) -> None:
        super().__init__()
        self.encoder, self.dense = encoder(shape), dense(width, shape, 2 * shape.actions)

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.dense(self.encoder(pictures)).chunk(2, -1)
        return mean.clamp(-9, 9), log_std.clamp(-5, 2)


def sample(mean: Tensor, log_std: Tensor, *count: int) -> tuple[Tensor, Tensor]:
    noise = torch.randn(*count, *mean.shape)
    raw = mean + log_std.exp() * noise
    slope = 2 * (math.log(2) - raw - functional.softplus(-2 * raw))
    density = (-0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi) - slope).sum(-1)
    return raw.tanh(), density


class Member:
    """One learner, past its warm start; the table is shared."""

    def __init__(self, shape: Control, work: str, table: tuple[Tensor, ...], fused: bool | None) -> None:
        self.shape, self.work, self.table = shape, work, table
        self.critics = Critics(shape)
        self.target = copy.deepcopy(self.critics)
        self.policy = Policy(shape, self.critics.width)
        self.log_temperature = torch.zeros((), requires_grad=True)
        self.adam = torch.optim.Adam(self.critics.parameters(), lr=LEARNING_RATE, fused=fused)
        self.adams = [
            torch.optim.Adam(of, lr=POLICY_LEARNING_RATE, fused=fused)
            for of in (self.policy.parameters(), [self.log_temperature])
        ]

    def update(self) -> None:
        shape = self.shape
        rows = torch.randint(shape.rows, (shape.batch,))
        pictures, actions, rewards, following, terminals = (column[rows] for column in self.table)
        pictures, following = (moved(one, shape.crop).float() / 255 for one in (pictures, following))
        with torch.no_grad():
            at_next = self.policy(following)
            next_actions, _ = sample(*at_next)
            next_values = self.target.q(self.target.encoder(following), next_actions).amin(0)
            targets = rewards + DISCOUNT * (1 - terminals) * next_values
            sampled_next, density_next = sample(*at_next, shape.sampled_actions)
        here = self.policy(pictures)
        with torch.no_grad():
            sampled, density = sample(*here, shape.sampled_actions)
        seen = self.critics.encoder(pictures)
        phi = self.critics.features(seen, actions)
        values = self.critics.values(phi)
        uniform = torch.rand_like(sampled) * 2 - 1
        chance = torch.full_like(density, shape.actions * math.log(0.5))
        drawn = self.critics.q(seen, torch.cat([uniform, sampled_next, sampled]))
        gap = torch.logsumexp(drawn - torch.cat([chance, density_next, density]), 1).mean() - values.mean()
        loss = ((values - targets) ** 2).mean() + gap
        if self.work != "q":
            phi_next = self.critics.features(self.critics.encoder(following), next_actions)
            dots = torch.stack([(a * b).sum(-1) for a, b in zip(phi, phi_next, strict=True)])
            loss = loss + COEFFICIENT * (dots * (1 - terminals)).mean()
        # The policy's loss is taken before the critics move, and leaves no gradient in them.
        chosen, chance = sample(*here)
        for parameter in self.critics.parameters():
            parameter.requires_grad_(False)
        worth = self.critics.q(seen.detach(), chosen).amin(0)
        temperature = self.log_temperature.exp()
        policy_loss = (temperature.detach() * chance - worth).mean()
        for parameter in self.critics.parameters():
            parameter.requires_grad_(True)
        temperature_loss = -(self.log_temperature * (chance.detach() - shape.actions).mean())
        for adam in (self.adam, *self.adams):
            adam.zero_grad(set_to_none=True)
        (loss + policy_loss + temperature_loss).backward()
        for adam in (self.adam, *self.adams):
            adam.step()
        with torch.no_grad():
            for late, now in zip(self.target.parameters(), self.critics.parameters(), strict=True):
                late.lerp_(now, TARGET_RATE)


def moved(pictures: Tensor, by: int) -> Tensor:
    """Each picture at a place of its own, its edges repeated: (n, c, h, w)."""
    n, _, height, width = pictures.shape
    down, right = torch.randint(-by, by + 1, (2, n, 1))
    rows, columns = (
        (torch.arange(height) + down).clamp(0, height - 1),
        (torch.arange(width) + right).clamp(0, width - 1),
    )
    return pictures[torch.arange(n)[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@cache
def table_of(shape: Control) -> tuple[Tensor, ...]:
    rng = np.random.default_rng(0)
    height, width, channels = shape.observation
    first, second = (
        torch.from_numpy(rng.integers(0, 256, (shape.rows, channels, height, width)).astype(np.uint8)) for _ in range(2)
    )
    actions = torch.from_numpy(rng.uniform(-1, 1, (shape.rows, shape.actions)).astype(np.float32))
    rewards = torch.from_numpy(rng.normal(size=shape.rows).astype(np.float32))
    terminals = torch.from_numpy((rng.random(shape.rows) < 0.01).astype(np.float32))
    return first, actions, rewards, second, terminals


def build(shape: Control, work: str, members: int, fused: bool | None) -> Run:
    table = table_of(shape)
    population = [Member(shape, work, table, fused) for _ in range(members)]

    def run(updates: int) -> None:
        for member in population:
            for _ in range(updates):
                member.update()

    return run
