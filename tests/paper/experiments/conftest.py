from __future__ import annotations

import jax
import pytest

from dr3.paper.experiments import EXPERIMENTS, Plan, reproduce
from dr3.sweeps import InProcess


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> tuple[Plan, dict]:
    """Every experiment at smoke scale, in one folder, so that what they share is trained once."""
    out = tmp_path_factory.mktemp("reproduction")
    plan = Plan(tuple(EXPERIMENTS.values()), "smoke", out / "data", out)
    # A few updates each: compiling well would take longer than running.
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        results = reproduce(plan, engine=InProcess(), show=False)
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    return plan, {result.id: result for result in results}
