"""The paper's D4RL agents, ready to train: its hyperparameters wired to methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dr3.errors import UserError
from dr3.paper.presets import D4RL, BRACSettings, CQLWeights, DR3Coefficients

if TYPE_CHECKING:
    from dr3.methods import BRAC, ContinuousCQL
    from dr3.regularizers import DR3

Domain = Literal["antmaze", "kitchen", "mujoco"]
DOMAINS = ("antmaze", "kitchen", "mujoco")


def d4rl_cql(domain: Domain, *, dr3: bool) -> tuple[ContinuousCQL, DR3 | None]:
    """CQL on one of the paper's domains, without or with DR3 at its c0.

    AntMaze learns from 4 (r - ½) and with the Lagrange multiplier, as CQL's release does; the paper names neither.

    Args:
        domain: One of the paper's domains.
        dr3: With DR3, or without.
    """
    from dr3.methods import ContinuousCQL
    from dr3.regularizers import DR3

    if domain not in DOMAINS:
        raise UserError(f"The paper's D4RL domains are {', '.join(DOMAINS)}; there is no {domain!r}.")
    shared, weights, coefficients = D4RL(), CQLWeights(), DR3Coefficients()
    antmaze = domain == "antmaze"
    method = ContinuousCQL(
        discount=shared.discount,
        learning_rate=shared.critic_learning_rate,
        policy_learning_rate=shared.policy_learning_rate,
        batch_size=shared.batch_size,
        hidden=shared.critic_layers,
        policy_hidden=shared.policy_layers,
        target_rate=shared.target_rate,
        reward_scale=shared.antmaze_reward_scale if antmaze else 1.0,
        reward_shift=shared.antmaze_reward_shift if antmaze else 0.0,
        alpha=getattr(weights, domain),
        sampled_actions=shared.sampled_actions,
        lagrange=shared.antmaze_lagrange_threshold if antmaze else None,
        warm_start=shared.behaviour_cloning_steps,
    )
    return method, DR3(getattr(coefficients, f"cql_{domain}")) if dr3 else None


def d4rl_brac(*, dr3: bool) -> tuple[BRAC, DR3 | None]:
    """BRAC on the Gym-MuJoCo tasks in the paper's form; it gives no c0 for it, and CQL's on MuJoCo is taken.

    Args:
        dr3: With DR3, or without.
    """
    from dr3.methods import BRAC
    from dr3.regularizers import DR3

    numbers = BRACSettings()
    method = BRAC(
        discount=numbers.discount,
        learning_rate=numbers.critic_learning_rate,
        policy_learning_rate=numbers.policy_learning_rate,
        batch_size=numbers.batch_size,
        hidden=numbers.critic_layers,
        policy_hidden=numbers.policy_layers,
        target_rate=numbers.target_rate,
        behavior_weight=numbers.behaviour_weight,
        entropy_weight=numbers.entropy_weight,
        behavior_steps=numbers.behaviour_steps,
        behavior_learning_rate=numbers.behaviour_learning_rate,
    )
    return method, DR3(DR3Coefficients().cql_mujoco) if dr3 else None
