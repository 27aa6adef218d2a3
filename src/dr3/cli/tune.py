"""`dr3 tune METHOD …`"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from dr3.cli.parsing import print_json
from dr3.cli.train import Run, parse_with_method, table_of, train_with
from dr3.progress import plain_console

if TYPE_CHECKING:
    from dr3.diagnostics.tuning import Tuning

EXAMPLES = """\
examples:

dr3 tune cql --data hopper.npz:fraction=0.2 --steps 1e5 --out runs/tune

dr3 tune dqn --data grid16smoothobs --steps 5000 --coefficients 0.001 0.03 1"""

BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Tuned(Run):
    """What to train on, how long, and with which coefficients: the smallest whose Q-values do not diverge is chosen."""

    coefficients: tuple[float, ...] = ()
    """c0 of each member; by default the paper's grid: 1e-4, 1e-3, 0.01, 0.5, 1, 10 (D4RL) for continuous actions,
    0.001, 0.01, 0.03, 0.3 (Atari) for discrete ones."""

    regularizer: Annotated[tuple[str, ...], tyro.conf.Suppress] = ()

    env: str = "none"
    """Where policies are evaluated as well; the choice does not look at it."""

    json: bool = False
    """Print the numbers as JSON, and nothing else."""

    picture: Path | None = None
    """Draw the curves here; by default tuning.png in the run folder."""


def main(arguments: list[str]) -> int:
    chosen = parse_with_method("tune", Tuned, arguments, EXAMPLES)
    if chosen is None:
        return 0

    from dr3.diagnostics.tuning import tuning_of
    from dr3.files import write_json
    from dr3.hyperparameters import within
    from dr3.notation import spell
    from dr3.regularizers import DR3
    from dr3.reports.curves import check_picture, draw

    options: Tuned = chosen.run
    for number in options.coefficients:
        within("coefficients", number, 0)
    check_picture(options.picture or (options.out or Path("runs")) / "tuning.png")
    coefficients = options.coefficients or _grid(table_of(options.data, chosen.method.discount))
    words = tuple(spell(DR3(coefficient)) for coefficient in coefficients)
    runs = train_with(dataclasses.replace(options, regularizer=words), chosen.method)
    tuning = tuning_of(runs, table_of(options.data, chosen.method.discount))
    record = tuning.to_json()
    write_json(runs.path / "tuning.json", record)
    picture = options.picture or runs.path / "tuning.png"
    draw(_panels(tuning), picture, caption="median over seeds, and the seeds")
    if options.json:
        print_json(record)
    else:
        _print(runs, tuning, picture)
    return 0 if tuning.chosen is not None else 1


def _grid(data: Any) -> tuple[float, ...]:
    from dr3.data.transitions import DiscreteActions
    from dr3.paper.presets import DR3Coefficients

    grids = DR3Coefficients()
    return grids.atari_grid if isinstance(data.action_space, DiscreteActions) else grids.d4rl_grid


def _panels(tuning: Tuning) -> list[Any]:
    from dr3.reports.curves import Panel

    steps, columns = tuning.measurements.steps, tuning.measurements.columns

    def lines(name: str) -> dict[str, Any]:
        return {f"c0 = {trial.coefficient:g}": (steps, tuning.curve(name, trial)) for trial in tuning.trials}

    high = ("largest possible return", float(columns["q/largest_return"].max()))
    return [
        Panel("Q on the data", "mean Q", lines("q/mean"), reference=high),
        Panel("Q beyond any possible return", "share", lines("q/outside"), reference=("divergence above", 0.05)),
        Panel("Feature dot products", "phi · phi'", lines("features/dot_product")),
    ]


def _print(runs: Any, tuning: Tuning, picture: Path) -> None:
    from rich.table import Table

    table = Table(title=f"{runs.members[0].method.name} on {runs.config.data.name}: mean Q by c0")
    for column in ("c0", "mean Q over training", "at the end", "verdict"):
        table.add_column(column, justify="right" if column in ("c0", "at the end") else "left", overflow="fold")
    for trial in tuning.trials:
        curve = np.median(tuning.curve("q/mean", trial), axis=0)
        verdict = next(filter(None, trial.verdicts), "stays within what the rewards allow")
        table.add_row(f"{trial.coefficient:g}", sparkline(curve), f"{curve[-1]:.4g}", verdict)
    console = plain_console()
    console.print(table)
    if not any(trial.diverged for trial in tuning.trials):
        console.print(
            f"c0 = {tuning.chosen:g}, the smallest that was tried: Q-values diverge with none of them, so that this "
            "rule has nothing to go by."
        )
    elif tuning.chosen is None:
        console.print("With every coefficient Q-values diverge; try larger ones, or a smaller learning rate.")
    else:
        console.print(f"c0 = {tuning.chosen:g}: the smallest with which Q-values do not diverge.")
    console.print(f"Curves: {picture}\nEverything is in {runs.path}", soft_wrap=True)


def sparkline(curve: Any) -> str:
    """A curve in one line of text, from its own lowest to its highest value; × where it is not finite."""
    values = np.asarray(curve, np.float64)
    finite = values[np.isfinite(values)]
    low, span = (finite.min(), np.ptp(finite) or 1.0) if len(finite) else (0.0, 1.0)
    heights = ((values - low) / span * (len(BLOCKS) - 1)).round()
    return "".join(BLOCKS[int(height)] if np.isfinite(height) else "×" for height in heights)
