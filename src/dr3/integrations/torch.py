"""PyTorch: the penalty for a training loop of one's own, and modules for the doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from dr3.errors import UserError
from dr3.integrations.critic import OutsideCritic, last_layer_arrays

try:
    import torch  # ty: ignore[import-not-found]
    from torch import Tensor, nn  # ty: ignore[import-not-found]
except ImportError:
    raise UserError("This needs PyTorch: pip install 'dr3[torch]'.") from None


def dr3_penalty(
    phi: Tensor,
    phi_next: Tensor,
    *,
    bootstraps: Tensor | None = None,
    same_output: Tensor | None = None,
    stop_gradient: Literal["next"] | None = None,
    reduction: Literal["mean", "sum"] = "mean",
    absolute: bool = False,
    mask_terminals: bool = True,
    per_action: bool = False,
) -> Tensor:
    """The DR3 penalty (Eq. 7) of a batch, a scalar: add coefficient * penalty to the critic's loss.

        loss = td_loss + 0.03 * dr3_penalty(phi, phi_next, bootstraps=1 - terminals)

    `phi` (…, n, d) are the *online* critic's penultimate features at (s, a), `phi_next` those at (s', a') for the a'
    that the target uses, neither detached. Critics of an ensemble put their axis first. The keyword choices, their
    defaults and their numbers are those of `dr3.DR3`: `bootstraps` (n,) is 0 at terminals, and is needed unless
    `mask_terminals` is off; `same_output` (n,) says where a' = a, and is needed for `per_action`.
    """
    if stop_gradient not in ("next", None):
        raise UserError(f"stop_gradient must be one of 'next', None, not {stop_gradient!r}.")
    if reduction not in ("mean", "sum"):
        raise UserError(f"reduction must be one of 'mean', 'sum', not {reduction!r}.")
    if phi.shape != phi_next.shape:
        raise UserError(f"phi has the shape {tuple(phi.shape)} and phi_next {tuple(phi_next.shape)}; they must agree.")
    if stop_gradient == "next":
        phi_next = phi_next.detach()
    products = (phi * phi_next).sum(-1)
    if absolute:
        products = products.abs()
    if mask_terminals:
        if bootstraps is None:
            raise UserError("dr3_penalty masks terminals: give bootstraps=1 - terminals, or mask_terminals=False.")
        products = products * _one_for_each_row("bootstraps", bootstraps, phi)
    if per_action:
        if same_output is None:
            raise UserError("dr3_penalty with per_action needs same_output: 1 where a' is a.")
        products = products * _one_for_each_row("same_output", same_output, phi)
    over_batch = products.mean(-1) if reduction == "mean" else products.sum(-1)
    return over_batch.mean()


def _one_for_each_row(name: str, values: Tensor, phi: Tensor) -> Tensor:
    """(n,); a single value would be spread over all rows without a word."""
    if values.numel() != phi.shape[-2]:
        raise UserError(f"{name} has the shape {tuple(values.shape)}, but phi has {phi.shape[-2]} rows.")
    return values.reshape(-1)


def module_critic(
    module: nn.Module, layer: str | None, last_layer: Any, values: Callable | None, policy: Callable | None
) -> OutsideCritic:
    """A module whose features are the output of the submodule named `layer`; `last_layer` may be a name too.

    The module is called with s alone where actions are discrete, with (s, a) where they are continuous.
    """
    named = dict(module.named_modules())
    known = ", ".join(repr(name) for name in named if name)
    if layer not in named or not layer:
        raise UserError(f"Name the layer whose output are the features, layer=…, of {known}; {layer!r} is none.")
    if isinstance(last_layer, str) and last_layer not in named:
        raise UserError(f"The module has no layer {last_layer!r} to be its last; it has {known}.")
    last = named[last_layer] if isinstance(last_layer, str) else last_layer
    weight, bias = (None, None) if last is None else last_layer_arrays(last)

    def features(observations: np.ndarray, actions: np.ndarray) -> Tensor:
        caught: list[Tensor] = []
        hook = named[layer].register_forward_hook(lambda _module, _inputs, output: caught.append(output))
        try:
            inputs = [observations] if np.issubdtype(actions.dtype, np.integer) else [observations, actions]
            _evaluate(module, *(tensor(array, module) for array in inputs))
        finally:
            hook.remove()
        if len(caught) != 1:
            raise UserError(
                f"The layer {layer!r} ran {len(caught)} times in one forward pass, so it has no one output."
            )
        return caught[0].flatten(1)

    return OutsideCritic(features, weight, bias, *(None if f is None else of_numpy(f) for f in (values, policy)))


def of_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as a function of numpy arrays; floating-point arrays become float32."""

    def call(*arrays: np.ndarray) -> Any:
        with torch.no_grad():
            return function(*(tensor(array) for array in arrays))

    return call


def tensor(array: np.ndarray, module: nn.Module | None = None) -> Tensor:
    """On the module's device, float32 if it is a floating-point array, int64 if it holds whole numbers."""
    parameter = None if module is None else next(module.parameters(), None)
    whole = np.issubdtype(array.dtype, np.integer) and array.dtype != np.uint8
    made = torch.as_tensor(np.ascontiguousarray(array), dtype=torch.int64 if whole else torch.float32)
    return made if parameter is None else made.to(parameter.device)


def _evaluate(module: nn.Module, *inputs: Tensor) -> None:
    """One forward pass that leaves no trace: no gradients, no dropout, no running statistics."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            module(*inputs)
    finally:
        module.train(training)
