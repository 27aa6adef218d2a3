"""`dr3 cure DATA …`"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dr3.cli.parsing import Count, parse, print_json, value_of
from dr3.cli.sweep import EngineChoice
from dr3.errors import UserError
from dr3.progress import plain_console

if TYPE_CHECKING:
    from dr3.cures import CureOutcome, CurePlan

EXAMPLES = """\
examples:

dr3 cure grid16smoothobs

dr3 cure logged.npz --method cql --minutes 60 --seeds 5 --alpha 1

dr3 cure hopper.npz --method cql --env Hopper-v5 --steps 1e5 --remedies none dr3 layer-norm dr3+layer-norm dr3:0.1

dr3 cure grid16smoothobs --dry-run"""

FIRST_ANSWER = 2.0  # minutes, where nobody says


@dataclass(frozen=True)
class Cure:
    """What to try, how long, and where it goes."""

    where: EngineChoice

    remedies: tuple[str, ...] = ()
    """What to try beside none: names of remedies, regularizers (dr3:0.1), or several together (dr3+layer-norm); by
    default a choice of them. docs/cures.md lists all."""

    method: str = "cql"
    """The method that is to be cured; its settings are flags here too."""

    seeds: int = 5
    """Members with seeds 0, 1, … of each remedy."""

    steps: Count | None = None
    """Updates of each member; by default as many as --minutes allows. More of them lengthen what is there."""

    minutes: float | None = None
    """A budget on all cores, from which the steps follow; 2 where neither is given, which is a first answer."""

    env: str = "auto"
    """Where policies are evaluated, as in dr3 train; none for nowhere."""

    episodes: Count = 10
    """Episodes of each try, where it is by episodes."""

    out: Path | None = None
    """A folder for all runs, by default under runs/. What is finished there is not done again."""

    estimate: bool = False
    """Estimate what policies are worth by the log alone, also where that takes networks and time; a log of few states
    has it anyway."""

    dry_run: bool = False
    """Only say what would be done."""

    json: bool = False
    """Print the numbers as JSON, and nothing else."""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        return 0
    data, *rest = arguments
    if data.startswith("-"):
        raise UserError("dr3 cure needs the data first, as in dr3 cure logged.npz --method cql.")

    from dr3.cli.train import class_for, table_of
    from dr3.methods import METHODS

    name = value_of("--method", rest) or Cure.method
    cls: Any = class_for(METHODS.lookup(name), data)
    both = dataclasses.make_dataclass("Cured", [("cure", Cure), ("base", cls)], frozen=True)
    chosen: Any = parse(both, rest, prog=f"dr3 cure {data}", description=f"{_about()}\n\n{EXAMPLES}")
    options: Cure = chosen.cure
    table = table_of(data, chosen.base.discount)
    out = options.out or Path("runs") / _folder_name(data, chosen.base, options.env)
    plan = _plan(options, data, chosen.base, table, out)
    print(_said(plan, options, table, out), file=sys.stderr if options.json else sys.stdout, flush=True)
    return 0 if options.dry_run else _carry_out(plan, options, table, out)


def _folder_name(data: str, base: Any, env: str) -> str:
    """Another one for other settings: `cure-cql-logged.npz`, or `cure-cql-logged.npz-1f0c9a2e`."""
    from dr3.hyperparameters import to_json

    name = f"cure-{base.name}-{re.sub(r'[^A-Za-z0-9.=_-]+', '_', Path(data).name)}"
    if base == type(base)() and env == Cure.env:
        return name
    settings = json.dumps([to_json(base), env], sort_keys=True)
    return f"{name}-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"


def _plan(options: Cure, data: str, base: Any, table: Any, out: Path) -> CurePlan:
    from dr3.cures import CurePlan, PlanRecord, default_treatments, going_on, steps_within, treatment_for
    from dr3.cures.plan import seconds_per_update
    from dr3.hyperparameters import whole_number

    if options.steps is not None and options.minutes is not None:
        raise UserError("--steps and --minutes both say how long: give one of them.")
    whole_number("seeds", options.seeds, 1)
    base.prepare(table)  # refuses what cannot be trained on
    words = dict.fromkeys(("none", *options.remedies))
    treatments = [treatment_for(word, base, table) for word in words]
    if not options.remedies:
        treatments = default_treatments(base, table)
    minutes, before = _minutes(options), PlanRecord.read(out)
    if minutes is None:
        steps = cast(int, options.steps)
    elif before is not None and before.minutes == minutes:
        # Measured anew, the speed of an update would come to another number of steps.
        steps = before.steps
    else:
        steps = steps_within(minutes, treatments, options.seeds, seconds_per_update(treatments[0], table))
    env = None if options.env == "none" else options.env
    plan = CurePlan(data, tuple(treatments), options.seeds, steps, env, options.episodes)
    return going_on(plan, before, out, minutes=minutes)


def _minutes(options: Cure) -> float | None:
    """The budget; None where the number of updates is given."""
    if options.steps is not None:
        return None
    return FIRST_ANSWER if options.minutes is None else options.minutes


def _said(plan: CurePlan, options: Cure, table: Any, out: Path) -> str:
    """What will be done."""
    from dr3.cores import available_cores

    names = ", ".join(one.name for one in plan.treatments)
    world = table.world if plan.env == "auto" else plan.env
    tried = f"policies are evaluated in {world}" if world else "no policy is evaluated, so there will be no ranking"
    budget = "" if (minutes := _minutes(options)) is None else f" A budget of {minutes:g} minutes"
    cores = f" on {available_cores()} cores." if budget else ""
    return (
        f"{plan.base.method.name} on {table.name} ({len(table):,} rows): {len(plan.trained)} trainings of "
        f"{plan.seeds} seeds, {plan.steps:,} updates each; {tried}.{budget}{cores}\nRemedies: {names}.\n"
        f"Everything goes to {out}; the same command goes on where it stopped, and more --steps or --minutes lengthen "
        "it."
    )


def _carry_out(plan: CurePlan, options: Cure, table: Any, out: Path) -> int:
    from dr3.cures import PlanRecord, cure_page, gather_outcome
    from dr3.files import write_json, write_text
    from dr3.sweeps import run_tasks

    PlanRecord.of(plan, _minutes(options)).write(out)
    engine = options.where.build()
    finished = run_tasks(plan.tasks, out, engine=engine, show=not options.json, titles=plan.titles)
    failed = {
        one.name: str(finished.failures[name])
        for one in plan.treatments
        if (name := plan.task(one).name) in finished.failures
    }
    outcome = gather_outcome(plan, out, table, failed, estimate=options.estimate)
    write_json(out / "cure.json", outcome.to_json())
    write_text(out / "cure.html", cure_page(outcome))
    if options.json:
        print_json(outcome.to_json())
    else:
        _print(outcome, out)
    return 1 if failed else 0


def _print(outcome: CureOutcome, out: Path) -> None:
    from rich import box
    from rich.table import Table

    from dr3.cures.page import CAN_ACT, base_of, cells, verdict_words

    console = plain_console()
    base = base_of(outcome.rows)
    printed = [cells(row, base) for row in outcome.rows]
    can_act = {
        row.name: values.pop(CAN_ACT) for row, values in zip(outcome.rows, printed, strict=True) if CAN_ACT in values
    }
    title = f"{outcome.method} on {outcome.data}, {outcome.steps:,} updates"
    names = [row.name for row in outcome.rows]
    # A terminal is often too narrow for one table: further ones take what does not fit.
    for part in _fitting(printed, console.width - len(max(names, key=len))):
        table = Table(
            title=title,
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            show_edge=False,
            pad_edge=False,
            title_justify="left",
        )
        table.add_column("remedy", no_wrap=True)
        for column in part:
            table.add_column(column, overflow="fold", justify="right")
        for name, values in zip(names, printed, strict=True):
            table.add_row(name, *(values.get(column, "") for column in part))
        console.print(table)
        console.print()
        title = ""
    for row in outcome.rows:
        if words := verdict_words(row):
            console.print(f"{row.name}: {words}", soft_wrap=True, highlight=False)
    for name, share in can_act.items():  # a column of its own would be empty in all other rows
        console.print(f"{name}: BEER's bound is below 1 for {share} of the pairs, so that it can act", soft_wrap=True)
    for name, why in outcome.failed.items():
        console.print(f"{name} has no result: {why}", soft_wrap=True, highlight=False)
    console.print(f"\n{outcome.ranking.sentence}", soft_wrap=True, highlight=False)
    flags = {row.name: row.flags for row in outcome.rows}
    for name in outcome.ranking.best:
        if flags[name]:
            console.print(f"  {name}: {flags[name]}", soft_wrap=True, highlight=False)
    console.print(f"The page: {out / 'cure.html'}", soft_wrap=True, highlight=False)


def _fitting(rows: Sequence[Mapping[str, str]], room: int) -> list[list[str]]:
    """The columns, each in the first table that has room for it; what policies earn comes first."""
    from dr3.cures.page import columns_of

    tables: list[tuple[list[str], int]] = []
    for column in (name for part in columns_of(rows) for name in part):
        width = 2 + max(len(column), *(len(row.get(column, "")) for row in rows))
        place = next((n for n, (_, taken) in enumerate(tables) if taken + width <= room), len(tables))
        own, taken = tables.pop(place) if place < len(tables) else ([], 0)
        tables.insert(place, ([*own, column], taken + width))
    return [own for own, _ in tables]


def _about() -> str:
    return "Train a method with every remedy and every seed, and answer which one helps, or that it cannot be told."


def _help() -> str:
    from dr3.cures import REMEDIES

    width = max(map(len, REMEDIES))
    listed = "\n".join(f"  {name:<{width}}  {one.about}" for name, one in REMEDIES.items())
    return (
        f"usage: dr3 cure DATA [--method METHOD] …\n\n{_about()}\n\nremedies (several together: dr3+layer-norm; every "
        f"regularizer is one, too):\n{listed}\n\nflags: dr3 cure DATA --help\n\n{EXAMPLES}"
    )
