"""`dr3 evaluate RUN …`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from dr3.cli.parsing import Count, parse, print_json
from dr3.errors import UserError
from dr3.progress import plain_console

if TYPE_CHECKING:
    from dr3.ope import Evaluation, PolicyValue
    from dr3.stats import Interval


@dataclass(frozen=True)
class Evaluate:
    """What learned policies are worth, judged by logged data alone: estimates with 95 % intervals, the policy that
    logged as the bar, and how much the log has to say of each. Exit code 0: every policy has a value, 1: one has none.

    examples:

    dr3 evaluate runs/first

    dr3 evaluate runs/first --step 5000 10000 --data validation.npz --json

    dr3 evaluate policy.onnx --data logged.npz --discount 0.99
    """

    what: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN|POLICY")]
    """A run folder, or a policy file of `dr3 export`."""

    data: str | None = None
    """The log to judge by; of a run by default the episodes it held out, else what it was trained on."""

    step: tuple[Count, ...] = ()
    """Of a run: which checkpoints; by default what `dr3 select` chose, else the last of every member."""

    every: bool = False
    """Of a run: all checkpoints."""

    member: int | None = None
    """Of a run: one member only."""

    discount: float | None = None
    """γ; of a run by default its method's."""

    importance: bool = True
    """Weigh logged episodes too: is, wis, dr."""

    json: bool = False
    """Print the numbers as JSON, and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Evaluate, arguments, prog="dr3 evaluate", description=Evaluate.__doc__ or "")
    if options.what.is_dir():
        found, without, source = _of_run(options)
    else:
        found, without, source = _of_file(options)
    if options.json:
        print_json({"data": source, **found.to_json(), "not_evaluated": without})
    else:
        _print(found, without, source)
    missing = without or any("fqe" in one.reasons for one in found.policies)
    return 1 if missing else 0


def _of_run(options: Evaluate) -> tuple[Evaluation, dict[str, str], str]:
    from dr3.data import load
    from dr3.diagnostics.candidates import candidates_of, policies_of
    from dr3.diagnostics.measure import judged_by, judged_rewards
    from dr3.ope import evaluate
    from dr3.runs import Runs
    from dr3.runs.selected import selected

    runs = Runs(options.what)
    method = runs.members[0].method
    discount = options.discount if options.discount is not None else method.discount
    given = None if options.data is None else load(options.data, discount=runs.config.data.discount)
    data = judged_by(runs, given)
    saved = [step for step in runs.checkpoints if step > 0]
    if not saved:
        raise UserError(f"{runs.path} has no checkpoint after the initial one, so it has no policy.")
    if unknown := [step for step in options.step if step not in saved]:
        raise UserError(f"{runs.path} has no checkpoint of step {unknown[0]}; it has {saved}.")
    if options.member is not None and not 0 <= options.member < len(runs):
        raise UserError(f"{runs.path} has {len(runs)} members, numbered from 0; there is no member {options.member}.")
    steps, member = options.step or (saved if options.every else saved[-1:]), options.member
    if not (options.step or options.every) and (choice := selected(runs.path, member)) is not None:
        member, steps = choice[0], [choice[1]]
    chosen = candidates_of([runs], steps, member)
    policies, without = policies_of(chosen, data)
    if not policies:
        raise UserError(f"{runs.path}: no policy can be evaluated, {next(iter(without.values()))}.")
    return (
        evaluate(policies, judged_rewards(method, data), discount=discount, importance=options.importance),
        without,
        data.name,
    )


def _of_file(options: Evaluate) -> tuple[Evaluation, dict[str, str], str]:
    import numpy as np

    from dr3.data import load
    from dr3.export.replay import read_contract, replayed
    from dr3.ope import evaluate

    contract = options.what.with_suffix(".json")
    if not options.what.is_file() or not contract.is_file():
        raise UserError(f"{options.what} is neither a run folder nor a policy file of dr3 export with its contract.")
    if options.data is None:
        raise UserError("A policy file needs a log to be judged by: --data FILE.")
    if options.step or options.every or options.member is not None:
        raise UserError("--step, --every and --member are for run folders: a policy file holds one policy.")
    record = read_contract(options.what)
    inputs = {one["name"]: one for one in record["inputs"]}
    if "noise" in inputs:
        raise UserError(f"{options.what} draws its actions; what can be evaluated are files that act greedily.")

    def policy(observations: np.ndarray, masks: np.ndarray | None = None) -> np.ndarray:
        rows = {"observation": observations.astype(inputs["observation"]["dtype"])}
        if "mask" in inputs:
            everything = np.ones((len(observations), *inputs["mask"]["shape"][1:]), np.bool_)
            rows["mask"] = everything if masks is None else masks
        return replayed(options.what, rows)["action"]

    discount = record["discount"] if options.discount is None else options.discount
    data = load(options.data, discount=discount)
    found = evaluate({options.what.name: policy}, data, discount=discount, importance=options.importance)
    return found, {}, data.name


def _print(found: Evaluation, without: dict[str, str], source: str) -> None:
    from rich.table import Table

    from dr3.ope import ESTIMATORS

    table = Table(title=f"Judged by {source}: {found.rows:,} rows, {found.episodes:,} episodes")
    table.add_column("policy")
    for column in (*ESTIMATORS, "more than logged", "effective episodes", "overlap"):
        table.add_column(column, justify="right")
    for one in found.policies:
        cells = [_cell(one, name) for name in ESTIMATORS]
        trust = ["" if number != number else f"{number:.3g}" for number in (one.effective_episodes, one.overlap)]
        table.add_row(one.name, *cells, _interval(one.gain), *trust)
    console = plain_console()
    console.print(table)
    print(
        f"Values are expected discounted returns (γ = {found.discount:g}) from the log's first states, with 95 % "
        f"intervals.\nThe policy that logged is worth {_interval(found.logged)}.\n"
        f"fqe: {found.how}. Probabilities of logged actions: {found.behavior}."
    )
    if found.cut:
        print(f"{found.cut:,} episodes were cut: is and wis know nothing of what came after.")
    for reason, names in _reasons(found).items():
        print(f"No value of {names}: {reason}.")
    for name, reason in without.items():
        print(f"{name} was not evaluated: {reason}.")


def _reasons(found: Evaluation) -> dict[str, str]:
    """Each reason once, with the estimators and policies it is about."""
    said: dict[str, dict[str, None]] = {}
    for one in found.policies:
        for name, reason in one.reasons.items():
            said.setdefault(reason, {})[f"{name} ({one.name})" if len(found.policies) > 1 else name] = None
    return {reason: ", ".join(names) for reason, names in said.items()}


def _cell(one: PolicyValue, name: str) -> str:
    return "–" if name in one.reasons or name not in one.estimates else _interval(one.estimates[name])


def _interval(of: Interval) -> str:
    return "–" if of.estimate != of.estimate else of.text("{:.3g}".format)
