"""Numbers of a public library (SCOPE-RL 0.2.1) on a fixed input, for tests/ope/test_importance.py.

    pip download --no-deps scope-rl==0.2.1 && unzip -d scope scope_rl-*.whl && pip install --target scope scikit-learn
    PYTHONPATH=scope python benchmarks/ope_reference.py

Only its estimators are loaded: the packages that its other parts want (gym and d3rlpy) are stood in for.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np

EPISODES, STEPS, ACTIONS, DISCOUNT = 5, 4, 3, 0.9


def fixed_input() -> dict[str, np.ndarray]:
    """Whole numbers over simple ones, so that another library can be given exactly the same."""
    n = np.arange(EPISODES * STEPS)
    policy, behavior = (np.stack([(n * k + 1) % 7 + 1.0 for k in ks], axis=1) for ks in ((1, 3, 5), (2, 4, 6)))
    actions = n * n % ACTIONS
    behavior /= behavior.sum(axis=1, keepdims=True)
    return {
        "actions": actions,
        "rewards": (n * 5 % 11) / 10,
        "policy": policy / policy.sum(axis=1, keepdims=True),
        "propensities": behavior[n, actions],
        "q": np.stack([(n * k + 2) % 5 / 4 for k in (1, 2, 3)], axis=1),
    }


def main() -> None:
    for name in ("gym", "d3rlpy", "d3rlpy.preprocessing"):
        sys.modules[name] = MagicMock()
    found = next(place for path in sys.path if (place := Path(path) / "scope_rl").exists())
    for name in ("scope_rl", "scope_rl.ope", "scope_rl.ope.discrete"):  # without what their __init__ imports
        package = types.ModuleType(name)
        package.__path__ = [str(found.parent / name.replace(".", "/"))]
        sys.modules[name] = package
    library = importlib.import_module("scope_rl.ope.discrete.basic_estimators")
    given = fixed_input()
    common = {
        "step_per_trajectory": STEPS,
        "action": given["actions"],
        "reward": given["rewards"],
        "pscore": given["propensities"],
        "evaluation_policy_action_dist": given["policy"],
        "gamma": DISCOUNT,
    }
    for name in ("PerDecisionImportanceSampling", "SelfNormalizedPDIS", "DoublyRobust"):
        value = getattr(library, name)().estimate_policy_value(**common, state_action_value_prediction=given["q"])
        print(f"{name}: {value!r}")


if __name__ == "__main__":
    main()
