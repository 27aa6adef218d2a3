"""What `dr3 select RUN` said of policies, beside what they earned: python docs/results/ranked_beside_returns.py RUN

Reads the run's selection.json and evaluations alone. The returns were not known to the ranking.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import spearmanr

import dr3
from dr3.runs.outcomes import DISCOUNTED_VALUE, RETURN
from dr3.runs.selected import selection_record


def main(folder: str) -> None:
    runs, record = dr3.open(folder), selection_record(folder)
    assert record is not None
    place = {int(step): number for number, step in enumerate(runs.evaluation_steps)}

    def earned(one: dict) -> tuple[float, float]:
        at = one["member"], place[one["step"]]
        return float(runs.evaluations[RETURN][at]), float(runs.evaluations[DISCOUNTED_VALUE][at])

    scored = [one for one in record["ranking"] if one["score"] is not None]
    scores = np.array([one["score"] for one in scored])
    returns, discounted = np.array([earned(one) for one in scored]).T
    held = (scores[:, 1] <= discounted) & (discounted <= scores[:, 2])
    print(f"{record['sentence']}\nThe policy that logged: {record['logged']}")
    print(f"{len(scored)} of {len(record['ranking'])} have a score; rank correlation with discounted returns "
          f"{spearmanr(scores[:, 0], discounted).statistic:.2f}")  # fmt: skip
    print(
        f"{held.mean():.0%} of the intervals hold them; the scores are {np.mean(scores[:, 0] - discounted):+.1f} apart"
    )
    tied = [number for number, one in enumerate(scored) if one["policy"] in record["tied"]]
    for words, numbers in (("tied with the best", tied), ("all others", sorted({*range(len(scored))} - {*tied}))):
        found = returns[numbers]
        print(f"{len(numbers)} {words}: return {np.mean(found):.0f} ({found.min():.0f} to {found.max():.0f})")
    print("| policy | fqe | return | discounted |\n|---|---|---|---|")
    kept = [number for number, one in enumerate(scored) if one["member"] == record["member"]]
    kept = [number for number in kept if scored[number]["step"] == record["step"]]
    for number in [*range(5), *kept, *range(len(scored) - 3, len(scored))]:
        score = "{:.1f} ({:.1f}, {:.1f})".format(*scores[number])
        print(f"| {scored[number]['policy']} | {score} | {returns[number]:.0f} | {discounted[number]:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1])
