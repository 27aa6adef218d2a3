"""`dr3 export`: a run's policy as a file, its contract, and logged rows to prove it by."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import numpy as np

from dr3.data import Transitions
from dr3.data.transitions import DiscreteActions
from dr3.diagnostics.measure import training_data
from dr3.errors import UserError
from dr3.export.contract import contract
from dr3.export.policy_function import PolicyFunction, plain_convolutions, policy_function
from dr3.export.probe import Arrays, probe_rows, write_probe
from dr3.files import check_file, read_json, sha256_of, write_json, written_whole
from dr3.runs import Runs
from dr3.runs.checkpoints import leaves_by_name
from dr3.runs.compiled_policy import CompiledPolicy

Format = Literal["onnx", "stablehlo", "npz"]
NEEDED = {"onnx": ("onnx",), "stablehlo": ("flatbuffers",), "npz": ()}
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@dataclass(frozen=True)
class Exported:
    """What was written."""

    policy: Path
    contract: Path
    probe: Path
    record: dict[str, Any]  # what the contract says


def export_policy(
    runs: Runs,
    out: str | Path,
    *,
    member: int | None = None,
    step: int | None = None,
    to: Format = "onnx",
    sample: bool = False,
    mask: bool | None = None,
    data: Transitions | None = None,
) -> Exported:
    """Write a policy, its contract (.json) and its probe (.probe.npz) beside it.

    Args:
        runs: The run.
        out: The file.
        member: Whose policy; None takes what was selected, else member 0.
        step: Of which checkpoint; None takes what was selected, else the last.
        to: onnx, stablehlo, or npz for the weights alone.
        sample: Draw actions by an input `noise`, rather than taking the best.
        mask: Whether an input says which actions are allowed; None has one where the data have masks.
        data: What the run was trained on; None loads it from where it was.

    Returns:
        The files, and the contract.

    Raises:
        UserError: There is no such policy, or it cannot be written so: the sentence says why.
    """
    if not isinstance(runs, Runs) or not isinstance(out, str | Path):
        raise UserError(f"A run (dr3.open) is exported to a path, not a {type(runs).__name__} to {out!r}.")
    out = Path(out)
    if to not in get_args(Format):
        raise UserError(f"A policy is exported to {', '.join(get_args(Format))}, not to {to!r}.")
    if missing := [name for name in NEEDED[to] if find_spec(name) is None]:
        raise UserError(f"Exporting to {to} needs {missing[0]}: pip install 'dr3[export]'.")
    files = _files_for(out, to)
    member, step = runs.place(member, step)
    method, critic = runs.members[member].method, runs.critics(step)[member]
    for name, leaf in leaves_by_name(critic).items():
        if not np.isfinite(np.asarray(leaf)).all():
            raise UserError(
                f"Member {member} of {runs.path} had diverged at step {step}: its {name} is not finite; choose another."
            )
    table = training_data(runs, data)
    seen = table.observations[:1]
    masked = table.masks is not None if mask is None else mask
    policy = policy_function(method, runs.spec, as_given(seen).dtype, sample=sample, masked=masked)
    inputs, rows = _probe_inputs(policy, runs, table)
    expected = outputs_of_run(policy, CompiledPolicy(method, critic, runs.spec), inputs)
    out.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(out) as unfinished:
        unfinished.write_bytes(_written(to, policy, critic, runs, member, step))
    write_probe(files.probe, rows, inputs, expected)
    record = {
        "file": out.name,
        "to": to,
        "sha256": sha256_of(out),
        "probe": {"file": files.probe.name, "rows": len(rows), "sha256": sha256_of(files.probe)},
        **contract(runs, member, step, policy, {name: array.dtype for name, array in expected.items()}),
    }
    write_json(files.contract, record)
    return Exported(files.policy, files.contract, files.probe, record)


def _files_for(out: Path, to: Format) -> Exported:
    """What is to be written, or why it cannot be; nothing is known of the contract yet."""
    files = Exported(out, out.with_suffix(".json"), out.with_suffix(".probe.npz"), {})
    if out.name.endswith((".json", ".probe.npz")):
        raise UserError(f"{out} would be overwritten by what lies beside a policy; call it policy.{to}.")
    for file in (files.policy, files.contract, files.probe):
        check_file(file)
    if files.contract.exists():
        other = read_json(files.contract).get("file")
        if other != out.name and (other is None or out.with_name(str(other)).exists()):
            whose = "no contract" if other is None else f"the contract of {other}"
            raise UserError(f"{files.contract} is {whose}, and would be overwritten; give {out} another name.")
    return files


def as_given(observations: Any) -> np.ndarray:
    """Observations of the type that networks get: JAX keeps no double precision unless asked to."""
    array = np.asarray(observations)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def outputs_of_run(policy: PolicyFunction, learned: CompiledPolicy, inputs: Arrays) -> Arrays:
    """The exported function's outputs for these rows, computed as the run itself acts, quick convolutions and all."""
    columns = [inputs[name] for name in policy.rows]
    return learned(lambda method, critic, spec, *rows: policy.function(critic, *rows), *columns)


def _probe_inputs(policy: PolicyFunction, runs: Runs, table: Transitions) -> tuple[Arrays, np.ndarray]:
    """Rows of the table for all inputs; noise is drawn from a fixed seed."""
    rows = probe_rows(len(table), as_given(table.observations[:1]).nbytes)
    inputs: Arrays = {"observation": as_given(table.observations[rows])}
    if "mask" in policy.rows:
        inputs["mask"] = masks_of(table, rows)
    if policy.noise is not None:
        inputs["noise"] = drawn_noise(policy.noise, (len(rows), *policy.rows["noise"][0]))
    return inputs, rows


def masks_of(table: Transitions, rows: np.ndarray) -> np.ndarray:
    """The logged masks of some rows; where there are none, made-up ones that allow what was done."""
    if table.masks is not None:
        return np.asarray(table.masks[rows], np.bool_)
    assert isinstance(table.action_space, DiscreteActions)
    allowed = np.random.default_rng(0).random((len(rows), table.action_space.count)) < 0.5
    allowed[np.arange(len(rows)), table.actions[rows]] = True
    return allowed


def drawn_noise(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """From a seed that is always the same."""
    random = np.random.default_rng(0)
    return (random.standard_normal(shape) if kind == "normal" else random.random(shape)).astype(np.float32)


def _written(to: Format, policy: PolicyFunction, critic: Any, runs: Runs, member: int, step: int) -> bytes:
    if to == "npz":
        return _weights(critic)
    network = plain_convolutions(critic)
    if to == "onnx":
        from dr3.export.to_onnx import to_onnx

        about = {"dr3.run": runs.path.name, "dr3.member": str(member), "dr3.step": str(step)}
        return to_onnx(policy.function, network, policy.rows, **about).SerializeToString()
    from jax import export

    from dr3.export.to_onnx import for_any_rows, one_by_one

    acting = jax.jit(lambda *rows: one_by_one(policy.function)(network, *rows))
    return bytes(export.export(acting, platforms=PLATFORMS)(*for_any_rows(policy.rows)).serialize())


def _weights(critic: Any) -> bytes:
    """An npz of all arrays, by their names in a checkpoint."""
    import io

    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **{name: np.asarray(leaf) for name, leaf in leaves_by_name(critic).items()})
    return stream.getvalue()
