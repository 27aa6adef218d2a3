"""The paper's hyperparameters, each with where it comes from. Plain numbers: the wiring to methods is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeVar

from dr3.errors import UserError

T = TypeVar("T")


def _from(source: str, value: T) -> T:
    """A field's default that remembers its source: a place in the paper, a public release, or our own choice."""
    return field(default=value, metadata={"source": source})


TABLE = "appendix E, table of Atari hyperparameters"
E1 = "appendix E.1"
E3 = "appendix E.3"
AGENT = "the authors' released Atari agent (not in the paper)"
CQL_RELEASE = "CQL's public release (not in the paper)"
BRAC_RELEASE = "BRAC's public release (not in the paper)"
COG_RELEASE = "COG's public release (not in the paper)"
CHOICE = "not stated anywhere; this project's choice"


@dataclass(frozen=True)
class AtariSettings:
    """What all Atari agents share."""

    sticky_action_probability: float = _from(TABLE, 0.25)
    grey_scale: bool = _from(TABLE, True)
    observation_size: tuple[int, int] = _from(TABLE, (84, 84))
    frames_stacked: int = _from(TABLE, 4)
    frame_skip: int = _from(TABLE, 4)
    reward_clip: tuple[float, float] = _from(TABLE, (-1.0, 1.0))
    terminal_on_life_loss: bool = _from(TABLE, False)
    max_frames_per_episode: int = _from(TABLE, 108_000)
    discount: float = _from(TABLE, 0.99)
    batch_size: int = _from(TABLE, 32)
    target_update_period: int = _from(TABLE, 2_000)
    environment_steps_per_iteration: int = _from(TABLE, 250_000)
    update_period: int = _from(TABLE, 4)
    gradient_steps_per_iteration: int = _from("appendix F, captions: 250,000 / 4", 62_500)
    evaluation_epsilon: float = _from(TABLE, 0.001)
    evaluation_steps: int = _from(TABLE, 125_000)
    channels: tuple[int, int, int] = _from(TABLE, (32, 64, 64))
    filters: tuple[int, int, int] = _from(TABLE, (8, 4, 3))
    strides: tuple[int, int, int] = _from(TABLE, (4, 2, 1))
    hidden_units: int = _from(TABLE, 512)
    seeds: int = _from(TABLE, 5)
    learning_rate: float = _from(AGENT, 5e-5)
    adam_epsilon: float = _from(AGENT, 3.125e-4)
    averaged_checkpoints: int = _from("appendix F, captions", 20)
    rem_heads: int = _from(E1, 200)
    label_noise_iterations: int = _from("appendix A.5", 50)


@dataclass(frozen=True)
class AtariData:
    """One of the three offline data sets and what belongs to it."""

    share: float
    iterations: int
    cql_weight: float

    @property
    def gradient_steps(self) -> int:
        """6.25M for 1%, where the captions say 6.5M; 12.5M for the other two."""
        return self.iterations * AtariSettings().gradient_steps_per_iteration


# The text says a CQL weight of 0.1 for all Atari experiments; the captions, which are used here, say 1.0 for 1%.
ATARI_DATA = {"1%": AtariData(0.01, 100, 1.0), "5%": AtariData(0.05, 200, 0.1), "10%": AtariData(0.10, 200, 0.1)}

# The two places that name the five tuning games disagree.
TUNING_GAMES = {
    "appendix E.2": ("Asterix", "Qbert", "Pong", "Seaquest", "Breakout"),
    "appendix E.3": ("Asterix", "Seaquest", "Breakout", "Pong", "SpaceInvaders"),
}


@dataclass(frozen=True)
class DR3Coefficients:
    """c0, the weight of the DR3 term as a mean over the batch; None where the paper gives none."""

    cql_atari: float = _from(E3, 0.03)
    rem_atari: float = _from(E3, 0.001)
    cql_antmaze: float = _from(E3, 0.001)
    cql_kitchen: float = _from(E3, 1.0)
    cql_mujoco: float = _from("appendix A.3", 0.01)
    brac_mujoco: float | None = _from("not stated anywhere", None)
    cog: float | None = _from("not stated in the paper; collaborators' code has 0.001", None)
    atari_grid: tuple[float, ...] = _from(E3, (0.001, 0.01, 0.03, 0.3))
    d4rl_grid: tuple[float, ...] = _from(E3, (0.0001, 0.001, 0.01, 0.5, 1.0, 10.0))


@dataclass(frozen=True)
class CQLWeights:
    """alpha, the weight of CQL's own regularizer."""

    atari_1: float = _from("appendix F, caption (the text says 0.1)", 1.0)
    atari_5: float = _from("appendix F, caption", 0.1)
    atari_10: float = _from("appendix F, caption", 0.1)
    antmaze: float = _from(E1, 5.0)
    kitchen: float = _from(E1, 5.0)
    mujoco: float = _from("appendix A.3", 5.0)
    mujoco_grid: tuple[float, ...] = _from("appendix A.3", (1.0, 2.0, 5.0, 10.0, 20.0))
    cog: float = _from(E1, 1.0)


@dataclass(frozen=True)
class D4RL:
    """CQL on AntMaze (v2), Kitchen (v0) and the subsampled full-replay MuJoCo tasks (v2)."""

    critic_layers: tuple[int, ...] = _from(E1, (256, 256, 256, 256))
    policy_layers: tuple[int, ...] = _from(CQL_RELEASE, (256, 256, 256))
    critic_learning_rate: float = _from("table 2, caption", 3e-4)
    policy_learning_rate: float = _from(CQL_RELEASE, 1e-4)
    discount: float = _from(CQL_RELEASE, 0.99)
    batch_size: int = _from(CQL_RELEASE, 256)
    target_rate: float = _from(CQL_RELEASE, 0.005)
    sampled_actions: int = _from(CQL_RELEASE, 10)
    behaviour_cloning_steps: int = _from(CQL_RELEASE, 40_000)
    antmaze_steps: tuple[int, ...] = _from("table 2", (2_000_000, 3_000_000))
    antmaze_reward_shift: float = _from(CQL_RELEASE, -0.5)
    antmaze_reward_scale: float = _from(CQL_RELEASE, 4.0)
    antmaze_lagrange_threshold: float = _from(CQL_RELEASE, 5.0)
    kitchen_steps: int = _from("appendix A.8", 2_000_000)
    mujoco_steps: int = _from("appendix A.3", 4_000_000)
    mujoco_data_share: float = _from("appendix A.3", 0.2)
    seeds: int = _from("table 2, caption", 3)


@dataclass(frozen=True)
class BRACSettings:
    """BRAC on the Gym-MuJoCo v0 tasks. The paper gives the form of the loss and the steps, no weights."""

    behaviour_weight: float = _from(CHOICE, 0.1)
    entropy_weight: float = _from(CHOICE, 0.1)
    critic_layers: tuple[int, ...] = _from(BRAC_RELEASE, (300, 300))
    policy_layers: tuple[int, ...] = _from(BRAC_RELEASE, (200, 200))
    critic_learning_rate: float = _from(BRAC_RELEASE, 1e-3)
    policy_learning_rate: float = _from(BRAC_RELEASE, 3e-4)
    behaviour_learning_rate: float = _from(BRAC_RELEASE, 5e-4)
    behaviour_steps: int = _from(BRAC_RELEASE, 300_000)
    discount: float = _from(BRAC_RELEASE, 0.99)
    batch_size: int = _from(BRAC_RELEASE, 256)
    target_rate: float = _from(BRAC_RELEASE, 0.005)
    steps: int = _from("appendix F, caption of the BRAC table", 2_000_000)


@dataclass(frozen=True)
class COGSettings:
    """COG on the two drawer tasks: CQL on images, all but the DR3 term as in COG's own publication."""

    cql_weight: float = _from(E1, 1.0)
    data_shares: tuple[float, ...] = _from("section 5, figure of COG", (0.05, 0.25))
    image_size: tuple[int, int, int] = _from(COG_RELEASE, (48, 48, 3))
    channels: tuple[int, int, int] = _from(COG_RELEASE, (16, 16, 16))
    filter_size: int = _from(COG_RELEASE, 3)
    critic_layers: tuple[int, ...] = _from(COG_RELEASE, (1024, 512, 256))
    policy_layers: tuple[int, ...] = _from(COG_RELEASE, (1024, 512, 256, 256, 256, 256))
    critic_learning_rate: float = _from(COG_RELEASE, 3e-4)
    policy_learning_rate: float = _from(COG_RELEASE, 1e-4)
    sampled_actions: int = _from(COG_RELEASE, 1)
    behaviour_cloning_steps: int = _from(COG_RELEASE, 10_000)
    discount: float = _from(COG_RELEASE, 0.99)
    batch_size: int = _from(COG_RELEASE, 256)
    target_rate: float = _from(COG_RELEASE, 0.005)
    random_crop_padding: int = _from(COG_RELEASE, 4)
    dr3_weight: float = _from("not stated in the paper; collaborators' code", 0.001)
    steps: int = _from(CHOICE, 500_000)


Preset = AtariSettings | DR3Coefficients | CQLWeights | D4RL | BRACSettings | COGSettings

PRESETS: dict[str, Preset] = {
    "hyperparameters-atari": AtariSettings(),
    "hyperparameters-dr3": DR3Coefficients(),
    "hyperparameters-cql": CQLWeights(),
    "hyperparameters-d4rl": D4RL(),
    "hyperparameters-brac": BRACSettings(),
    "hyperparameters-cog": COGSettings(),
}


@dataclass(frozen=True)
class Setting:
    """One hyperparameter with its source."""

    name: str
    value: object
    source: str


def settings(name: str) -> tuple[Setting, ...]:
    """The hyperparameters of one preset.

    Args:
        name: The name of the preset.
    """
    if name not in PRESETS:
        raise UserError(f"there is no preset named {name!r}; `dr3 paper show` lists them.")
    preset = PRESETS[name]
    return tuple(Setting(f.name, getattr(preset, f.name), f.metadata["source"]) for f in fields(preset))
