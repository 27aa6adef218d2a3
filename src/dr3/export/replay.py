"""`dr3 verify`: logged rows through an exported policy in onnxruntime alone, beside what the run's own policy said.

Nothing here loads JAX, unless a run is to be compared with.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError
from dr3.export.probe import Arrays, read_probe
from dr3.files import read_json, sha256_of

TOLERANCE = 1e-5  # of the largest value: what rounding in another order may make of a sum in single precision
BLOCK = 1_024
DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float16", "float32", "float64")


@dataclass(frozen=True)
class Verified:
    """What a replay found."""

    policy: str
    compared_with: str
    rows: int
    same: bool
    largest_difference: float  # of values, or continuous actions, as a share of the largest; infinite if not comparable
    tied: int  # rows with another action whose value is as large, but for rounding
    why: str | None  # what is wrong, in one sentence

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def verify(policy: str | Path, *, data: str | Path | None = None, run: str | Path | None = None) -> Verified:
    """Whether an exported policy does what the run's own does: the same actions, and values to 1e-5.

    Args:
        policy: The .onnx file; its contract and its probe are beside it.
        data: Logged rows to replay, as `dr3.load` takes them: the probe's rows are looked up there, or, with `run`, all
            rows are replayed. None replays the probe as it was stored.
        run: A run folder: compare with its own policy, which loads JAX, and not with what the contract recorded.

    Returns:
        What was found; `same` says it in a word.

    Raises:
        UserError: The files are not there or not readable, or the data are not those of the contract.
    """
    path = Path(policy)
    if not path.is_file():
        raise UserError(f"There is no file {path}; dr3 export RUN --out {path} writes one.")
    record = read_contract(path)
    if record.get("to") != "onnx":
        raise UserError(f"{path} was exported to {record.get('to')}; what is verified is ONNX.")
    if sha256_of(path) != record["sha256"]:
        return _no(path, "its contract", f"{path} is not the file that its contract was written with.")
    beside = path.with_name(record["probe"]["file"])
    rows, inputs, expected = read_probe(beside)
    if sha256_of(beside) != record["probe"]["sha256"]:
        return _no(path, "its contract", f"{beside} is not the file that the contract of {path} was written with.")
    named = [one["name"] for one in record["inputs"]]
    compared = "what the run's own policy had said"
    if run is not None:
        from dr3.export.beside_run import inputs_and_outputs  # the one way here that loads JAX

        compared = f"the policy of {run}"
        inputs, expected = inputs_and_outputs(run, record, data, inputs)
    elif data is not None:
        inputs = _looked_up(data, record["data"]["discount"], rows, inputs)
    outputs = replayed(path, {name: inputs[name] for name in named})
    return _compared(path, compared, record, inputs, outputs, expected)


def read_contract(policy: Path) -> dict[str, Any]:
    """The contract beside a policy file; it may come from a stranger, so all that is read of it has its type.

    Args:
        policy: The policy file.
    """
    file = policy.with_suffix(".json")
    needed: dict[str, Any] = {"sha256": str, "inputs": list, "outputs": list, "actions": dict, "data": dict}
    needed |= {"probe": dict, "member": int, "step": int, "acts": str, "discount": float | int}
    record = read_json(file, **needed)
    puts = [*record["inputs"], *record["outputs"]]
    whole = (
        all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in puts)
        and all(one.get("dtype") in DTYPES and _is_shape(one.get("shape")) for one in puts)
        and any(one["name"].partition(".")[0] == "observation" for one in record["inputs"])
        and isinstance(record["actions"].get("kind"), str)
        and isinstance(record["data"].get("discount"), float | int)
        and isinstance(record["probe"].get("sha256"), str)
        and isinstance(name := record["probe"].get("file"), str)
        and name == Path(name).name  # beside it, and nowhere else
    )
    if not whole:
        raise UserError(f"{file} is damaged, or no contract of dr3 export; export the policy again.")
    return record


def _is_shape(sides: Any) -> bool:
    """["n", 84, 84]: n rows of so many numbers."""
    return isinstance(sides, list) and sides[:1] == ["n"] and all(type(one) is int and one >= 1 for one in sides[1:])


def _looked_up(source: str | Path, discount: float, rows: NDArray[np.int64], inputs: Arrays) -> Arrays:
    """The probe with observations that are read from the data anew."""
    from dr3.data import load

    table = load(source, discount=discount)  # a gridworld's behaviour policy depends on it
    other = f"{source} are not the data of the contract: give those, or --run RUN to compare on any data"
    if len(table) <= rows.max():
        raise UserError(f"{other} ({len(table):,} rows are fewer than there were).")
    seen = np.asarray(table.observations[rows])
    named = {"observation": seen}
    if table.parts is not None:
        named = {f"observation.{name}": part for name, part in table.parts.unpack(seen).items()}
    if named.keys() != {name for name in inputs if name.partition(".")[0] == "observation"}:
        raise UserError(f"{other} (observations with other parts).")
    for name, found in named.items():
        if found.shape != inputs[name].shape or found.dtype.kind != inputs[name].dtype.kind:
            raise UserError(f"{other} (observations of another shape or type).")
        named[name] = found.astype(inputs[name].dtype, copy=False)
        differs = (named[name] != inputs[name]).reshape(len(rows), -1).any(axis=1)
        if differs.any():
            raise UserError(f"{other} (row {rows[np.argmax(differs)]:,} differs).")
    return {**inputs, **named}


def replayed(path: Path, inputs: Arrays) -> Arrays:
    """All rows through onnxruntime, a block at a time."""
    if find_spec("onnxruntime") is None:
        raise UserError("Verifying a policy needs onnxruntime: pip install 'dr3[export]'.")
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class of its own for each mishap
        raise UserError(f"onnxruntime cannot read {path} ({error}).") from None
    names = [output.name for output in session.get_outputs()]
    count = len(next(iter(inputs.values())))
    try:
        blocks = [
            session.run(names, {name: column[start : start + BLOCK] for name, column in inputs.items()})
            for start in range(0, max(count, 1), BLOCK)
        ]
        return {name: np.concatenate([block[place] for block in blocks]) for place, name in enumerate(names)}
    except Exception as error:  # as above; also a policy that gives no array of rows
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path} does not take, or give, what its contract says ({reason}).") from None


def _compared(
    path: Path, compared_with: str, record: dict[str, Any], inputs: Arrays, outputs: Arrays, expected: Arrays
) -> Verified:
    """Discrete actions are the same, or one is worth as much as the other but for rounding; numbers are to 1e-5."""
    rows, largest, tied = len(next(iter(inputs.values()))), 0.0, 0
    sentences = []
    for name, wanted in expected.items():
        got = outputs.get(name)
        if got is None or got.shape != wanted.shape or got.dtype != wanted.dtype:
            return _no(path, compared_with, f"{path} gives no {name} of the shape and type that its contract promises.")
        if got.dtype.kind in "iu":
            differs = got != wanted
            best = _ties(record, expected, got, wanted)
            tied += int((differs & best).sum())
            wrong = differs & ~best
        else:
            scale = max(float(np.abs(wanted).max(initial=0.0)), np.finfo(np.float32).tiny)
            apart = np.abs(got.astype(np.float64) - wanted) / scale
            apart = np.where(np.isfinite(apart), apart, np.inf).reshape(rows, -1).max(axis=1, initial=0.0)
            largest = max(largest, float(apart.max(initial=0.0)))
            wrong = apart > TOLERANCE
        if wrong.any():
            sentences.append(f"{name} of {int(wrong.sum()):,} of {rows:,} rows (the first: {int(np.argmax(wrong))})")
    if sentences:
        why = f"{path} differs from {compared_with}: {', '.join(sentences)}."
        return Verified(str(path), compared_with, rows, False, largest, tied, why)
    return Verified(str(path), compared_with, rows, True, largest, tied, None)


def _ties(record: dict[str, Any], expected: Arrays, got: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows in which two actions are worth the same, but for rounding: of a greedy policy either may be taken."""
    values = expected["values"]
    if record["actions"]["kind"] != "DiscreteActions" or "probabilities" in expected:
        return np.zeros(got.shape, np.bool_)
    inside = (got >= 0) & (got < values.shape[1])
    row = np.arange(len(values))
    apart = np.abs(values[row, np.where(inside, got, 0)] - values[row, wanted])
    return inside & (apart <= TOLERANCE * np.abs(values).max(initial=0.0))


def _no(path: Path, compared_with: str, why: str) -> Verified:
    return Verified(str(path), compared_with, 0, False, float("inf"), 0, why)
