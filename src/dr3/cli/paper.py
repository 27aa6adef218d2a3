"""`dr3 paper`: the paper's own tables and hyperparameters, and which of its numbers follow from which."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import tyro
from rich import box
from rich.console import Console
from rich.table import Table as Grid

from dr3.cli.parsing import print_json

app = tyro.extras.SubcommandApp()


def main(arguments: list[str]) -> int:
    """Show the paper's tables and hyperparameters, or audit its numbers."""
    app.cli(
        args=arguments,
        prog="dr3 paper",
        description="The paper's own numbers: tables, hyperparameters, and an audit of one against the other.",
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    return 0


@app.command
def show(
    table: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="TABLE")] = None,
    /,
    *,
    json: bool = False,
    csv: bool = False,
) -> None:
    """Print a table of the paper, or list all of them.

    For example:
      dr3 paper show
      dr3 paper show antmaze
      dr3 paper show atari-cql-5 --csv > cql5.csv
      dr3 paper show hyperparameters-dr3

    Args:
        table: Name of a table; without it the tables are listed.
        json: Print JSON, one record per cell.
        csv: Print CSV, one line per cell.
    """
    from dr3.errors import UserError
    from dr3.paper import PRESETS, all_tables

    if json and csv:
        raise UserError("--json and --csv exclude each other: name one of them.")
    if table is None:
        _list(json, csv)
    elif table in PRESETS:
        _show_settings(table, json, csv)
    elif table in all_tables():
        _show_table(table, json, csv)
    else:
        raise UserError(f"the paper has no table named {table!r}; `dr3 paper show` lists them.")


@app.command
def audit(*, json: bool = False, markdown: bool = False) -> None:
    """Recompute what can be recomputed and say which published numbers follow from the published details.

    For example:
      dr3 paper audit
      dr3 paper audit --markdown > docs/paper-audit.md

    Args:
        json: Print JSON, one record per check.
        markdown: Print the page docs/paper-audit.md.
    """
    from dr3.errors import UserError
    from dr3.paper.auditing import as_markdown, audit, summary

    if json and markdown:
        raise UserError("--json and --markdown exclude each other: name one of them.")
    checks = audit()
    if json:
        print_json([dataclasses.asdict(check) for check in checks])
        return
    if markdown:
        print(as_markdown(checks), end="")
        return
    console = Console()
    section, grid = "", _grid("")
    marks = {"follows": "[green]follows", "possible": "[blue]possible", "does not follow": "[bold red]does not follow"}
    for check in checks:
        if check.section != section:
            if section:
                console.print(grid)
            section = check.section
            grid = _grid(section, "statement", "published", "recomputed", "verdict")
        grid.add_row(check.statement, check.published, check.recomputed, marks[check.verdict])
    console.print(grid)
    console.print(summary(checks), highlight=False)


def _grid(title: str | None, *columns: str) -> Grid:
    return Grid(*columns, title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")


def _list(as_json: bool, as_csv: bool) -> None:
    from dr3.paper import PRESETS, all_tables

    rows = [(name, found.place, found.title) for name, found in all_tables().items()]
    rows += [(name, "presets", (type(preset).__doc__ or "").splitlines()[0]) for name, preset in PRESETS.items()]
    if as_json:
        print_json([dict(zip(("name", "place", "title"), row, strict=True)) for row in rows])
    elif as_csv:
        _print_csv([("name", "place", "title"), *rows])
    else:
        grid = _grid(None, "name", "where", "what")
        for row in rows:
            grid.add_row(*row)
        Console().print(grid)


def _show_table(name: str, as_json: bool, as_csv: bool) -> None:
    from dr3.paper import table

    found = table(name)
    if as_json:
        print_json(found.as_dict())
    elif as_csv:
        print(found.as_csv(), end="")
    else:
        grid = _grid(f"{found.title} ({found.place})", "", *map(str, found.columns))
        for column in grid.columns[1:]:
            column.justify = "right"
        for row, values in found.cells.items():
            grid.add_row(row, *(value.text(found.digits) for value in values))
        console = Console()
        console.print(grid)
        for note in found.notes:
            console.print(f"Note: {note}", highlight=False)


def _show_settings(name: str, as_json: bool, as_csv: bool) -> None:
    from dr3.paper import settings

    rows = settings(name)
    if as_json:
        print_json([dataclasses.asdict(setting) for setting in rows])
    elif as_csv:
        _print_csv([("name", "value", "source"), *((row.name, row.value, row.source) for row in rows)])
    else:
        grid = _grid(name, "hyperparameter", "value", "source")
        for setting in rows:
            grid.add_row(setting.name, "not stated" if setting.value is None else str(setting.value), setting.source)
        Console().print(grid)


def _print_csv(rows: list[tuple]) -> None:
    import csv
    import sys

    csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
