"""d3rlpy: its algorithms for the doctor, and four of them trained with DR3.

    import d3rlpy
    from dr3.integrations.d3rlpy import DR3DiscreteCQLConfig

    algo = DR3DiscreteCQLConfig(dr3="dr3:0.03").create(device="cpu:0")
    algo.fit(dataset, n_steps=100_000)

Settings, saving, loading and logging are d3rlpy's own; the penalty is logged as `dr3` beside the loss.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dr3.errors import UserError
from dr3.integrations.critic import OutsideCritic, to_numpy
from dr3.integrations.torch import dr3_penalty, tensor
from dr3.regularizers import DR3
from dr3.regularizers.parse import parse_regularizer

try:
    import torch  # ty: ignore[import-not-found]
    from d3rlpy.algos import (  # ty: ignore[import-not-found]
        CQL,
        DQN,
        SAC,
        CQLConfig,
        DiscreteCQL,
        DiscreteCQLConfig,
        DQNConfig,
        SACConfig,
    )
    from d3rlpy.base import register_learnable  # ty: ignore[import-not-found]
except ImportError:
    raise UserError("This needs d3rlpy and PyTorch: pip install 'dr3[torch]' d3rlpy.") from None


# --- For the doctor ---


def critic_of(algorithm: Any, *, number: int = 0) -> OutsideCritic:
    """One critic of a built d3rlpy algorithm: features from its encoder, values from its last layer, a' as it acts."""
    if algorithm.impl is None:
        raise UserError("This d3rlpy algorithm has no networks yet: fit it, or build it with build_with_dataset.")
    function = algorithm.impl.q_function[number]
    last = _last_layer(function)
    scaler = algorithm.config.observation_scaler

    def features(observations: np.ndarray, actions: np.ndarray) -> torch.Tensor:
        inputs = [tensor(observations, function)]
        if scaler is not None:
            inputs = [scaler.transform(inputs[0])]
        if not np.issubdtype(actions.dtype, np.integer):
            inputs.append(_scaled_actions(algorithm, tensor(actions, function)))
        with torch.no_grad():
            return function.encoder(*inputs)

    return OutsideCritic(features, to_numpy(last.weight), to_numpy(last.bias), policy=algorithm.predict)


def _scaled_actions(algorithm: Any, actions: torch.Tensor) -> torch.Tensor:
    scaler = algorithm.config.action_scaler
    return actions if scaler is None else scaler.transform(actions)


def _last_layer(function: Any) -> Any:
    """The linear layer that reads values from the encoder's output, which is the case for mean Q functions alone."""
    if type(function).__name__ not in ("DiscreteMeanQFunction", "ContinuousMeanQFunction"):
        raise UserError(
            f"The features of a {type(function).__name__} are not its encoder's output; use d3rlpy's mean Q function."
        )
    return function._fc


# --- Training with DR3 ---


@dataclass()
class _WithDR3:
    """What the four configurations add; refused when constructed, before d3rlpy's hours."""

    dr3: str = "dr3:0.03"
    """The regularizer as `dr3 train --regularizer` takes it."""

    def __post_init__(self) -> None:
        self.regularizer()

    def regularizer(self) -> DR3:
        regularizer = parse_regularizer(self.dr3) if isinstance(self.dr3, str) else None
        if not isinstance(regularizer, DR3):
            raise UserError(f"dr3={self.dr3!r} must spell a DR3 penalty, such as dr3:0.03.")
        return regularizer


@dataclass()
class DR3DQNConfig(_WithDR3, DQNConfig):
    """d3rlpy's DQN with DR3; `dr3` is the regularizer as `dr3 train --regularizer` takes it."""

    def create(self, device: Any = False, enable_ddp: bool = False) -> DR3DQN:
        return DR3DQN(self, device, enable_ddp)

    @staticmethod
    def get_type() -> str:
        return "dr3_dqn"


@dataclass()
class DR3DiscreteCQLConfig(_WithDR3, DiscreteCQLConfig):
    """d3rlpy's DiscreteCQL with DR3."""

    def create(self, device: Any = False, enable_ddp: bool = False) -> DR3DiscreteCQL:
        return DR3DiscreteCQL(self, device, enable_ddp)

    @staticmethod
    def get_type() -> str:
        return "dr3_discrete_cql"


@dataclass()
class DR3CQLConfig(_WithDR3, CQLConfig):
    """d3rlpy's CQL with DR3."""

    def create(self, device: Any = False, enable_ddp: bool = False) -> DR3CQL:
        return DR3CQL(self, device, enable_ddp)

    @staticmethod
    def get_type() -> str:
        return "dr3_cql"


@dataclass()
class DR3SACConfig(_WithDR3, SACConfig):
    """d3rlpy's SAC with DR3."""

    def create(self, device: Any = False, enable_ddp: bool = False) -> DR3SAC:
        return DR3SAC(self, device, enable_ddp)

    @staticmethod
    def get_type() -> str:
        return "dr3_sac"


class _Algorithm:
    """An algorithm whose networks are trained on d3rlpy's loss plus the penalty."""

    _config: Any
    _impl: Any

    def inner_create_impl(self, observation_shape: Any, action_size: int) -> None:
        super().inner_create_impl(observation_shape, action_size)  # ty: ignore[missing-attribute]
        for function in self._impl.q_function:
            _last_layer(function)
        # d3rlpy names its implementation class inside the method above, so a subclass cannot be asked for; the made
        # object becomes one instead. Its losses are looked up on every call, so nothing has bound the old ones.
        kind = _Discrete if hasattr(self._impl, "compute_loss") else _Continuous
        self._impl.__class__ = _penalised(kind, type(self._impl))
        self._impl.regularizer = self._config.regularizer()


class DR3DQN(_Algorithm, DQN):
    pass


class DR3DiscreteCQL(_Algorithm, DiscreteCQL):
    pass


class DR3CQL(_Algorithm, CQL):
    pass


class DR3SAC(_Algorithm, SAC):
    pass


for _config in (DR3DQNConfig, DR3DiscreteCQLConfig, DR3CQLConfig, DR3SACConfig):
    register_learnable(_config)  # so that d3rlpy.load_learnable knows what it saved


class _Discrete:
    """Adds the penalty to the loss of an implementation with one output per action."""

    def compute_loss(self: Any, batch: Any, q_tpn: torch.Tensor) -> Any:
        loss = super().compute_loss(batch, q_tpn)
        encoders = [function.encoder for function in self._modules.q_funcs]
        phi = torch.stack([encoder(batch.observations) for encoder in encoders])
        phi_next = torch.stack([encoder(batch.next_observations) for encoder in encoders])
        same = None
        if self.regularizer.per_action:
            same = (self.inner_predict_best_action(batch.next_observations) == batch.actions.view(-1)).float()
        return _added(loss, "loss", self.regularizer, _penalty(self.regularizer, phi, phi_next, batch, same))


class _Continuous:
    """Adds the penalty to the loss of an implementation with a critic of (s, a).

    a' is drawn from the policy anew where d3rlpy's target draws one, and is its mean where the target takes that.
    """

    def compute_critic_loss(self: Any, batch: Any, q_tpn: torch.Tensor) -> Any:
        loss = super().compute_critic_loss(batch, q_tpn)
        with torch.no_grad():
            mean = hasattr(self, "_soft_q_backup") and not self._soft_q_backup
            choose = self.inner_predict_best_action if mean else self.inner_sample_action
            next_actions = choose(batch.next_observations)
        encoders = [function.encoder for function in self._modules.q_funcs]
        phi = torch.stack([encoder(batch.observations, batch.actions) for encoder in encoders])
        phi_next = torch.stack([encoder(batch.next_observations, next_actions) for encoder in encoders])
        return _added(loss, "critic_loss", self.regularizer, _penalty(self.regularizer, phi, phi_next, batch, None))


def _penalty(
    regularizer: DR3, phi: torch.Tensor, phi_next: torch.Tensor, batch: Any, same: torch.Tensor | None
) -> torch.Tensor:
    choices = dataclasses.asdict(regularizer)
    del choices["coefficient"]
    return dr3_penalty(phi, phi_next, bootstraps=1 - batch.terminals, same_output=same, **choices)


def _added(loss: Any, name: str, regularizer: DR3, penalty: torch.Tensor) -> Any:
    """d3rlpy's record of a loss, with the penalty in it and beside it: every field of a record is logged."""
    fields = {field.name: getattr(loss, field.name) for field in dataclasses.fields(loss)}
    fields[name] = fields[name] + regularizer.coefficient * penalty
    return _record(type(loss))(**fields, dr3=penalty)


@cache
def _record(kind: type) -> type:
    return dataclasses.make_dataclass(f"DR3{kind.__name__}", [("dr3", torch.Tensor)], bases=(kind,), frozen=True)


@cache
def _penalised(kind: type, implementation: type) -> type:
    return type(f"DR3{implementation.__name__}", (kind, implementation), {})
