"""dr3: train, watch and repair value functions that are learned from logged data.

    import dr3

    data = dr3.load("grid16smoothobs")
    runs = dr3.train(data, dr3.DQN(), regularizer=dr3.DR3(0.03), steps=5000, seeds=3)
    runs.metrics["features/dot_product"]

Names are looked up when they are first used, rooms such as `dr3.data` too: `import dr3` alone loads no JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dr3 import (
        cli,
        collect,
        cures,
        data,
        diagnostics,
        envs,
        export,
        instruments,
        integrations,
        methods,
        networks,
        ope,
        paper,
        regularizers,
        reports,
        runs,
        stats,
        sweeps,
        theory,
        training,
    )
    from dr3.backup import Backup
    from dr3.collect import collect_dqn
    from dr3.data import ContinuousActions, DiscreteActions, Transitions, load
    from dr3.data.batch import Batch
    from dr3.errors import UserError
    from dr3.integrations import diagnose
    from dr3.methods import (
        BC,
        BRAC,
        COG,
        CQL,
        DQN,
        IQL,
        REM,
        SAC,
        SARSA,
        TD,
        TD3,
        TD3BC,
        BootstrappedMethod,
        ContinuousCQL,
        ContinuousIQL,
        ContinuousMethod,
        DiscreteBC,
        DiscreteMethod,
        Method,
        ReBRAC,
        Spec,
        Supervised,
    )
    from dr3.registry import register
    from dr3.regularizers import (
        BEER,
        DR3,
        L2,
        Chain,
        FeatureNorm,
        L2Init,
        LabelNoiseDR3,
        Regularizer,
        SrankPenalty,
        Sum,
    )
    from dr3.runs import Runs, digest
    from dr3.runs import Runs as open  # noqa: F401 (not in __all__: see below)
    from dr3.training import Evaluator, Policy, train

__version__ = "0.1.0"

__all__ = [
    "BC",
    "BEER",
    "BRAC",
    "COG",
    "CQL",
    "DQN",
    "DR3",
    "IQL",
    "L2",
    "REM",
    "SAC",
    "SARSA",
    "TD",
    "TD3",
    "TD3BC",
    "Backup",
    "Batch",
    "BootstrappedMethod",
    "Chain",
    "ContinuousActions",
    "ContinuousCQL",
    "ContinuousIQL",
    "ContinuousMethod",
    "DiscreteActions",
    "DiscreteBC",
    "DiscreteMethod",
    "Evaluator",
    "FeatureNorm",
    "L2Init",
    "LabelNoiseDR3",
    "Method",
    "Policy",
    "ReBRAC",
    "Regularizer",
    "Runs",
    "Spec",
    "SrankPenalty",
    "Sum",
    "Supervised",
    "Transitions",
    "UserError",
    "cli",
    "collect",
    "collect_dqn",
    "cures",
    "data",
    "diagnose",
    "diagnostics",
    "digest",
    "envs",
    "export",
    "instruments",
    "integrations",
    "load",
    "methods",
    "networks",
    "ope",
    "paper",
    "register",
    "regularizers",
    "reports",
    "runs",
    "stats",
    "sweeps",
    "theory",
    "train",
    "training",
]

# The homes of what is neither a room nor a method.
_HOMES = {
    "BEER": "regularizers",
    "Backup": "backup",
    "Batch": "data.batch",
    "Chain": "regularizers",
    "ContinuousActions": "data",
    "DR3": "regularizers",
    "DiscreteActions": "data",
    "Evaluator": "training",
    "FeatureNorm": "regularizers",
    "L2": "regularizers",
    "L2Init": "regularizers",
    "LabelNoiseDR3": "regularizers",
    "Policy": "training",
    "Regularizer": "regularizers",
    "Runs": "runs",
    "SrankPenalty": "regularizers",
    "Sum": "regularizers",
    "Transitions": "data",
    "UserError": "errors",
    "collect_dqn": "collect",
    "diagnose": "integrations",
    "digest": "runs",
    "load": "data",
    "register": "registry",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    if name == "open":  # a run folder: `dr3.open(RUN)`; not in `__all__`, where it would replace Python's own
        return import_module("dr3.runs").Runs
    if name not in __all__:
        raise AttributeError(f"module 'dr3' has no attribute {name!r}")
    if name.islower() and name not in _HOMES:
        return import_module(f"dr3.{name}")
    return getattr(import_module(f"dr3.{_HOMES.get(name, 'methods')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "open"]
