"""`dr3 stats`: one's own results with intervals, beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich import box
from rich.table import Table as Grid

from dr3.cli.parsing import print_json
from dr3.progress import plain_console

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from dr3.stats import Measure

    Tasks = Sequence[str]
    Cells = dict[str, list[str]]  # of each algorithm, one for each task


@dataclass(frozen=True)
class Stats:
    """Statistics of results files: scores per task, IQM and others with intervals, probability of improvement.

    For example:
      dr3 stats runs/*/results.jsonl
      dr3 stats cql.jsonl dr3.jsonl --baseline CQL --figures pictures
      dr3 stats results.jsonl --missing ignore --json > summary.json
      dr3 stats results.jsonl --only replay=5%
    """

    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE...")]
    """Results files (JSONL, one row per algorithm, task, seed and checkpoint)."""
    only: str = ""
    """Only tasks whose name contains this."""
    baseline: str | None = None
    """Compare all with this one. Default: "X+DR3" with "X" where both are there, else all with the first."""
    paired: bool = False
    """Resample the same seeds on both sides of a comparison."""
    missing: Literal["error", "ignore"] = "error"
    """What to do about missing runs: refuse, or use the runs there are and say which are not."""
    checkpoints: int = 20
    """How many evenly spaced checkpoints the average performance is over."""
    level: float = 0.95
    """Coverage of the intervals."""
    replicates: int = 50_000
    """Bootstrap replicates."""
    seed: int = 0
    """Seed of the bootstrap."""
    json: bool = False
    """Print the numbers as JSON, and nothing else."""
    figures: Path | None = None
    """Write the pictures (SVG) into this folder."""


def main(arguments: list[str]) -> int:
    """Print statistics of results files."""
    options = tyro.cli(Stats, args=arguments, prog="dr3 stats", config=(tyro.conf.FlagCreatePairsOff,))
    import numpy as np

    from dr3.errors import UserError
    from dr3.files import check_folder
    from dr3.paper import normalise
    from dr3.stats import ScoreTable, as_dict, read_results, summarise

    if options.figures is not None:
        check_folder(options.figures)
    there = read_results(*options.files)
    chosen = [result for result in there if options.only in result.task]
    if not chosen:
        named = ", ".join(sorted({result.task for result in there}))
        raise UserError(f"No task's name contains {options.only!r}; there are {named}.")
    table = ScoreTable(chosen, normalise)
    rng = np.random.default_rng(options.seed)
    measures = summarise(
        table,
        rng,
        baseline=options.baseline,
        paired=options.paired,
        checkpoints=options.checkpoints,
        level=options.level,
        replicates=options.replicates,
        missing=options.missing,
    )
    console = plain_console(stderr=options.json)  # with --json only JSON goes to standard output
    raw = [task for task in table.tasks if table.scales[task] == "raw"]
    if not options.json:
        for measure in measures:
            _print(console, measure, raw)
    if raw:
        console.print(
            f"Note: raw returns, no normaliser known: {', '.join(raw)}. They have no optimality gap, and aggregates "
            "over several such tasks mix scales; write a score into the results, or read only the probability of "
            "improvement.",
            highlight=False,
        )
    if options.json:
        everything = as_dict(table, measures)
        for measure in measures:
            everything["measures"][measure.name]["paper"] = {
                name: {task: _printed(name, task, measure.name) for task in measure.matrices.tasks}
                for name in measure.matrices.scores
            }
        print_json(everything)
    if options.figures is not None:
        from dr3.reports.figures import statistics_figures
        from dr3.reports.style import save

        options.figures.mkdir(parents=True, exist_ok=True)
        pictures = statistics_figures(table, measures, rng, level=options.level, missing=options.missing)
        for name, picture in pictures.items():
            save(picture, options.figures / f"{name}.svg")
        if table.skipped_steps:
            skipped = ", ".join(f"{step:,}" for step in table.skipped_steps)
            console.print(f"Left out of the curve, because not all have them: steps {skipped}.", highlight=False)
        console.print(f"Pictures in {options.figures}: {', '.join(pictures)}.", highlight=False)
    return 0


def _grid(title: str, *columns: str) -> Grid:
    """Words that do not fit go on in the next line: cut off, two names could look the same."""
    grid = Grid(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left", title_style="bold")
    for column in columns:
        grid.add_column(column, overflow="fold")
    return grid


def _print(console: Console, measure: Measure, raw: Collection[str]) -> None:
    used = measure.matrices
    what = "average over training" if measure.name == "average" else "at the last checkpoint"
    title = f"Scores, {what}: mean ± standard deviation (runs)"
    own = {
        name: [_spread(matrix[:, column], _number(task in raw)) for column, task in enumerate(used.tasks)]
        for name, matrix in used.scores.items()
    }
    beside = {name: [_printed(name, task, measure.name) for task in used.tasks] for name in used.scores}
    side_by_side = _side_by_side(title, used.tasks, own, beside)
    fits = console.measure(side_by_side, options=console.options.update(max_width=10_000)).maximum <= console.width
    console.print(side_by_side if fits else _one_below_the_other(title, used.tasks, own, beside))

    statistics = list(next(iter(measure.intervals.values())))
    level = f"{100 * next(iter(measure.intervals.values()))[statistics[0]].level:g}%"
    number = _number(not set(raw).isdisjoint(used.tasks))
    grid = _grid(f"Over {len(used.tasks)} tasks, {level} intervals", "algorithm", *statistics)
    for name, values in measure.intervals.items():
        grid.add_row(name, *(value.text(number) for value in values.values()))
    console.print(grid)

    if measure.comparisons:
        grid = _grid("Comparisons", "", "probability of improvement", "difference of IQM", "verdict")
        for item in measure.comparisons:
            grid.add_row(
                f"{item.algorithm} over {item.baseline}",
                item.improvement.probability.text("{:.2f}".format),
                item.iqm_difference.text(number),
                item.improvement.verdict,
            )
        console.print(grid)
    if not all(value.has_limits for values in measure.intervals.values() for value in values.values()):
        console.print("–: no interval and no verdict, because a task has a single run.", highlight=False)
    for task in measure.left_out:
        console.print(f"Left out: {task}, because not every algorithm has it.", highlight=False)
    for hole in used.holes:
        console.print(f"Missing: {hole}.", highlight=False)


def _side_by_side(title: str, tasks: Tasks, own: Cells, beside: Cells) -> Grid:
    """A column for every algorithm, and one for what the paper has for it."""
    grid = _grid(title, "task")
    for name in own:
        grid.add_column(name, justify="right")
        if any(beside[name]):
            grid.add_column("paper", justify="right", style="dim")
    for column, task in enumerate(tasks):
        cells = []
        for name, values in own.items():
            cells.append(values[column])
            if any(beside[name]):
                cells.append(beside[name][column] or "–")
        grid.add_row(task, *cells)
    return grid


def _one_below_the_other(title: str, tasks: Tasks, own: Cells, beside: Cells) -> Grid:
    """A row for every task and algorithm, for many of them on a narrow screen."""
    grid = _grid(title, "task", "algorithm")
    grid.add_column("score", justify="right", no_wrap=True)
    known = any(map(any, beside.values()))
    if known:
        grid.add_column("paper", justify="right", style="dim")
    for column, task in enumerate(tasks):
        for number, (name, values) in enumerate(own.items()):
            cells = [name, values[column], *([beside[name][column] or "–"] if known else [])]
            grid.add_row(task if number == 0 else "", *cells, end_section=number + 1 == len(own))
    return grid


def _spread(scores: NDArray[np.float64], number: Callable[[float], str]) -> str:
    there = scores[scores == scores]  # without the missing ones
    deviation = f" ± {number(there.std(ddof=1))}" if there.size > 1 else ""
    return f"{number(there.mean())}{deviation} ({there.size})"


def _number(raw: bool) -> Callable[[float], str]:
    """How a score is written: percentages with one decimal, raw returns, which have any scale, with three digits."""
    return _three_digits if raw else "{:.1f}".format


def _three_digits(value: float) -> str:
    """Or all before the point: 12346 reads better than 1.23e+04."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".rstrip(".")


def _printed(algorithm: str, task: str, measure: str) -> str:
    """What the paper has for this cell; AntMaze has two ends of training, and both are shown."""
    from dr3.paper import printed

    wanted = ("average",) if measure == "average" else ("final", "2M", "3M")
    found = [item for item in printed(algorithm, task) if item.measure in wanted]
    return ", ".join(item.value.text(1) + (f" ({item.measure})" if len(found) > 1 else "") for item in found)
