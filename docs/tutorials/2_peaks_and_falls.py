# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # My critic peaks and falls
#
# You have a log and no simulator, and the policy was better last week than after more training.
# Here is the whole way: train, diagnose, cure, select, export. It needs `pip install
# 'dr3[plots,export]'`.
#
# The log is a gridworld's, so that at the end we can look at the truth, which you will not have.
# Nothing before the last section reads it: `env=None`. The learning rate was chosen because the
# fall shows with it.

# %%
import dr3

data = dr3.load("grid16smoothobs:seed=1")
settings = {
    "discount": 0.95,
    "hidden": (128, 128),
    "learning_rate": 1e-3,
    "batch_size": 128,
    "target_period": 50,
}
before = dr3.train(
    data,
    dr3.DQN(**settings),
    steps=4000,
    held_out="20%",
    env=None,
    evaluate_every=400,
    out="runs/before",
    progress=False,
)

# %% [markdown]
# ## Diagnose
#
# The doctor looks at the critics of all checkpoints. A *verdict* is only what has been shown to
# foretell a fall, or is one; the rest are notes. "Healthy" is no promise of a good policy.

# %%
print(before.health())

# %% [markdown]
# ## Cure
#
# DR3 is one argument, and several coefficients are one population. `dr3 cure` does the same with
# other published remedies.

# %%
after = dr3.train(
    data,
    dr3.DQN(**settings),
    regularizer=[dr3.DR3(0.003), dr3.DR3(0.03)],
    steps=4000,
    held_out="20%",
    env=None,
    evaluate_every=400,
    out="runs/after",
    progress=False,
)
print(after.health())

# %%
import matplotlib.pyplot as plt

figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for panel, name, title in zip(
    panels,
    ("features/dot_product", "q/data_mean"),
    ("feature dot product", "mean Q(s, a)"),
    strict=True,
):
    panel.plot(before.steps, before.metrics[name][0], color="#0072B2", label="DQN")
    for number, colour in ((0, "#E69F00"), (1, "#D55E00")):
        panel.plot(
            after.steps,
            after.metrics[name][number],
            color=colour,
            label=f"DQN + {after.labels[number]['regularizer']}",
        )
    panel.set(title=title, xlabel="gradient updates", yscale="symlog")
_ = panels[0].legend(frameon=False)

# %% [markdown]
# ## Select
#
# All checkpoints of all members are candidates. Fitted Q evaluation estimates what each policy is
# worth from the episodes that were held out; where several cannot be told apart it
# keeps the one that is surest to be better than the logged policy, and where none is, it says so.

# %%
from dr3.diagnostics import rank

ranking = rank([before, after])
print(ranking.sentence)
for candidate in ranking.order[:5]:
    print(
        f"  {candidate.name:45} {ranking.scores[candidate.name].text()}"
        if candidate.name in ranking.scores
        else candidate.name
    )

# %% [markdown]
# ## Export
#
# The chosen policy, or your own choice where the ranking abstains, becomes one file that replays
# logged rows and compares.

# %%
from dr3.export import export_policy, verify

chosen = ranking.chosen
runs, number, step = (
    (chosen.runs, chosen.member, chosen.step) if chosen else (after, 1, after.checkpoints[-1])
)
export_policy(runs, "policy.onnx", member=number, step=step)
found = verify("policy.onnx")
print(f"{found.rows} rows, the same: {found.same}, up to {found.largest_difference:.0e}")

# %% [markdown]
# ## The truth
#
# Only a simulator knows it: the exact return of every checkpoint's greedy policy.

# %%
from dr3.training import Policy, evaluator_for

world = evaluator_for("grid16smoothobs")
for name, run in (("DQN", before), ("DQN + DR3", after)):
    for place, member in enumerate(run.members):
        worth = []
        for at in run.checkpoints[1:]:
            policy = Policy(member.method, run.critics(at)[place], run.spec)
            worth.append(
                round(world(policy, seed=0, step=at, discount=0.95)["evaluation/return"], 1)
            )
        print(f"{name:10} {run.labels[place].get('regularizer', ''):10} {worth}")
print(f"kept: {runs.path}, step {step}")
