"""Two tables that report no experiment: the Atari agents' hyperparameters, and what Atari scores are normalised by."""

from __future__ import annotations

import numpy as np

from dr3.data import DiscreteActions
from dr3.methods import Spec
from dr3.paper.atari import atari
from dr3.paper.atari_checks import medians
from dr3.paper.experiments.declaration import Answer, Experiment, Row
from dr3.paper.experiments.evidence import Evidence
from dr3.paper.presets import TABLE, settings
from dr3.paper.scores import normalise
from dr3.paper.tables import table

FRAMES = (84, 84, 4)
# Table E.1 as printed, where it speaks of the agent; the rest of it is about the emulator.
AGENT = {
    "discount": 0.99,
    "mini-batch size": 32,
    "target network update period": 2000,
    "channels": (32, 64, 64),
    "filter size": (8, 4, 3),
    "stride": (4, 2, 1),
    "hidden units": 512,
}


def built_agents() -> dict[str, dict[str, object]]:
    """The same settings, read off the agents that `atari` builds: from their networks where these show them."""
    import jax

    found: dict[str, dict[str, object]] = {}
    for name in ("dqn", "rem", "cql"):
        method, _ = atari(name, "5%", dr3=False)
        spec = Spec(FRAMES, DiscreteActions(18))
        critic = method.critic(jax.eval_shape(lambda key, m=method, s=spec: m.init(s, key), jax.random.key(0)))
        convolutions = [layer for key, layer in critic.trunk.layers().items() if key.startswith("conv")]
        found[name] = {
            "discount": method.discount,
            "mini-batch size": method.batch_size,
            "target network update period": method.target_period,
            "channels": tuple(layer.weight.shape[-1] for layer in convolutions),
            "filter size": tuple(layer.weight.shape[0] for layer in convolutions),
            "stride": tuple(layer.stride for layer in convolutions),
            "hidden units": critic.trunk.width,
        }
    return found


def _agents_have_them(evidence: Evidence) -> Answer:
    wrong = [
        f"{name}: {key} is {there[key]} instead of {value}"
        for name, there in built_agents().items()
        for key, value in AGENT.items()
        if there[key] != value
    ]
    return Answer(
        "DQN, REM and CQL as built here have the agent's settings of table E.1.",
        not wrong,
        "; ".join(wrong) + "."
        if wrong
        else f"All {len(AGENT)} settings of the agent are those of DQN, REM and CQL here.",
        {"different": wrong},
        f"{len(wrong)} settings differ.",
    )


def _hyperparameters(evidence: Evidence) -> list[Row]:
    agents = built_agents()
    printed = [
        Row(one.name.replace("_", " "), str(one.value), None)
        for one in settings("hyperparameters-atari")
        if one.source == TABLE
    ]
    built = [
        Row(key, str(value), ", ".join(f"{name} {there[key]}" for name, there in agents.items()))
        for key, value in AGENT.items()
    ]
    return [*built, *printed]


def _medians_follow(evidence: Evidence) -> Answer:
    checks = list(medians())
    wrong = [check for check in checks if check.verdict != "follows"]
    return Answer(
        "The medians of table F.3 follow from these normalisers and the returns by game (tables F.4 to F.9).",
        not wrong,
        f"{len(checks) - len(wrong)} of {len(checks)} printed medians follow"
        + "".join(
            f"; {one.section}, {one.statement}: printed {one.published}, follows {one.recomputed}" for one in wrong
        )
        + ".",
        {"follow": len(checks) - len(wrong), "of": len(checks)},
        f"Of the {len(checks)} medians of table F.3, {len(checks) - len(wrong)} follow from the tables by game.",
    )


def _ends_of_the_scale(evidence: Evidence) -> Answer:
    found = table("atari-normalisers")
    wrong = [
        game
        for game, (low, high) in found.cells.items()
        if not np.allclose([normalise(game, low.mean), normalise(game, high.mean)], [0.0, 100.0])
    ]
    return Answer(
        "Scores here give 0 to the random agent and 100 to the average DQN replay, for every game.",
        not wrong,
        f"That is so for {len(found.rows) - len(wrong)} of {len(found.rows)} games.",
        {"different": wrong},
        f"{len(wrong)} games have other ends of their scale.",
    )


def _normalisers(evidence: Evidence) -> list[Row]:
    found = table("atari-normalisers")
    return [
        Row(f"{game}: {column.algorithm}", value.text(found.digits), None)
        for game, values in found.cells.items()
        for column, value in zip(found.columns, values, strict=True)
    ]


HYPERPARAMETERS = Experiment(
    id="table-E.1",
    label="table:hyperparams_atari",
    title="Hyperparameters of the Atari agents",
    claim="No claim: what the paper's Atari agents are.",
    printed="See the numbers; where the table is silent, `dr3 paper show hyperparameters-atari` says what is taken.",
    checks=(_agents_have_them,),
    numbers=_hyperparameters,
)

NORMALISERS = Experiment(
    id="table-F.10",
    label="tab:random_dqn_scores",
    title="Returns that count as 0 and as 100",
    claim="No claim: the random agent scores 0 and the average DQN replay 100; the normalised scores follow.",
    printed="34 returns: `dr3 paper show atari-normalisers`.",
    checks=(_ends_of_the_scale, _medians_follow),
    numbers=_normalisers,
)
