"""`dr3 verify POLICY …`"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dr3.cli.parsing import parse, print_json


@dataclass(frozen=True)
class Verify:
    """Replay logged rows through an exported policy, in onnxruntime alone: the same actions, and values to 1e-5?

    Exit code 0: the same, 1: not. Without --run nothing here loads JAX.

    examples:

    dr3 verify policy.onnx

    dr3 verify policy.onnx --data log.npz

    dr3 verify policy.onnx --data log.npz --run runs/first
    """

    policy: Annotated[Path, tyro.conf.Positional]
    """The .onnx file; its contract and its rows are beside it."""

    data: str | None = None
    """The logged data: the recorded rows are read from there anew; with --run, all rows of these or other data."""

    run: Path | None = None
    """Compare with this run's own policy on all rows, rather than with what was recorded. This loads JAX."""

    json: bool = False
    """Print what was found as JSON, and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Verify, arguments, prog="dr3 verify", description=Verify.__doc__ or "")

    from dr3.export import verify

    found = verify(options.policy, data=options.data, run=options.run)
    if options.json:
        print_json(found.to_json())
    elif found.why is not None:
        print(f"dr3: {found.why}", file=sys.stderr)
    else:
        tied = f"; {found.tied:,} rows with another action of the same value" if found.tied else ""
        print(
            f"{found.policy}: on {found.rows:,} logged rows the same actions as {found.compared_with}, and the same "
            f"values, to {found.largest_difference:.1e} of the largest{tied}"
        )
    return 0 if found.same else 1
