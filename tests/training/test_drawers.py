from __future__ import annotations

from dr3.training.evaluation import evaluator_for


def test_policies_can_be_tried_in_the_drawers() -> None:
    assert evaluator_for("drawers/closed", episodes=2).describe()["env"] == "drawers/closed"
