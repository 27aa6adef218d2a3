"""All that the paper captions is there, under its number and its label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dr3.errors import UserError
from dr3.hyperparameters import to_json
from dr3.paper.experiments import EXPERIMENTS, SCALES, Folders, Plan, find, jobs_of, reproduce
from dr3.paper.experiments.bundle import Bundle
from dr3.paper.experiments.scoring import Exact, Published, Replays
from dr3.regularizers import LabelNoiseDR3
from dr3.sweeps import Preparation, Task, data_of, missing_files

# In the order of the captions: main text, then appendices A, E and F.
FIGURES = {
    "": "dot_products stability cog_figure atari_all_combined iup_is_fixed other_penalty_main",
    "A.": "dot_product_increases_five_games robustness mujoco_results_from_iup rank_trends_5_games "
    "rank_collapse_test_for_dqn rank_collapse_test_for_rem rem_dot_products explicit_m_choices "
    "target_update_frequency out_of_sample_actions atari_cosine mujoco_cosine cql_stability dqn_stability significance",
    "F.": "cql_5_percent_all_games rem_5_percent_all_games cql_5_percent_all_games_dot_products "
    "rem_5_percent_all_games_dot_products",
}
TABLES = {
    "": "tab:cql_res tab:cql_d4rl",
    "A.": "tab:rem_phi_res tab:cql_kitchen",
    "E.": "table:hyperparams_atari",
    # Two tables of the paper have the same label.
    "F.": "tab:cql_res_median tab:brac tab:cql_res_median tab:cql_dqn_1 tab:cql_dqn_5 tab:cql_dqn_10 tab:rem_dqn_1 "
    "tab:rem_dqn_5 tab:rem_dqn_10 tab:random_dqn_scores",
}


def test_every_caption_of_the_paper_is_an_experiment():
    captions = {
        f"{kind}-{section}{number}": f"fig:{label}" if kind == "figure" else label
        for kind, of in (("figure", FIGURES), ("table", TABLES))
        for section, labels in of.items()
        for number, label in enumerate(labels.split(), start=1)
    }
    assert len(captions) == 40
    assert {experiment.id: experiment.label for experiment in EXPERIMENTS.values()} == captions
    assert list(EXPERIMENTS) == list(captions)


def test_a_wrong_id_is_told_what_was_meant():
    with pytest.raises(UserError, match=r"did you mean figure-A\.3"):
        find(["figure-A3"])


def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "data", tmp_path / "runs")


@pytest.mark.parametrize("scale", SCALES)
def test_every_design_is_whole(scale, tmp_path):
    designs = [experiment.at(scale, folders(tmp_path)) for experiment in EXPERIMENTS.values()]
    jobs = {job.name: job for job in jobs_of(designs)}
    for job in jobs.values():
        assert set(job.needs) <= set(jobs)
        if isinstance(job, Task):
            assert job.members
            assert Task.from_json(job.to_json()) == job
    for design in designs:
        for arm in design.arms:
            # Arms of one label have a run for each seed, and no seed twice.
            seeds = [seed for task in arm.tasks for seed in task.seeds]
            assert sorted(seeds) == list(range(len(seeds)))
            assert len(arm.keeping) in (0, len(arm.tasks))
    if scale == "laptop":
        made = [job.makes for job in jobs.values() if isinstance(job, Preparation)]
        assert len(made) == len(set(made)) == 6 + 4 + 2 + 3 + 3 + 2


def test_the_laptop_scale_is_the_protocols(tmp_path):
    design = EXPERIMENTS["table-1"].at("laptop", folders(tmp_path))
    assert {arm.world for arm in design.arms} == {"MinAtar Asterix", "MinAtar Breakout", "MinAtar Seaquest"}
    for arm in design.arms:
        assert {task.steps for task in arm.tasks} == {400_000 if arm.group == "1%" else 250_000}
    for task in design.tasks:
        settings: Any = to_json(task.method)
        assert (settings["target_period"], settings["batch_size"]) == (2_000, 32)
        assert settings["adam_epsilon"] == (1e-8 if task.method.name == "rem" else 3.1e-4)
    assert all(sum(len(task.seeds) for task in arm.tasks) == 5 for arm in design.arms)
    assert all(keeping.episodes == 100 for arm in design.arms for keeping in arm.keeping)
    first = EXPERIMENTS["figure-1"].at("laptop", folders(tmp_path))
    methods = {arm.label: arm.tasks[0].method for arm in first.arms}
    assert [method.name for method in methods.values()] == ["supervised", "sarsa", "td", "dqn"]
    learning: Any = to_json(methods["TD-learning"])
    assert learning["behavior"] == "cloned"
    assert {task.data.rpartition(":")[2] for task in first.tasks} == {"replay=1%"}


def test_the_mazes_of_the_laptop_have_a_verdict_for_each_body(tmp_path):
    design = EXPERIMENTS["table-2"].at("laptop", folders(tmp_path))
    worlds = {group: {arm.world for arm in design.arms if arm.group == group} for group in ("AntMaze", "PointMaze")}
    assert worlds["AntMaze"] == {"antmaze-umaze-diverse", "antmaze-medium-play"}
    assert len(worlds["PointMaze"]) == 4
    assert {arm.group for arm in design.arms} == set(worlds)
    ants = [arm for arm in design.arms if arm.group == "AntMaze"]
    assert {task.env for arm in ants for task in arm.tasks} == {"antmaze/umaze-diverse", "antmaze/medium-play"}
    for arm in ants:
        assert len(arm.tasks) == 5
        settings: Any = to_json(arm.tasks[0].method)
        assert (settings["reward_scale"], settings["reward_shift"]) == (4.0, -0.5)


def test_good_solutions_are_the_best_of_runs_with_seeds_of_their_own(tmp_path):
    design = EXPERIMENTS["figure-2"].at("laptop", folders(tmp_path))
    assert {source.seeds for source in design.sources} == {(50,), (51,)}
    starts = {source.name: source for source in design.sources}
    for task in design.tasks:
        run, _, best = str(task.init_from).rpartition("@")
        assert best == "best:0"
        assert starts[Path(run).name].data == task.data
        assert Path(run).name in task.needs


def test_the_paper_scale_is_the_papers(tmp_path):
    design = EXPERIMENTS["table-1"].at("paper", folders(tmp_path))
    assert len({arm.world for arm in design.arms}) == 17
    runs = [(task, seed) for task in design.tasks for seed in task.seeds]
    assert len(runs) == 17 * 5 * 3 * 4
    one = next(task for task in design.tasks if "Pong/3" in task.data and task.data.endswith("=1%"))
    assert one.data == str(tmp_path / "data" / "dqn-replay" / "Pong" / "3" / "replay_logs") + ":replay=1%"
    assert one.seeds == (2,)
    assert {task.steps for task in design.tasks} == {6_250_000, 12_500_000}
    for id in ("figure-6", "figure-A.8"):  # 50 iterations, 20 steps of the recursion (appendix A.5)
        noisy = EXPERIMENTS[id].at("paper", folders(tmp_path)).tasks
        assert {task.steps for task in noisy} == {50 * 62_500}
        terms = {task.regularizers[0] for task in noisy}
        assert [(one.solver, one.steps) for one in terms if isinstance(one, LabelNoiseDR3)] == [("steps", 20)]


def test_data_that_is_missing_is_said_at_once_for_everything(tmp_path):
    plan = Plan(tuple(find(["table-F.4", "table-A.2"])), "paper", tmp_path / "data", tmp_path / "out")
    with pytest.raises(UserError) as refusal:
        reproduce(plan, show=False)
    said = str(refusal.value)
    assert said.startswith("88 data sets are missing: ")  # 17 games x 5 replays, 3 kitchens
    assert "Asterix/1/replay_logs" in said
    assert "kitchen-mixed.hdf5" in said
    assert "--data" in said
    assert not (tmp_path / "out").exists()


def test_what_is_made_or_there_is_not_missing(tmp_path):
    for id in EXPERIMENTS:  # what is not there is made first
        assert missing_files(EXPERIMENTS[id].at("laptop", folders(tmp_path)).jobs) == []
    wanted = EXPERIMENTS["table-A.2"].at("paper", folders(tmp_path)).jobs
    file = tmp_path / "data" / "d4rl" / "kitchen-mixed.hdf5"
    file.parent.mkdir(parents=True)
    file.touch()
    assert len(missing_files(wanted)) == 2
    assert len(data_of(wanted)) == 3


def test_replays_are_scored_between_a_random_agent_and_their_mean():
    bundles = [Bundle("a", {"limits": {"random": 1, "replay": 5}}), Bundle("b", {"limits": {"random": 1, "replay": 3}})]
    assert Replays().limits(bundles) == (1.0, 4.0)


def test_names_of_tasks_do_not_depend_on_where_things_lie(tmp_path):
    for id in ("figure-3", "figure-A.3", "figure-A.13", "table-F.4"):
        here = EXPERIMENTS[id].at("laptop", Folders(Path("data"), Path("runs")))
        there = EXPERIMENTS[id].at("laptop", Folders(tmp_path / "other", tmp_path / "elsewhere"))
        assert [task.name for task in here.tasks] == [task.name for task in there.tasks]
        assert len(here.tasks) == sum(len(arm.tasks) for arm in here.arms)


def test_the_other_scales_of_scores():
    assert Published("Pong").limits()[0] < 0
    assert Published("antmaze-umaze-v2").limits() == (0.0, 1.0)
    low, high = Exact("grid16smoothobs").limits()
    assert 0 < low < high < 50
