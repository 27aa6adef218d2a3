# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # DR3 in your PyTorch loop, and in d3rlpy
#
# You keep your code: one line goes into the loss, and the doctor looks at the network as it is. It
# needs
#
#     pip install 'dr3[torch]' d3rlpy
#
# ## A loop of your own
#
# A network is its features and a last linear layer. DR3 asks for the *online* network's features on
# both sides, neither detached.

# %%
import copy

import torch
from torch import nn

import dr3
from dr3.integrations.torch import dr3_penalty

data = dr3.load("grid16smoothobs")
table = {
    name: torch.as_tensor(getattr(data, name))
    for name in ("observations", "rewards", "next_observations")
}
actions, terminal = torch.as_tensor(data.actions).long(), torch.as_tensor(data.terminals).float()


class Critic(nn.Module):
    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()
        )
        self.head = nn.Linear(128, count)

    def forward(self, observations):
        return self.head(self.features(observations))


def train(coefficient: float, steps: int = 1500) -> dict[int, Critic]:
    """Q-learning, with DR3 if the coefficient is not 0; a copy of the critic every 300 steps."""
    torch.manual_seed(0)
    critic = Critic(data.observations.shape[1], data.action_space.count)
    target, optimizer, history = (
        copy.deepcopy(critic),
        torch.optim.Adam(critic.parameters(), 1e-3),
        {},
    )
    for step in range(1, steps + 1):
        rows = torch.randint(len(data), (128,))
        phi, phi_next = (
            critic.features(table["observations"][rows]),
            critic.features(table["next_observations"][rows]),
        )
        with torch.no_grad():
            ahead = target(table["next_observations"][rows]).max(-1).values
            wanted = table["rewards"][rows] + 0.95 * (1 - terminal[rows]) * ahead
        q = critic.head(phi).gather(-1, actions[rows, None])[:, 0]
        loss = nn.functional.mse_loss(q, wanted)
        if coefficient:
            loss = loss + coefficient * dr3_penalty(
                phi, phi_next, bootstraps=1 - terminal[rows]
            )  # <- the line
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            target.load_state_dict(critic.state_dict())
        if step % 300 == 0:
            history[step] = copy.deepcopy(critic)
    return history


plain, with_dr3 = train(0.0), train(0.03)

# %% [markdown]
# The doctor takes the module and the names of two layers, or a history of them:

# %%
import matplotlib.pyplot as plt

figure, panel = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for name, history in (("DQN", plain), ("DQN + DR3", with_dr3)):
    health = dr3.diagnose(history, data, layer="features", last_layer="head", discount=0.95)
    dots = health.measurements.columns["features/dot_product"][0]
    panel.plot(list(history), dots, "o-", linewidth=2, label=name)
    print(f"{name}: dot products {dots.round(1)}")
    print(health)
panel.set(yscale="log", title="feature dot product φ(s, a)·φ(s', a')", xlabel="gradient updates")
_ = panel.legend(frameon=False)

# %% [markdown]
# ## d3rlpy
#
# Four of its algorithms have a twin with a setting `dr3`; all else, saving and logging too, is
# d3rlpy's own. With coefficient 0 it trains as d3rlpy does, bit for bit, by test.

# %%
import logging
import warnings

import numpy as np
import structlog

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # d3rlpy imports gym, which warns about itself
    import d3rlpy

    from dr3.integrations.d3rlpy import DR3DiscreteCQLConfig

# d3rlpy tells of every epoch; here its last numbers are enough
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))

ends = np.append(data.episodes[1:] != data.episodes[:-1], True)
dataset = d3rlpy.dataset.MDPDataset(
    observations=data.observations.astype(np.float32),
    actions=data.actions,
    rewards=data.rewards,
    terminals=data.terminals.astype(np.float32),
    timeouts=(ends & ~data.terminals).astype(np.float32),
)
algorithm = DR3DiscreteCQLConfig(dr3="dr3:0.03", gamma=0.95, batch_size=64).create(device="cpu:0")
history = algorithm.fit(
    dataset,
    n_steps=300,
    n_steps_per_epoch=100,
    show_progress=False,
    logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
)
print(
    {
        name: round(float(value), 3)
        for name, value in history[-1][1].items()
        if name in ("loss", "td_loss", "dr3")
    }
)

# %% [markdown]
# The doctor takes the algorithm as it is:

# %%
print(dr3.diagnose(algorithm, data, discount=0.95))

# %% [markdown]
# More, also for Flax, Equinox and plain functions: [a critic from
# elsewhere](../diagnose.md#a-critic-from-elsewhere), and [the
# penalty](../regularizer.md#in-a-training-loop-of-your-own) with its choices.
