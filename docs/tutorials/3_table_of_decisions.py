# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Your own table of decisions
#
# Most logs are rows in a warehouse: who, when, what was known, what was done, what came of it. From
# such a table to a policy and an estimate of its worth. It needs `pip install
# 'dr3[tables,plots]'`.
#
# ## A log
#
# Yours comes from a query. This one is of machines that wear: each day somebody runs on, or repairs
# if a crew is free. A worn machine earns less, and may break for good.

# %%
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

random = np.random.default_rng(0)


def day(wear, repair):
    """What a day brings: profit, the wear after it, and whether the machine broke for good."""
    broke = ~repair & (random.random(len(wear)) < 0.25 * wear**3)
    profit = np.where(repair, -1.0, 1.0 - wear)
    after = np.where(repair, 0.0, np.minimum(1.0, wear + random.uniform(0.0, 0.2, len(wear))))
    return profit, after, broke


machines, days = 400, []
wear, alive = np.zeros(machines), np.ones(machines, bool)
for date in range(30):
    crew = random.random(machines) < 0.6
    chance = np.where(crew, 0.15, 0.0)  # the habit: a repair now and then, whatever the wear
    repair = random.random(machines) < chance
    profit, after, broke = day(wear, repair)
    columns = {
        "machine": np.arange(machines),
        "date": np.full(machines, date),
        "wear": wear,
        "crew": crew,
        "action": np.where(repair, "repair", "run"),
        "can_run": np.ones(machines, bool),
        "can_repair": crew,
        "probability": np.where(repair, chance, 1 - chance),
        "profit": profit,
        "broke": broke,
    }
    days.append(pa.table({name: column[alive] for name, column in columns.items()}))
    wear, alive = after, alive & ~broke
pq.write_table(pa.concat_tables(days), "log.parquet")
print(sum(map(len, days)), "decisions")

# %% [markdown]
# ## What the columns mean
#
# A schema says it. `dr3 data schema log.parquet` writes a first guess with comments; here it is as
# a dictionary. Every maximum over actions will keep to the mask.

# %%
from rich.console import Console

import dr3

schema = {
    "observation": ["wear", "crew"],
    "action": "action",
    "reward": "profit",
    "episode": "machine",
    "time": "date",
    "terminal": "broke",  # nothing follows; an episode that ends otherwise was cut
    "ends": "timeout",
    "mask": "can_*",
    "propensity": "probability",
    "categories": {"action": ["run", "repair"]},
}
data = dr3.load("log.parquet", schema=schema)
Console(width=100).print(dr3.data.table(dr3.data.describe(data)))

# %% [markdown]
# ## Train, and estimate from the log
#
# A fifth of the machines is kept aside, to judge by rows that training never saw.

# %%
method = dr3.DQN(
    discount=0.95, hidden=(64, 64), learning_rate=1e-3, batch_size=256, target_period=100
)
runs = dr3.train(
    data,
    method,
    regularizer=dr3.DR3(0.001),
    steps=2000,
    held_out="20%",
    env=None,
    out="runs/repairs",
    progress=False,
)

# %%
from dr3.data.subsets import split_episodes
from dr3.ope import evaluate


def learned(observations):
    """To run on is always allowed, to repair where there is a crew."""
    crew = observations[:, 1] > 0
    return runs.policy(observations, np.stack([np.ones_like(crew), crew], axis=1))


_, held_out = split_episodes(data, "20%")
estimate = evaluate({"learned": learned}, held_out, discount=0.95, importance=False)
found = estimate.policies[0]
print("what was logged:", estimate.logged.text("{:.2f}".format))
print(
    "the learned one:",
    found.estimates["fqe"].text("{:.2f}".format)
    if "fqe" in found.estimates
    else found.reasons["fqe"],
)

# %% [markdown]
# ## What it does
#
# When to repair, by the wear, where a crew is free. A mask says what is allowed: without a crew the
# answer is always to run on.

# %%
grid = np.linspace(0, 1, 11, dtype=np.float32)
with_crew = np.stack([grid, np.ones(11, np.float32)], axis=1)
allowed = np.ones((11, 2), bool)
print("wear  ", grid.round(1))
print("action", [("run", "repair")[action] for action in runs.policy(with_crew, allowed)])

# %% [markdown]
# Why: what the critic says of both. The policy repairs where the lines have crossed.

# %%
import matplotlib.pyplot as plt

values = runs.action_values(with_crew)
figure, panel = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for action, name in enumerate(("run on", "repair")):
    panel.plot(grid, values[:, action], linewidth=2, label=name)
panel.set(xlabel="wear", ylabel="Q", title="What each action is worth, where a crew is free")
_ = panel.legend(frameon=False)

# %% [markdown]
# ## The truth
#
# You cannot compute it; the author of these machines can. 2,000 new ones, 60 days, discounted by
# 0.95 a day:

# %%


def worth(policy, machines=2000):
    wear, alive, total = np.zeros(machines), np.ones(machines, bool), np.zeros(machines)
    for date in range(60):
        crew = random.random(machines) < 0.6
        repair = policy(wear, crew) & crew
        profit, wear, broke = day(wear, repair)
        total += 0.95**date * alive * profit
        alive &= ~broke
    return f"{total.mean():.2f} ± {1.96 * total.std() / np.sqrt(machines):.2f}"


def by_the_run(wear, crew):
    return learned(np.stack([wear, crew], axis=1).astype(np.float32)) == 1


print("the habit      ", worth(lambda wear, crew: random.random(len(wear)) < 0.15))
print("never repair   ", worth(lambda wear, crew: np.zeros(len(wear), bool)))
print("the learned one", worth(by_the_run))

# %% [markdown]
# [Tables](../tables.md) has all that a schema can say, tables beyond memory, and a larger example;
# [estimates](../estimates.md) says how far such numbers are to be trusted.
