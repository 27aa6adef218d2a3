"""The paper's COG agent, ready to train: its hyperparameters wired to the method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dr3.paper.presets import COGSettings

if TYPE_CHECKING:
    from dr3.methods import COG
    from dr3.regularizers import DR3


def cog(*, dr3: bool) -> tuple[COG, DR3 | None]:
    """COG on the drawer tasks, without or with DR3. The paper gives no c0; that of collaborators' code is taken.

    Args:
        dr3: With DR3, or without.
    """
    from dr3.methods import COG
    from dr3.regularizers import DR3

    numbers = COGSettings()
    method = COG(
        discount=numbers.discount,
        learning_rate=numbers.critic_learning_rate,
        policy_learning_rate=numbers.policy_learning_rate,
        batch_size=numbers.batch_size,
        hidden=numbers.critic_layers,
        policy_hidden=numbers.policy_layers,
        channels=numbers.channels,
        target_rate=numbers.target_rate,
        alpha=numbers.cql_weight,
        sampled_actions=numbers.sampled_actions,
        warm_start=numbers.behaviour_cloning_steps,
        crop=numbers.random_crop_padding,
        tiny_start=True,
    )
    return method, DR3(numbers.dr3_weight) if dr3 else None
