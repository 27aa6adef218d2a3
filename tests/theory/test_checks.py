"""The checks that are cheap, each also broken on purpose; the pictures and the command around them all.

Theorem 3.1 is tested on one network in test_drift.py; the whole table takes a minute and is `dr3 theory check`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dr3.cli import theory as command
from dr3.errors import UserError
from dr3.reports.theory import draw, draw_watch
from dr3.theory import derivatives
from dr3.theory.checks import Effort, TheoryCheck, lemmas, proposition
from dr3.theory.gridworld import q_learning

SMALL = Effort(features=40)


def test_lemma_c1_passes_and_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lemmas.lemma_c1(SMALL)[0].passed
    exact = derivatives.pseudo_hessian
    monkeypatch.setattr(derivatives, "pseudo_hessian_closed_form", lambda *at: 1.001 * exact(*at))
    assert lemmas.lemma_c1(SMALL)[0].passed is False


def test_twenty_steps_are_not_a_fixed_point() -> None:
    check = lemmas.twenty_steps(SMALL)[0]
    assert check.passed
    shares = dict(zip(check.numbers["etas"], check.numbers["reached"]["20"], strict=True))
    assert shares[1e-2] > 0.99
    assert shares[6.25e-5] < 0.1


def test_proposition_passes_and_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proposition.random_features(SMALL)[0].passed
    monkeypatch.setattr(proposition, "outcome", lambda norms: "converges")
    assert proposition.random_features(SMALL)[0].passed is False


def test_features_of_the_gridworld_grow_together() -> None:
    _, data, (start, later) = q_learning([0, 300], hidden=(16, 16), batch_size=32, seed=0)
    products = [(snapshot.phi * snapshot.phi_next).sum(1).mean() for snapshot in (start, later)]
    assert products[1] > 10 * products[0]
    kinds = proposition.both_kinds(later, data)
    rows, next_rows = kinds["∇_w Q(s, a)"]
    assert rows.shape == next_rows.shape == (256, 5 * 16)
    # A gradient is φ(s) in the row of its action, so products count where a' = a only.
    phi, phi_next = kinds["phi(s)"]
    same = later.next_actions == data.actions
    np.testing.assert_allclose((rows * next_rows).sum(1), np.where(same, (phi * phi_next).sum(1), 0), atol=1e-12)


def some_checks() -> list[TheoryCheck]:
    """Numbers of the right names and shapes."""
    network = {
        "measured": [0.1, -0.2],
        "predicted": [0.1, -0.2],
        "predicted_printed": [0.2, -0.3],
        "along": [0.1, 0.2],
        "slope": 0.1,
        "printed_slope": 0.2,
    }
    scales = [[1.0, 1.3, 0.9], [0.1, 1.0, 1.0]]
    parts = {name: [1.0, -2.0] for name in ("supervised", "bootstrap", "net", "norm")}
    row = {"features": "phi(s)", "step": 0, "norms": [1.0, 0.5, float("inf")]}
    data = {
        "Theorem 3.1, corrected": {"instances": [network], "noise_scales": scales, "eta": 0.1, "chains": 2},
        "Lemma C.2": {"steps": [1, 2], "trace_predicted": [1, 2], "trace_simulated": [1, 2], "trace_star": 2.0},
        "k = 20 steps": {"etas": [0.1, 0.2], "reached": {str(k): [0.5, 1.0] for k in range(3)}, "eigenvalues": [1, 2]},
        "∇Q·∇Q', in sample": parts,
        "∇Q·∇Q', out of sample": parts,
        "Proposition 3.2, random": {"ratios": [0.5, 1.5], "slowest": [1.0, -1.0]},
        "Proposition 3.2, gridworld": {"rows": [row, {**row, "step": 5, "features": "∇_w Q(s, a)"}]},
    }
    return [TheoryCheck(name, "claim [v, v]", "1.0", True, numbers) for name, numbers in data.items()]


def test_pictures_are_drawn(tmp_path: Path) -> None:
    written = draw(some_checks(), tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["theorem.png", "covariance.png", "dot_products.png", "proposition.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


@pytest.mark.parametrize(("verdict", "code"), [(True, 0), (None, 0), (False, 1)])
def test_exit_code_follows_the_verdicts(monkeypatch, capsys, verdict: bool | None, code: int) -> None:
    rows = [*some_checks(), TheoryCheck("one more", "claim", "1.0", verdict, must_fail=True)]
    monkeypatch.setattr("dr3.theory.checks.run_checks", lambda announce: rows)
    assert command.main(["check"]) == code
    printed = capsys.readouterr().out
    assert "[v, v]" in printed  # not taken for markup
    assert ("as it must" in " ".join(printed.split())) is (verdict is True)
    assert command.main(["check", "--json"]) == code
    gridworld = json.loads(capsys.readouterr().out)[6]
    assert gridworld["numbers"]["rows"][0]["norms"] == [1.0, 0.5, None]


def test_watch_prints_and_draws(monkeypatch, tmp_path: Path, capsys) -> None:
    def rows(steps: list[int], *, seed: int) -> list[dict]:
        noise = {"measured": -1e-5 * (seed + 1), "standard_error": 1e-7, "predicted": 1e-5}
        numbers = {"dot_product": 1.0, "squared_norm": 2.0, "feature_product": 3.0, "td_error": 0.1, "td_itself": 0.01}
        spectrum = [[2.0, 0.0], [-0.1, 0.0]]
        return [{"seed": seed, "step": step, "eigenvalues": spectrum, "sgd": noise, **numbers} for step in (0, 10)]

    monkeypatch.setattr("dr3.theory.watch.watch", rows)
    assert command.main(["watch", "--seeds", "2", "--plots", str(tmp_path)]) == 0
    assert "1/2" in capsys.readouterr().out
    assert command.main(["watch", "--seeds", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4
    assert (tmp_path / "watch.png").exists()
    assert draw_watch(rows([], seed=0), tmp_path / "other") == tmp_path / "other" / "watch.png"


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no command 'dr3 theory prove'"):
        command.main(["prove"])
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file"):
        command.main(["check", "--plots", str(tmp_path / "file" / "pictures")])
