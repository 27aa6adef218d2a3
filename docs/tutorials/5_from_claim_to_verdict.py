# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # A paper's figure, from claim to verdict
#
# All forty figures and tables of the paper are declared as experiments: a claim, the runs that it
# needs, checks that were fixed before anybody looked, and a verdict. Here is one at a size that
# takes seconds. It needs `pip install 'dr3[plots]'`.

# %%
from dr3.paper.experiments import find

(figure,) = find(["figure-A.10"])
print(figure.title)
print(figure.claim)
print(figure.printed)
print(figure.checks)

# %% [markdown]
# The paper: where a' is drawn from a policy it may never have been logged (TD-learning), features
# grow alike more than where a' is the logged one (offline SARSA). The check asks whether the dot
# products of the one *end* larger than those of the other, on more than half of the worlds.
#
# ## The runs
#
# The command for it is `dr3 reproduce figure-A.10`: at `laptop` scale minutes, at `smoke` scale
# seconds that mean nothing. In between lies a size of our own, smaller networks and fewer updates;
# claim, check and picture stay as they are.

# %%
from dataclasses import replace
from pathlib import Path

from dr3.paper.experiments import Plan, reproduce
from dr3.paper.experiments.gridworld import GridworldSize, out_of_sample
from dr3.sweeps import InProcess

size = GridworldSize((32, 32), 1000, seeds=3)
small = replace(figure, design=lambda scale, folders: out_of_sample(size))
plan = Plan((small,), "laptop", Path("data"), Path("reproduction"))
(result,) = reproduce(plan, engine=InProcess(), show=False)

# %% [markdown]
# ## The verdict
#
# *Shows*, *does not show*, *precondition not met* or *cannot be compared*; with the numbers that it
# rests on, world by world.

# %%
print(result.verdict)
for answer in result.answers:
    print("-", answer.sentence)
print(result.note)

# %% [markdown]
# ## The picture
#
# Medians over seeds, with the middle half of them as a band, the same scale along a row:

# %%
import matplotlib.pyplot as plt

drawn = plt.imread(plan.folder(small) / "figure.png")
shown, panel = plt.subplots(figsize=(drawn.shape[1] / 150, drawn.shape[0] / 150))
panel.imshow(drawn)
_ = panel.axis("off")

# %% [markdown]
# Every finished population left a small bundle of evidence. Verdicts and pictures are made of these
# alone, so that judging again trains nothing, and a verdict can be checked by somebody who has no
# runs:

# %%
from dr3.paper.experiments import judged

bundles = sorted(path for path in Path("reproduction").rglob("*.json") if "evidence" in path.parts)
print(
    len(bundles), "bundles of evidence,", sum(path.stat().st_size for path in bundles) // 1024, "kB"
)
(again,) = judged(plan)
print(again.verdict)

# %% [markdown]
# [The record](../reproduction.md) has all of them at laptop scale, [reproduce](../reproduce.md)
# says how rules are calibrated.
