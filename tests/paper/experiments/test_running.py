from __future__ import annotations

from dr3.paper.experiments import Design, Experiment, Plan, reproduce
from dr3.sweeps import InProcess, Preparation


def test_a_run_that_failed_is_named_with_its_log(tmp_path):
    failing = Preparation(str(tmp_path / "never.npz"), "builtins:len", {})
    experiment = Experiment(
        id="figure-0",
        label="fig:none",
        title="None",
        claim="None.",
        printed="Nothing.",
        checks=(),
        design=lambda scale, folders: Design(preparations=(failing,)),
    )
    plan = Plan((experiment,), "smoke", tmp_path / "data", tmp_path / "out")
    (result,) = reproduce(plan, engine=InProcess(), show=False)
    assert result.verdict == "cannot be compared"
    assert f"{failing.name}: TypeError" in result.why
    assert f"Its log: {plan.folders.runs / failing.name / 'log.txt'}" in result.why
