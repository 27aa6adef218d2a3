"""`dr3 stats`: one's own results with intervals, beside the paper's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich import box
from rich.console import Console
from rich.table import Table as Grid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dr3.stats import Measure, ScoreTable

    Tasks = Sequence[str]
    Scores = Mapping[str, NDArray[np.float64]]  # (runs, tasks) of each algorithm


@dataclass(frozen=True)
class Stats:
    """Statistics of results files: scores per task, IQM and others with intervals, probability of improvement.

    For example:
      dr3 stats runs/*/results.jsonl
      dr3 stats cql.jsonl dr3.jsonl --baseline CQL --figures pictures
      dr3 stats results.jsonl --missing ignore --json summary.json
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
    json: Path | None = None
    """Write everything that is printed to this file too."""
    figures: Path | None = None
    """Write the pictures (SVG) into this folder."""


def main(arguments: list[str]) -> int:
    """Print statistics of results files."""
    options = tyro.cli(Stats, args=arguments, prog="dr3 stats", config=(tyro.conf.FlagCreatePairsOff,))
    import numpy as np

    from dr3.errors import UserError
    from dr3.paper import normalise
    from dr3.stats import ScoreTable, as_dict, read_results, summarise

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
    console = Console()
    for measure in measures:
        _print(console, table, measure)
    raw = [task for task in table.tasks if table.scales[task] == "raw"]
    if raw:
        console.print(
            f"Note: raw returns, no normaliser known: {', '.join(raw)}. Aggregates over several such tasks mix scales; "
            "write a score into the results, or read only the probability of improvement.",
            highlight=False,
        )
    if options.json is not None:
        everything = as_dict(table, measures)
        for measure in measures:
            everything["measures"][measure.name]["paper"] = {
                name: {task: _printed(name, task, measure.name) for task in measure.matrices.tasks}
                for name in measure.matrices.scores
            }
        options.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
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


def _print(console: Console, table: ScoreTable, measure: Measure) -> None:
    used = measure.matrices
    what = "average over training" if measure.name == "average" else "at the last checkpoint"
    title = f"Scores, {what}: mean ± standard deviation (runs)"
    beside = {name: [_printed(name, task, measure.name) for task in used.tasks] for name in used.scores}
    side_by_side = _side_by_side(title, used.tasks, used.scores, beside)
    fits = console.measure(side_by_side, options=console.options.update(max_width=10_000)).maximum <= console.width
    console.print(side_by_side if fits else _one_below_the_other(title, used.tasks, used.scores, beside))

    statistics = list(next(iter(measure.intervals.values())))
    level = f"{100 * next(iter(measure.intervals.values()))[statistics[0]].level:g}%"
    grid = _grid(f"Over {len(used.tasks)} tasks, {level} intervals", "algorithm", *statistics)
    for name, values in measure.intervals.items():
        grid.add_row(name, *map(str, values.values()))
    console.print(grid)

    if measure.comparisons:
        grid = _grid("Comparisons", "", "probability of improvement", "difference of IQM", "verdict")
        for item in measure.comparisons:
            chance = item.improvement.probability
            words = [word for word in ("significant", "meaningful") if getattr(item.improvement, word)]
            grid.add_row(
                f"{item.algorithm} over {item.baseline}",
                f"{chance.estimate:.2f} ({chance.lower:.2f}, {chance.upper:.2f})",
                str(item.iqm_difference),
                " and ".join(words) or "neither",
            )
        console.print(grid)
    for task in measure.left_out:
        console.print(f"Left out: {task}, because not every algorithm has it.", highlight=False)
    for hole in used.holes:
        console.print(f"Missing: {hole}.", highlight=False)


def _side_by_side(title: str, tasks: Tasks, scores: Scores, beside: dict[str, list[str]]) -> Grid:
    """A column for every algorithm, and one for what the paper has for it."""
    grid = _grid(title, "task")
    for name in scores:
        grid.add_column(name, justify="right")
        if any(beside[name]):
            grid.add_column("paper", justify="right", style="dim")
    for column, task in enumerate(tasks):
        cells = []
        for name, matrix in scores.items():
            cells.append(_spread(matrix[:, column]))
            if any(beside[name]):
                cells.append(beside[name][column] or "–")
        grid.add_row(task, *cells)
    return grid


def _one_below_the_other(title: str, tasks: Tasks, scores: Scores, beside: dict[str, list[str]]) -> Grid:
    """A row for every task and algorithm, for many of them on a narrow screen."""
    grid = _grid(title, "task", "algorithm")
    grid.add_column("score", justify="right", no_wrap=True)
    known = any(map(any, beside.values()))
    if known:
        grid.add_column("paper", justify="right", style="dim")
    for column, task in enumerate(tasks):
        for number, (name, matrix) in enumerate(scores.items()):
            cells = [name, _spread(matrix[:, column]), *([beside[name][column] or "–"] if known else [])]
            grid.add_row(task if number == 0 else "", *cells, end_section=number + 1 == len(scores))
    return grid


def _spread(scores: NDArray[np.float64]) -> str:
    there = scores[scores == scores]  # without the missing ones
    deviation = f" ± {there.std(ddof=1):.1f}" if there.size > 1 else ""
    return f"{there.mean():.1f}{deviation} ({there.size})"


def _printed(algorithm: str, task: str, measure: str) -> str:
    """What the paper has for this cell; AntMaze has two ends of training, and both are shown."""
    from dr3.paper import printed

    wanted = ("average",) if measure == "average" else ("final", "2M", "3M")
    found = [item for item in printed(algorithm, task) if item.measure in wanted]
    return ", ".join(item.value.text(1) + (f" ({item.measure})" if len(found) > 1 else "") for item in found)
