"""`dr3 diagnose RUN`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from dr3.cli.parsing import parse, print_json
from dr3.errors import UserError

if TYPE_CHECKING:
    from dr3.runs import Runs


@dataclass(frozen=True)
class Diagnose:
    """What is wrong with the critics of a run, since which step, and what to try. Exit code 0: healthy, 1: not.

    examples:

    dr3 diagnose runs/first

    dr3 diagnose runs/first --held-out validation.npz --json

    dr3 diagnose runs/first --layers
    """

    run: Annotated[Path, tyro.conf.Positional]
    """The run folder."""

    data: str | None = None
    """What the run was trained on, where it is not where it was."""

    held_out: str | None = None
    """Data that the run was not trained on, for the TD error on held-out episodes."""

    json: bool = False
    """Print the verdicts, their evidence and the thresholds as JSON."""

    layers: bool = False
    """Instead, put each layer of each checkpoint back to its initial value and try the policy (appendix A.2)."""

    replace: Literal["initial", "fresh"] = "initial"
    """With --layers: the layer's initial value (re-initialisation), or a fresh draw (re-randomisation)."""

    env: str | None = None
    """With --layers: where policies are evaluated, by default where the run evaluated them."""

    out: Path | None = None
    """With --layers: the picture, by default layers.png in the run folder."""


def main(arguments: list[str]) -> int:
    options = parse(Diagnose, arguments, prog="dr3 diagnose", description=Diagnose.__doc__ or "")
    if options.layers and (options.data is not None or options.held_out is not None):
        raise UserError("--layers evaluates policies in a world and reads no data: leave out --data and --held-out.")
    if not options.layers and (options.replace != "initial" or options.env is not None or options.out is not None):
        raise UserError("--replace, --env and --out are for --layers.")

    from dr3.runs import Runs

    runs = Runs(options.run)
    return _layers(runs, options) if options.layers else _health(runs, options)


def _health(runs: Runs, options: Diagnose) -> int:
    from dr3.data import load
    from dr3.diagnostics import health

    data, held_out = (
        None if source is None else load(source, discount=runs.config.data.discount)
        for source in (options.data, options.held_out)
    )
    found = health(runs, data, held_out=held_out)
    if options.json:
        print_json(found.to_json())
    else:
        print(found)
        print(f"\n{found.measurements.rows} rows, checkpoints 0 to {found.measurements.steps[-1]:,} of {runs.path}.")
    return 0 if found.healthy else 1


def _layers(runs: Runs, options: Diagnose) -> int:
    import numpy as np

    from dr3.diagnostics.health import label_of
    from dr3.diagnostics.reinitialisation import reinitialise
    from dr3.files import check_file
    from dr3.reports.heatmap import draw_layers

    picture = options.out or runs.path / "layers.png"
    check_file(picture)
    test = reinitialise(runs, env=options.env, randomise=options.replace == "fresh")
    labels = [label_of(runs, number) for number in range(len(runs))]
    if options.json:
        record = {
            "test": test.test,
            "layers": test.layers,
            "steps": test.steps.tolist(),
            "members": labels,
            "returns": test.returns.tolist(),
            "unmodified": test.unmodified.tolist(),
        }
        print_json(record)
    draw_layers(test, labels, picture)
    if not options.json:
        for label, shares in zip(labels, test.normalised, strict=True):
            kept = ", ".join(f"{name} {share:.0%}" for name, share in zip(test.layers, shares[:, -1], strict=True))
            left = (
                "nothing was earned" if np.isnan(shares[:, -1]).any() else f"{test.test} leaves of the return: {kept}"
            )
            print(f"{label}: at step {test.steps[-1]:,} {left}")
        print(f"The picture is {picture}")
    return 0
