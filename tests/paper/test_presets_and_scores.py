from __future__ import annotations

import pytest

from dr3.errors import UserError
from dr3.paper import PRESETS, PrintedValue, normalise, printed, settings
from dr3.paper.presets import ATARI_DATA, AtariSettings, CQLWeights, DR3Coefficients


def test_every_setting_has_a_value_and_a_source() -> None:
    for name in PRESETS:
        assert all(setting.source for setting in settings(name))
    with pytest.raises(UserError, match="'hyperparameters-sac'"):
        settings("hyperparameters-sac")


def test_numbers_of_the_paper() -> None:
    atari = AtariSettings()
    assert atari.environment_steps_per_iteration / atari.update_period == atari.gradient_steps_per_iteration
    assert (DR3Coefficients().cql_atari, DR3Coefficients().rem_atari) == (0.03, 0.001)
    assert (DR3Coefficients().cql_antmaze, DR3Coefficients().cql_kitchen) == (0.001, 1.0)
    assert DR3Coefficients().brac_mujoco is None
    assert [data.cql_weight for data in ATARI_DATA.values()] == [1.0, 0.1, 0.1]
    assert (CQLWeights().antmaze, CQLWeights().cog) == (5.0, 1.0)
    assert ATARI_DATA["1%"].gradient_steps == 6_250_000
    assert ATARI_DATA["10%"].gradient_steps == 12_500_000


@pytest.mark.parametrize(
    ("task", "value", "score"),
    [
        ("atari/Breakout@1%", 104.9, 100.0),
        ("Breakout", 1.3, 0.0),
        ("ALE/MsPacman-v5@5%", 248.0, 0.0),
        ("road runner@10%", 38352.3, 100.0),
        ("halfcheetah-medium-v2", 12135.0, 100.0),
        ("d4rl/hopper-full-replay-v2", -20.272305, 0.0),
        ("antmaze-umaze-v2", 0.5, 50.0),
        ("hopper_medium-v2", 3234.3, 100.0),
        ("D4RL/hopper/medium-v2", 3234.3, 100.0),
        ("antmaze-umaze-v3", 0.5, 50.0),
        ("kitchen-mixed-v0", 1.0, 25.0),
    ],
)
def test_normalised_scores(task: str, value: float, score: float) -> None:
    assert normalise(task, value) == pytest.approx(score)


@pytest.mark.parametrize("task", ["minatar/breakout@1%", "gridworld/16", "Tennis@1%", "antmaze", "Breakout@3%"])
def test_other_tasks_are_not_the_papers(task: str) -> None:
    assert normalise(task, 1.0) is None
    assert printed("CQL", task) == ()


def test_the_papers_column() -> None:
    # (23.9 - 1.3) / (104.9 - 1.3) = 21.8 %, 3.8 / 103.6 = 3.7 %
    final, average = printed("CQL", "atari/breakout@1%")
    assert (final.measure, final.value, final.table) == ("final", PrintedValue(21.8, 3.7), "atari-cql-1")
    assert average.measure == "average"
    assert printed("REM + DR3", "atari/breakout@5%")[0].table == "atari-rem-5"
    assert [item.value.mean for item in printed("cql+dr3", "d4rl/antmaze-umaze-v2")] == [85.33, 90.0]
    assert printed("CQL", "kitchen-mixed-v0") == printed("CQL", "kitchen-mixed")
    assert [item.value.mean for item in printed("BRAC", "hopper-medium-v0")] == [32.8, 36.2]


def test_what_the_paper_does_not_print_stays_empty() -> None:
    assert printed("CQL", "atari/Breakout") == ()  # no data share: which table would it be?
    assert printed("DQN", "atari/Breakout@1%") == ()
    assert printed("BRAC", "hopper-medium-v2") == ()
    assert printed("CQL", "hopper-full-replay-v2") == ()
