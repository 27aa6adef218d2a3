"""The checks at the smallest size that still means something, their pictures, and the command around them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dr3.cli import theory as command
from dr3.errors import UserError
from dr3.theory.checks import QUICK, Check, lemmas, proposition, run_checks
from dr3.theory.checks import outcome as outcomes
from dr3.theory.checks.pictures import draw


@pytest.fixture(scope="module")
def checks() -> list[Check]:
    return run_checks(QUICK)


def test_everything_that_should_hold_holds(checks: list[Check]) -> None:
    """Except for the theorem's coefficient, which 500 chains know to a few per cent only."""
    failed = {check.name for check in checks if check.passed is False}
    assert failed <= {"Theorem 3.1, corrected", "∇Q·∇Q', in sample", "∇Q·∇Q', out of sample"}
    printed = next(check for check in checks if check.must_fail)
    assert printed.passed


def test_numbers_are_json_and_pictures_are_drawn(checks: list[Check], tmp_path: Path) -> None:
    for check in checks:
        json.dumps(check.numbers)
    written = draw(checks, tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["theorem.png", "covariance.png", "dot_products.png", "proposition.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_a_broken_lemma_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check must be able to fail: drop γ from the closed form."""
    from dr3.theory import derivatives

    monkeypatch.setattr(
        derivatives,
        "pseudo_hessian_closed_form",
        lambda problem, theta: derivatives.pseudo_hessian(problem, theta) * 1.001,
    )
    assert lemmas.lemma_c1(QUICK)[0].passed is False


def test_features_of_the_gridworld_grow_together() -> None:
    start, later = proposition.gridworld_run([0, 300])
    products = [float((phi * phi_next).sum(1).mean()) for phi, phi_next in (start["phi(s)"], later["phi(s)"])]
    assert products[1] > 10 * products[0]
    rows, next_rows = later["∇_w Q(s, a)"]
    assert rows.shape == next_rows.shape == (256, 5 * 64)
    assert ((rows != 0).reshape(256, 5, 64).any(-1).sum(1) <= 1).all()


def test_exit_code_follows_the_verdicts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    def verdicts(*passed: bool | None) -> None:
        rows = [
            outcomes.Check(f"row {i}", "claim [v, v]", "1.0", one, {"x": float("inf")}) for i, one in enumerate(passed)
        ]
        monkeypatch.setattr("dr3.theory.checks.run_checks", lambda announce: rows)

    verdicts(True, None)
    path = tmp_path / "numbers.json"
    assert command.main(["check", "--json", str(path)]) == 0
    assert json.loads(path.read_text())[0]["numbers"] == {"x": None}
    assert "claim [v, v]" in capsys.readouterr().out
    verdicts(True, False)
    assert command.main(["check"]) == 1


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no command 'dr3 theory prove'"):
        command.main(["prove"])
    with pytest.raises(UserError, match="--json"):
        command.main(["check", "--json", str(tmp_path / "missing" / "numbers.json")])
