# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # DR3 in ten lines
#
# What you need: `pip install 'dr3[plots]'`. What you see: Q-learning on 256 logged transitions of a
# gridworld, with and without the DR3 term, and what the greedy policies are worth, which a
# gridworld lets us compute exactly.

# %%
import dr3

data = dr3.load("grid16smoothobs")  # or your own: dr3.load("logged.npz")
method = dr3.DQN(
    discount=0.95, hidden=(128, 128), learning_rate=1e-3, batch_size=128, target_period=50
)
runs = dr3.train(
    data,
    method,
    regularizer=[None, dr3.DR3(0.03)],
    steps=4000,
    seeds=3,
    out="runs/first",
    progress=False,
)
print(runs)

# %% [markdown]
# One call has trained a *population*: every regularizer with every seed. What was measured are
# arrays, one row for each member:

# %%
dots = runs.metrics["features/dot_product"]  # (members, measurements), at runs.steps
returns = runs.evaluations["evaluation/return"]  # (members, evaluations), at runs.evaluation_steps
for label, dot, value in zip(runs.labels, dots, returns, strict=True):
    print(f"{label!s:42} dot product {dot[-1]:6.1f}", end=", ")
    print(f"return: best {value.max():4.1f}, last {value[-1]:4.1f}")

# %% [markdown]
# As a picture: thin lines are seeds, thick ones their medians. Left what DR3 acts on, right what
# one wants.

# %%
import matplotlib.pyplot as plt
import numpy as np

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for name, colour in (("none", "#0072B2"), ("dr3:0.03", "#D55E00")):
    members = [number for number, label in enumerate(runs.labels) if label["regularizer"] == name]
    shown = "DQN" if name == "none" else "DQN + DR3"
    for panel, steps, values in ((left, runs.steps, dots), (right, runs.evaluation_steps, returns)):
        panel.plot(steps, values[members].T, color=colour, linewidth=0.7, alpha=0.4)
        panel.plot(
            steps, np.nanmedian(values[members], axis=0), color=colour, linewidth=2, label=shown
        )
left.set(yscale="log", title="feature dot product φ(s, a)·φ(s', a')", xlabel="gradient updates")
right.set(title="exact return of the greedy policy", xlabel="gradient updates")
_ = left.legend(frameon=False)

# %% [markdown]
# This world and this learning rate were chosen because the fall shows there. Three seeds of one
# such world are an illustration and no evidence: [the results](../reproduction.md) say where DR3
# helps and where it does not. The same from a shell:
#
#     dr3 compare dqn --data grid16smoothobs --regularizer none dr3:0.03 --steps 4000 --seeds 3 \
#         --discount 0.95 --hidden 128 128 --learning-rate 1e-3 --batch-size 128 --target-period 50
#
# Everything lies in a folder that opens again, today or next year, and answers in numpy:

# %%
again = dr3.open("runs/first")
actions = again.policy(data.observations[:5], member=3)
values = again.q(data.observations[:5], actions, member=3)
print(actions, values.round(1))
