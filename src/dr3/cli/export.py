"""`dr3 export RUN …`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dr3.cli.parsing import parse, print_json


@dataclass(frozen=True)
class Export:
    """A run's policy as one file: everything between a raw observation and an action is inside.

    Beside it are a contract (.json: names, shapes, types, data, where it came from) and logged rows with what the run's
    own policy made of them (.probe.npz), by which `dr3 verify` proves the file without JAX.

    examples:

    dr3 export runs/first --out policy.onnx

    dr3 export runs/first --member 2 --step 5000 --out policy.onnx

    dr3 export runs/hopper --sample --out policy.onnx

    dr3 export runs/first --to stablehlo --out policy.stablehlo

    dr3 export runs/first --to npz --out weights.npz
    """

    run: Annotated[Path, tyro.conf.Positional]
    """The run folder."""

    out: Path
    """The file; the contract and the rows are called after it."""

    member: int | None = None
    """Whose policy; by default what dr3 select chose, else member 0."""

    step: int | None = None
    """Of which checkpoint; by default what dr3 select chose, else the last."""

    to: Literal["onnx", "stablehlo", "npz"] = "onnx"
    """ONNX, StableHLO (as jax.export writes and reads it), or the weights alone, named by their path in the network."""

    sample: bool = False
    """Draw actions, by an input `noise`; else the policy takes its best action, or its mode."""

    mask: bool | None = None
    """Whether an input `mask` says which actions are allowed; by default where the data have masks."""

    data: str | None = None
    """What the run was trained on, where it is not where it was."""

    doctor: bool = True
    """Look at the critic, as dr3 diagnose does, and write the verdicts into the contract."""

    json: bool = False
    """Print the contract as JSON, and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Export, arguments, prog="dr3 export", description=Export.__doc__ or "")

    from dr3.data import load
    from dr3.export import export_policy
    from dr3.runs import Runs

    runs = Runs(options.run)
    written = export_policy(
        runs,
        options.out,
        member=options.member,
        step=options.step,
        to=options.to,
        sample=options.sample,
        mask=options.mask,
        data=None if options.data is None else load(options.data, discount=runs.config.data.discount),
        doctor=options.doctor,
    )
    if options.json:
        print_json(written.record)
        return 0
    record = written.record
    print(f"{written.policy}: {record['algorithm']}, member {record['member']}, step {record['step']:,}")
    for kind in ("inputs", "outputs"):
        for one in record[kind]:
            print(f"  {kind[:-1]:<6}  {one['name']:<13}  {one['dtype']:<7}  {_shape(one['shape']):<14}  {one['is']}")
    print(f"{written.contract}: the contract")
    for sentence in (record["doctor"] or {}).get("verdicts", []):
        print(f"  the doctor: {sentence}")
    print(f"{written.probe}: {record['probe']['rows']:,} logged rows, and what the run's own policy made of them")
    if options.to == "onnx":
        print(f"dr3 verify {written.policy} replays them without JAX")
    return 0


def _shape(sides: list[int | str]) -> str:
    return f"({', '.join(map(str, sides))}{',' if len(sides) == 1 else ''})"
