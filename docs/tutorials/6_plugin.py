# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # A method of your own, as a plugin
#
# A method says what the next state is worth and which a' that looks at. All else, DR3 and the
# doctor and a command with flags, comes by itself, because everything here is a function of the
# `Backup` that is made from it. Nothing in dr3's sources changes.
#
# ## A module
#
# Q-learning tends to overestimate; *Double* Q-learning takes a' by the online network and its value
# from the target network. This is the whole file `my_methods.py`:

# %%
from pathlib import Path

_ = Path("my_methods.py").write_text('''
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

import dr3
from dr3.methods import Bootstrap


@dr3.register
@dataclass(frozen=True)
class DoubleDQN(dr3.BootstrappedMethod):
    """Double Q-learning: targets r + γ Q_target(s', a'), a' = argmax Q(s', ·)."""

    name: ClassVar[str] = "double-dqn"

    def bootstrap(self, online: Array, target: Array, batch: dr3.Batch) -> Bootstrap:
        actions = jnp.argmax(online, axis=-1)
        values = jnp.take_along_axis(target, actions[:, None], axis=-1)[:, 0]
        same = (actions == batch.actions).astype(values.dtype)
        return Bootstrap(values=values, actions=actions, same_output=same)


@dr3.register
@dataclass(frozen=True)
class Decorrelated:
    """The mean squared cosine of φ(s, a) and φ(s', a')."""

    name: ClassVar[str] = "decorrelated"

    coefficient: float = 0.01
    """The weight of the term beside the method's own loss."""

    @property
    def reaches_next(self) -> bool:
        return True

    def __call__(self, backup: dr3.Backup) -> Array:
        dots = jnp.sum(backup.phi * backup.phi_next, axis=-1)
        lengths = jnp.linalg.norm(backup.phi, axis=-1) * jnp.linalg.norm(backup.phi_next, axis=-1)
        return jnp.mean((dots / jnp.maximum(lengths, 1e-8)) ** 2 * backup.bootstraps)
''')

# %% [markdown]
# ## In Python
#
# An import is enough. The method takes any regularizer, and the regularizer any method.

# %%
import sys

sys.path.insert(0, ".")

import my_methods

import dr3

data = dr3.load("grid16smoothobs")
runs = dr3.train(
    data,
    my_methods.DoubleDQN(discount=0.95, hidden=(64, 64), batch_size=64, target_period=50),
    regularizer=[None, dr3.DR3(0.03), my_methods.Decorrelated(0.1)],
    steps=1000,
    out="runs/double",
    progress=False,
)
for label, dot, cosine in zip(
    runs.labels, runs.metrics["features/dot_product"], runs.metrics["features/cosine"], strict=True
):
    print(f"{label}: dot product {dot[-1]:.2f}, cosine {cosine[-1]:.3f}")

# %% [markdown]
# As a picture. DR3 keeps the products smaller; the term of our own, at 0.1, hardly acts: that is
# what one finds out this way.

# %%
import matplotlib.pyplot as plt

names = ("Double DQN", "with DR3", "with my own term")
figure, panel = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for name, dots in zip(names, runs.metrics["features/dot_product"], strict=True):
    panel.plot(runs.steps, dots, linewidth=2, label=name)
panel.set(yscale="log", title="feature dot product φ(s, a)·φ(s', a')", xlabel="gradient updates")
_ = panel.legend(frameon=False)

# %% [markdown]
# The doctor knows it as well: it asks the method for its `Backup`.

# %%
print(runs.health())

# %% [markdown]
# ## In a shell
#
# Any command takes `--plugin MODULE`:
#
#     dr3 train double-dqn --plugin my_methods --data grid16smoothobs --regularizer decorrelated:0.1
#     dr3 diagnose runs/double --plugin my_methods
#
# The fields of the class are its flags, and the docstring its help:

# %%
from dr3.cli import invoke

_ = invoke(["run", "digest", "runs/double", "--plugin", "my_methods"])

# %% [markdown]
# An entry point makes it known without a word; [extending dr3](../extending.md#as-a-package) shows
# the three lines, and readers and worlds of your own. Test it as the house tests its own: `pytest
# tests/contracts -k double-dqn`.
