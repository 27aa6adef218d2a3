"""Two tables that report no experiment: the Atari agents' hyperparameters, and what Atari scores are normalised by."""

from __future__ import annotations

import numpy as np

from dr3.data import DiscreteActions
from dr3.envs import Atari as Game
from dr3.envs.atari import FRAME_SKIP, FRAMES_PER_EPISODE, STICKY
from dr3.methods import Spec
from dr3.paper.atari import atari
from dr3.paper.experiments.atari import SIZES
from dr3.paper.experiments.declaration import Answer, Experiment, Row
from dr3.paper.experiments.evidence import Evidence
from dr3.paper.presets import ATARI_DATA, AtariSettings
from dr3.paper.scores import normalise
from dr3.paper.tables import table
from dr3.training.emulation import EmulatedRollouts

FRAMES = (84, 84, 4)
# Table E.1 as printed, row by row.
PRINTED: dict[str, object] = {
    "sticky actions": True,
    "sticky action probability": 0.25,
    "grey-scaling": True,
    "observation down-sampling": (84, 84),
    "frames stacked": 4,
    "frame skip": 4,
    "reward clipping": (-1, 1),
    "terminal condition": "game over",
    "max frames per episode": 108_000,
    "discount": 0.99,
    "mini-batch size": 32,
    "target network update period": 2000,
    "training environment steps per iteration": 250_000,
    "update period": 4,
    "evaluation epsilon": 0.001,
    "evaluation steps per iteration": 125_000,
    "channels": (32, 64, 64),
    "filter size": (8, 4, 3),
    "stride": (4, 2, 1),
    "hidden units": 512,
}
REWARD_LIMITS = (-1, 1)  # those of the public logs, and of `dr3 data collect dqn`, which clips as they do
STEPS_PER_UPDATE = AtariSettings().update_period


def built_agents() -> dict[str, dict[str, object]]:
    """The same rows, read off the agents that `atari` builds, their networks, and what they are tried in."""
    import jax

    found: dict[str, dict[str, object]] = {}
    for name in ("dqn", "rem", "cql"):
        method, _ = atari(name, "5%", dr3=False)
        spec = Spec(FRAMES, DiscreteActions(18))
        critic = method.model(jax.eval_shape(lambda key, m=method, s=spec: m.init(s, key), jax.random.key(0)))
        convolutions = [layer for key, layer in critic.trunk.layers().items() if key.startswith("conv")]
        per_iteration = ATARI_DATA["5%"].gradient_steps // ATARI_DATA["5%"].iterations
        found[name] = {
            "sticky actions": STICKY > 0,
            "sticky action probability": STICKY,
            "grey-scaling": len(Game.frame_shape) == 2,  # one number for each pixel
            "observation down-sampling": Game.frame_shape,
            "frames stacked": Game.stack,
            "frame skip": FRAME_SKIP,
            "reward clipping": REWARD_LIMITS,
            "terminal condition": "game over",
            "max frames per episode": FRAMES_PER_EPISODE,
            "discount": method.discount,
            "mini-batch size": method.batch_size,
            "target network update period": method.target_period,
            # Offline an iteration is what an online agent would learn in so many steps of the game.
            "training environment steps per iteration": per_iteration * STEPS_PER_UPDATE,
            "update period": STEPS_PER_UPDATE,
            "evaluation epsilon": EmulatedRollouts.epsilon,
            "evaluation steps per iteration": f"{SIZES['paper'].episodes} episodes",
            "channels": tuple(layer.weight.shape[-1] for layer in convolutions),
            "filter size": tuple(layer.weight.shape[0] for layer in convolutions),
            "stride": tuple(layer.stride for layer in convolutions),
            "hidden units": critic.trunk.width,
        }
    return found


def _agents_have_them(evidence: Evidence) -> Answer:
    agents = built_agents()
    wrong = [
        f"{key} is {' or '.join(sorted(different))} instead of {value}"
        for key, value in PRINTED.items()
        if (different := {str(there[key]) for there in agents.values() if there[key] != value})
    ]
    return Answer(
        f"DQN, REM and CQL as built here have all {len(PRINTED)} settings of table E.1.",
        "does not show" if wrong else "shows",
        f"{len(PRINTED) - len(wrong)} of {len(PRINTED)} are as printed. {'; '.join(wrong).capitalize()}".rstrip() + ".",
        {"different": wrong},
        f"{len(PRINTED) - len(wrong)} of {len(PRINTED)} settings are as printed: {'; '.join(wrong)}.",
    )


def _hyperparameters(evidence: Evidence) -> list[Row]:
    agents = built_agents()
    return [
        Row(key, str(value), ", ".join(dict.fromkeys(str(there[key]) for there in agents.values())))
        for key, value in PRINTED.items()
    ]


def _ends_of_the_scale(evidence: Evidence) -> Answer:
    found = table("atari-normalisers")
    wrong = [
        game
        for game, (low, high) in found.cells.items()
        if not np.allclose([normalise(game, low.mean), normalise(game, high.mean)], [0.0, 100.0])
    ]
    return Answer(
        "Scores here give 0 to the random agent and 100 to the average DQN replay, for every game.",
        "does not show" if wrong else "shows",
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
    claim="The random agent scores 0 and the average DQN replay 100.",
    printed="34 returns: `dr3 paper show atari-normalisers`.",
    checks=(_ends_of_the_scale,),
    numbers=_normalisers,
)
