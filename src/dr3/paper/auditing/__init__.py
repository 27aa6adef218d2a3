"""Which published aggregates follow from the published details, and which do not."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dr3.paper.auditing.games import interquartile_means, medians, points_in_intervals, repeated_tables
from dr3.paper.auditing.line import AuditLine
from dr3.paper.auditing.runs import probabilities, three_runs
from dr3.paper.auditing.text import claims_in_the_text, stated_twice


def audit(seed: int = 0) -> list[AuditLine]:
    """All checks; `seed` is for the search for possible runs and for the bootstrap.

    Args:
        seed: For the search for possible runs, and for the bootstrap.
    """
    return [
        *medians(),
        *interquartile_means(np.random.default_rng(seed)),
        *repeated_tables(),
        *points_in_intervals(),
        *claims_in_the_text(),
        *three_runs(),
        *probabilities(np.random.default_rng(seed)),  # anew: figure A.15 recomputes them alone
        *stated_twice(),
    ]


def summary(checks: list[AuditLine]) -> str:
    """How many of each verdict, in one line."""
    count = Counter(check.verdict for check in checks)
    return (
        f"Of {len(checks)} published statements {count['follows']} follow from the published details, "
        f"{count['possible']} are possible (they need runs that were not published), "
        f"{count['does not follow']} do not follow."
    )


def as_markdown(checks: list[AuditLine]) -> str:
    """The audit as a page: one table per section."""
    lines = [
        "# The paper's numbers, recomputed",
        "",
        "Written by `dr3 paper audit --markdown > docs/paper-audit.md`; what the verdicts mean is in",
        "[statistics.md](statistics.md#the-audit).",
        "",
        summary(checks),
    ]
    section = ""
    for check in checks:
        if check.section != section:
            section = check.section
            lines += ["", f"## {section}", "", "| statement | published | recomputed | verdict |", "|---|---|---|---|"]
        verdict = f"**{check.verdict}**" if check.verdict == "does not follow" else check.verdict
        lines.append(f"| {check.statement} | {check.published} | {check.recomputed} | {verdict} |")
    return "\n".join(lines) + "\n"
