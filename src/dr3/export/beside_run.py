"""What a run's own policy says of logged rows, for `dr3 verify --run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dr3.data import load
from dr3.diagnostics.measure import training_data
from dr3.errors import UserError
from dr3.export.policy import as_given, drawn_noise, masks_of, outputs_of_run
from dr3.export.policy_function import observation_inputs, policy_function
from dr3.export.probe import Arrays
from dr3.runs import Runs
from dr3.runs.compiled_policy import CompiledPolicy


def inputs_and_outputs(
    run: str | Path, record: dict[str, Any], data: str | Path | None, probe: Arrays
) -> tuple[Arrays, Arrays]:
    """All rows of the data as the policy's inputs, and what the run makes of them.

    Args:
        run: The run folder.
        record: The contract, which says which member and step it is.
        data: Any data with such observations; None takes those that the run was trained on.
        probe: Inputs of the types that the policy takes.
    """
    runs = Runs(run)
    number, step = runs.place(record["member"], record["step"])
    table = training_data(runs) if data is None else load(data, discount=runs.config.data.discount)
    if tuple(table.observations.shape[1:]) != runs.spec.observation_shape:
        raise UserError(f"{table.name} has observations of another shape than {runs.path} was trained on.")
    kind = next((kind for kind in ("normal", "uniform") if kind in record["acts"]), None)
    seen = probe.get("observation")
    dtype = np.dtype(np.uint8) if seen is None else seen.dtype
    method = runs.members[number].method
    policy = policy_function(method, runs.spec, dtype, sample=kind is not None, masked="mask" in probe)
    rows = np.arange(len(table))
    if table.parts != runs.spec.parts:
        raise UserError(f"{table.name} has observations of other parts than {runs.path} was trained on.")
    inputs: Arrays = observation_inputs(as_given(table.observations[rows]).astype(dtype, copy=False), table.parts)
    if "mask" in probe:
        inputs["mask"] = masks_of(table, rows)
    if kind is not None:
        inputs["noise"] = drawn_noise(kind, (len(rows), *probe["noise"].shape[1:]))
    learned = CompiledPolicy(method, runs.critics(step)[number], runs.spec)
    return inputs, outputs_of_run(policy, learned, inputs)
