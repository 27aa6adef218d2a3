"""How much each rule gains, by kind of run: python docs/results/selection_by_kind.py runs/*

Of the runs of selection.md: with and without DR3, with dense and with sparse rewards. What `dr3 select --measure` has
measured before is read from their folders.
"""

from __future__ import annotations

import sys
from pathlib import Path

import dr3
from dr3.cli.rule_study import RULES, rules_over, trials_of
from dr3.cli.select import Select
from dr3.diagnostics.study import RuleTrial, comparable

KINDS = {
    "DQN": lambda trial: trial.algorithm == "dqn",
    "DQN with DR3": lambda trial: trial.algorithm != "dqn",
    "dense rewards": lambda trial: "sparse" not in trial.task,
    "sparse rewards": lambda trial: "sparse" in trial.task,
}


def main(folders: list[str]) -> None:
    options = Select(tuple(map(Path, folders)), held_out="{world}:seed=100")
    everyone = trials_of([dr3.open(folder) for folder in options.runs], options)
    columns = {}
    for name, belongs in KINDS.items():
        found: list[RuleTrial] = comparable([trial for trial in everyone if belongs(trial)])[0]
        columns[f"{name}, {len(found)} members"] = rules_over(found)
    print(f"| rule | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for rule in (*RULES, "any checkpoint"):
        number = "regret" if rule == "any checkpoint" else "gain"
        cells = (column[rule][number] for column in columns.values())
        print(f"| {rule} | {' | '.join(f'{of.estimate:.2f} ({of.lower:.2f}, {of.upper:.2f})' for of in cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
