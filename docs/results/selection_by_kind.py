"""How much each rule gains, by method: python docs/results/selection_by_kind.py MEASURED.json…

Reads what `dr3 select --measure … --json` printed. Regrets are shares of the range of returns in the runs of a column.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dr3.cli.rule_study import rules_over
from dr3.diagnostics.study import RuleTrial, comparable


def main(*files: str) -> None:
    records = [record for file in files for record in json.loads(Path(file).read_text("utf-8"))["trials"]]
    everyone = [trial_of(record) for record in records]
    columns = {}
    for name in dict.fromkeys(trial.algorithm for trial in everyone):
        found = comparable([trial for trial in everyone if trial.algorithm == name])[0]
        columns[f"{name}, {len(found)} members"] = rules_over(found)
    print(f"| rule | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for rule in next(iter(columns.values())):
        number = "regret" if rule == "any checkpoint" else "gain"
        cells = (column[rule][number] for column in columns.values())
        print(f"| {rule} | {' | '.join('' if of is None else of.text('{:.2f}'.format) for of in cells)} |")


def trial_of(record: dict[str, Any]) -> RuleTrial:
    shown = {name: np.array(holds) for name, holds in record["signs"].items()}
    return RuleTrial(
        member=record["member"],
        task=record["task"],
        algorithm=record["algorithm"],
        steps=np.array(record["steps"]),
        returns=np.array(record["returns"]),
        scores={rule: np.array(of, np.float64) for rule, of in record["scores"].items()},  # None becomes NaN
        unhealthy=np.zeros(len(record["steps"]), np.bool_),  # rules alone are looked at
        shown=shown,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
