"""Layer re-initialisation: which layers a policy depends on (appendix A.2, after Zhang, Bengio and Singer, 2019).

*Re-initialisation* sets one layer back to its own value at the start of the run and keeps the others at the checkpoint.
*Re-randomisation* gives it a fresh draw instead. They are different tests: a layer may be robust to the first, because
what it started from still fits the others, and not to the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from dr3.envs import known_world
from dr3.errors import UserError
from dr3.runs import Runs
from dr3.runs.outcomes import RETURN
from dr3.training.evaluation import Evaluator, Policy, evaluator_for
from dr3.training.loop import begin

Test = Literal["re-initialisation", "re-randomisation"]


@dataclass(frozen=True)
class LayerTest:
    """The return of each checkpoint with each layer replaced, beside its return as it was."""

    test: Test
    layers: tuple[str, ...]
    steps: NDArray[np.int64]  # (T,)
    returns: NDArray[np.float64]  # (members, layers, T)
    unmodified: NDArray[np.float64]  # (members, T)

    @property
    def normalised(self) -> NDArray[np.float64]:
        """Return over the unmodified checkpoint's return, as in the paper: (members, layers, T).

        A ratio means nothing where returns can be negative; then both are first counted from the lowest return seen.
        NaN where the unmodified checkpoint earned less than 1 % of the best: there is nothing that a layer could keep.
        """
        floor = min(0.0, float(self.returns.min()), float(self.unmodified.min()))
        whole = (self.unmodified - floor)[:, None, :]
        some = np.broadcast_to(whole > 0.01 * whole.max(), self.returns.shape)
        return np.divide(self.returns - floor, whole, out=np.full_like(self.returns, np.nan), where=some)


def reinitialise(
    runs: Runs, *, env: Any = None, episodes: int = 10, randomise: bool = False, steps: Sequence[int] | None = None
) -> LayerTest:
    """Put each layer of each checkpoint in turn back to its initial value (`randomise`: a fresh draw), and try it.

    `env` is where policies are evaluated, by default where the run evaluated them.
    """
    evaluator = _evaluator(runs, env, episodes)
    steps = list(steps) if steps is not None else [step for step in runs.checkpoints if step > 0]
    if not steps:
        raise UserError(f"{runs.path} has no checkpoint after the initial one whose layers could be replaced.")
    replacements = [_fresh(runs, number) for number in range(len(runs))] if randomise else runs.critics(0)
    layers = tuple(_layers(replacements[0]))
    returns = np.empty((len(runs), len(layers), len(steps)))
    unmodified = np.empty((len(runs), len(steps)))
    for t, step in enumerate(steps):
        for number, critic in enumerate(runs.critics(step)):
            unmodified[number, t] = _return(runs, number, critic, evaluator, step)
            for place, layer in enumerate(layers):
                changed = replace_layer(critic, layer, replacements[number])
                returns[number, place, t] = _return(runs, number, changed, evaluator, step)
    test: Test = "re-randomisation" if randomise else "re-initialisation"
    return LayerTest(test, layers, np.array(steps, np.int64), returns, unmodified)


def replace_layer(critic: Any, layer: str, source: Any) -> Any:
    """`critic` with one layer, by its name in `layers()`, taken from `source`."""
    return eqx.tree_at(lambda tree: _layers(tree)[layer], critic, _layers(source)[layer])


def _layers(critic: Any) -> dict[str, Any]:
    if not hasattr(critic, "layers"):
        raise UserError(f"The layers of a {type(critic).__name__} have no names, so none can be replaced.")
    return critic.layers()


def _fresh(runs: Runs, number: int) -> Any:
    """A draw of the weights that no member of the run started from."""
    method = runs.members[number].method
    unused = max(member.seed for member in runs.members) + 1 + number
    return method.model(begin(method, np.uint32(unused % 2**32), runs.spec).learner)


def _return(runs: Runs, number: int, critic: Any, evaluator: Evaluator, step: int) -> float:
    member = runs.members[number]
    policy = Policy(member.method, critic, runs.spec)
    outcome = evaluator(policy, seed=member.seed, step=step, discount=member.method.discount)
    return float(outcome[RETURN])


def _evaluator(runs: Runs, env: Any, episodes: int) -> Evaluator:
    if env is not None:
        return evaluator_for(env, episodes=episodes)
    stored = runs.config.evaluation or {}
    name = stored.get("world") or stored.get("env")
    if name is None:
        raise UserError(f"{runs.path} does not say where its policies can be evaluated; name a world (--env).")
    if not isinstance(name, str):
        raise UserError(f"{runs.folder.config} is damaged: the world of its evaluation is {name!r}, which is no name.")
    return evaluator_for(known_world(name), episodes=stored.get("episodes", episodes))
