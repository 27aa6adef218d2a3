from __future__ import annotations

import numpy as np
import pytest

from dr3.paper import AuditLine, audit
from dr3.paper.auditing import as_markdown, summary
from dr3.paper.auditing.games import normalised
from dr3.paper.auditing.reconstruct import iqm_range, possible_pairs, triples, whole_percentages
from dr3.stats import iqm


@pytest.fixture(scope="module")
def checks() -> list[AuditLine]:
    return audit()


def verdicts(checks: list[AuditLine], section: str) -> dict[str, str]:
    return {check.statement: check.verdict for check in checks if check.section.startswith(section)}


def test_whole_percentages_by_hand() -> None:
    # 69, 73, 77: mean 73, deviation 4. 0, 0, 4: mean 1.33, deviation 2.309, cut to 2.30. Nothing gives 84.00 ± 2.67.
    assert whole_percentages(73.00, 4.00) == [(69, 73, 77)]
    assert whole_percentages(1.33, 2.30) == [(0, 0, 4)]
    assert whole_percentages(0.0, 0.0) == [(0, 0, 0)]
    assert whole_percentages(84.00, 2.67) == []


def test_other_triples_have_the_mean_and_the_deviation() -> None:
    runs = np.array(triples(84.00, 2.67))
    assert len(runs) > 100
    np.testing.assert_allclose(runs.mean(axis=1), 84.00)
    np.testing.assert_allclose(runs.std(axis=1, ddof=1), 2.67)


def test_pairs_differ_in_who_wins() -> None:
    assert possible_pairs((73.00, 4.00), (1.33, 2.30)) == [((69, 73, 77), (0, 0, 4))]
    assert len(possible_pairs((40.67, 11.84), (45.67, 8.50))) == 2


def test_iqm_range_contains_any_runs_with_those_moments() -> None:
    rng = np.random.default_rng(0)
    means, deviations = rng.normal(50, 20, 9), rng.uniform(1, 15, 9)
    least, greatest = iqm_range(means, deviations, 5, rng)
    for _ in range(50):
        shape = rng.standard_normal((5, 9))
        runs = means + deviations * (shape - shape.mean(axis=0)) / shape.std(axis=0, ddof=1)
        assert least <= iqm(runs) <= greatest
    exact = iqm_range(means, np.zeros(9), 5, rng)
    assert exact[0] == exact[1] == pytest.approx(float(iqm(np.tile(means, (5, 1)))))


def test_normalised_scores_by_hand() -> None:
    scores, deviations = normalised("1%", "CQL", "final")
    assert scores[0] == pytest.approx(100 * (656.9 - 279.1) / (3185.2 - 279.1))
    assert deviations[0] == pytest.approx(100 * 91.0 / (3185.2 - 279.1))


def test_the_two_large_rem_tables_do_not_give_the_aggregates(checks: list[AuditLine]) -> None:
    for section in ("Median over 17 games, final", "Median over 17 games, average", "IQM over 17 games, average"):
        found = verdicts(checks, section)
        for name in ("REM", "REM+DR3"):
            assert found[f"{name}, 5%"] == found[f"{name}, 10%"] == "does not follow"
            assert found[f"{name}, 1%"] != "does not follow"


def test_cql_aggregates_agree_with_its_tables_but_for_one(checks: list[AuditLine]) -> None:
    average = verdicts(checks, "IQM over 17 games, average")
    assert all(verdict == "possible" for name, verdict in average.items() if name.startswith("CQL"))
    medians = verdicts(checks, "Median over 17 games, average")
    strange = [name for name, verdict in medians.items() if name.startswith("CQL") and verdict != "follows"]
    assert strange == ["CQL+DR3, 10%"]  # 70.8 from the table, 71.5 printed


def test_the_final_iqm_table_holds_medians(checks: list[AuditLine]) -> None:
    table = verdicts(checks, "Tables against each other")
    assert table["the table of final IQM is not the table of final medians"] == "does not follow"
    assert verdicts(checks, "IQM over 17 games, final")["CQL, 5%"] == "does not follow"
    assert verdicts(checks, "Median over 17 games, final")["CQL, 5%"] == "follows"


def test_the_other_findings(checks: list[AuditLine]) -> None:
    assert verdicts(checks, "Points inside")["atari-median: REM+DR3, average, 10%"] == "does not follow"
    claims = verdicts(checks, "Claims in the text")
    assert claims["BRAC+DR3 improves the median score by 13.8"] == "follows"
    assert claims["CQL+DR3 has 25% better average performance"] == "follows"
    chances = verdicts(checks, "Probability of improvement")
    assert chances["antmaze"] == chances["kitchen"] == "possible"
    assert chances["antmaze is significant"] == chances["antmaze is meaningful"] == "follows"
    assert chances["kitchen is significant"] == "possible"
    settings = verdicts(checks, "Settings that are stated twice")
    assert settings["gradient steps on 1%"] == "does not follow"
    assert settings["gradient steps on 5%"] == "follows"


def test_the_page(checks: list[AuditLine]) -> None:
    page = as_markdown(checks)
    assert summary(checks) in page
    assert page.count("\n## ") == len({check.section for check in checks})
    assert sum(line.startswith("| ") for line in page.splitlines()) == len(checks) + page.count("\n## ")
