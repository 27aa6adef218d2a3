"""Everything between raw observations and actions, as one function of weights and rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from numpy.typing import NDArray

from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.envs.parts import KINDS, Parts
from dr3.errors import UserError
from dr3.methods import Spec
from dr3.methods.acting import action_values, decide, draw, draws_among, probabilities
from dr3.networks.convolution import Convolution

Rows = dict[str, tuple[tuple[int, ...], Any]]  # by an input's name: the shape of one row, and its type
Noise = Literal["normal", "uniform"]
OBSERVATION = "observation"


@dataclasses.dataclass(frozen=True)
class PolicyFunction:
    """function(critic, *rows) -> {"action": …, "values": …}, for the inputs that `rows` names, in their order."""

    function: Callable[..., dict[str, jax.Array]]
    rows: Rows
    noise: Noise | None  # what an input of that name must be drawn from; None where the policy takes its best action


def policy_function(method: Any, spec: Spec, dtype: Any, *, sample: bool, masked: bool) -> PolicyFunction:
    """What is exported of a method.

    Noise is an input and no operator of the file: so a sampled action can be replayed and compared, in any runtime, and
    whoever acts chooses the generator and its seed.

    Args:
        method: The method.
        spec: What it was made for.
        dtype: Of the observations in the data; bytes are pixels.
        sample: Draw actions, rather than taking the best or the mode.
        masked: Whether there is an input that says which actions are allowed.
    """
    space, noise = spec.action_space, _noise_of(method, spec) if sample else None
    rows: Rows = observation_rows(spec, dtype)
    if masked:
        if not isinstance(space, DiscreteActions):
            raise UserError("A mask is for discrete actions, and those of this policy are continuous: leave it out.")
        rows["mask"] = ((space.count,), jnp.bool_)
    if noise == "normal":
        assert isinstance(space, ContinuousActions)
        rows["noise"] = ((space.size,), jnp.float32)
    elif noise == "uniform":
        rows["noise"] = ((), jnp.float32)

    def function(critic: Any, *columns: jax.Array) -> dict[str, jax.Array]:
        given = dict(zip(rows, columns, strict=True))
        observations, mask = _observations(given, spec), given.get("mask")
        results = {}
        if isinstance(space, DiscreteActions) and draws_among(method):
            results["probabilities"] = probabilities(method, critic, spec, observations, mask)
        if noise == "normal":
            results["action"] = method.sample(critic, observations, given["noise"])
        elif noise == "uniform":
            results["action"] = draw(results["probabilities"], given["noise"])
        else:
            results["action"] = decide(method, critic, spec, observations, mask)
        if isinstance(space, DiscreteActions):
            results["values"] = action_values(method, critic, spec, observations)
        else:
            results["values"] = method.values(critic, observations, results["action"])
        return results

    return PolicyFunction(function, rows, noise)


def observation_rows(spec: Spec, dtype: Any) -> Rows:
    """The inputs that hold an observation: one, or one for each of its parts."""
    if spec.parts is None:
        return {OBSERVATION: (spec.observation_shape, dtype)}
    return {f"{OBSERVATION}.{part.name}": (part.shape, KINDS[part.kind]) for part in spec.parts.parts}


def _observations(given: dict[str, jax.Array], spec: Spec) -> Any:
    """What a network is given: an array, or a mapping of the parts of observations that have some."""
    if spec.parts is None:
        return given[OBSERVATION]
    return {part.name: given[f"{OBSERVATION}.{part.name}"] for part in spec.parts.parts}


def observation_inputs(observations: NDArray[Any], parts: Parts | None) -> dict[str, NDArray[Any]]:
    """Rows of a table as these inputs."""
    if parts is None:
        return {OBSERVATION: observations}
    return {f"{OBSERVATION}.{name}": rows for name, rows in parts.unpack(observations).items()}


def _noise_of(method: Any, spec: Spec) -> Noise:
    if isinstance(spec.action_space, ContinuousActions) and hasattr(method, "sample"):
        return "normal"
    if isinstance(spec.action_space, DiscreteActions) and draws_among(method):
        return "uniform"
    raise UserError(f"The policy of {method.name} draws nothing: it takes its best action; leave out --sample.")


def plain_convolutions(critic: Any) -> Any:
    """The same network with convolutions as such, not as the products that are quicker in a training loop on CPU."""

    def is_one(part: Any) -> bool:
        return isinstance(part, Convolution)

    def plain(part: Any) -> Any:
        return dataclasses.replace(part, implementation="xla") if is_one(part) else part

    return jax.tree.map(plain, critic, is_leaf=is_one)
