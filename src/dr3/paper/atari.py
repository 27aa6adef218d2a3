"""The paper's Atari agents, ready to train: its hyperparameters wired to methods."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from dr3.errors import UserError
from dr3.paper.presets import ATARI_DATA, AtariSettings, DR3Coefficients

if TYPE_CHECKING:
    from dr3.methods import DQN
    from dr3.regularizers import DR3

Name = Literal["dqn", "rem", "cql"]
Data = Literal["1%", "5%", "first-10%"]

_SETS = {"1%": "1%", "5%": "5%", "first-10%": "10%"}  # what the paper prints as 10 % are the first files, whole


def atari(method: Name, data: Data, *, dr3: bool) -> tuple[DQN, DR3 | None]:
    """One of the paper's agents on one of its data sets, without or with DR3 at its c0.

    All are trained by the released agent's Adam and on the Huber error. The paper gives no c0 for DQN; CQL's is taken.

    Args:
        method: The name of the method.
        data: The name of the data set.
        dr3: With DR3, or without.
    """
    from dr3.methods import CQL, DQN, REM
    from dr3.regularizers import DR3

    if data not in _SETS:
        raise UserError(f"The paper's Atari data sets are {', '.join(_SETS)}; there is no {data!r}.")
    shared, coefficients = AtariSettings(), DR3Coefficients()
    agents = {
        "dqn": (DQN(), coefficients.cql_atari),
        "rem": (REM(heads=shared.rem_heads), coefficients.rem_atari),
        "cql": (CQL(alpha=ATARI_DATA[_SETS[data]].cql_weight), coefficients.cql_atari),
    }
    if method not in agents:
        raise UserError(f"The paper's Atari methods are {', '.join(agents)}; there is no {method!r}.")
    agent, c0 = agents[method]
    tuned = dataclasses.replace(
        agent,
        discount=shared.discount,
        learning_rate=shared.learning_rate,
        adam_epsilon=shared.adam_epsilon,
        batch_size=shared.batch_size,
        target_period=shared.target_update_period,
        network="nature",
        hidden=(shared.hidden_units,),
        error="huber",
    )
    return tuned, DR3(c0) if dr3 else None
