from __future__ import annotations

import pytest

from dr3.cli import carry_out
from dr3.errors import UserError
from dr3.methods import CQL, DQN
from dr3.regularizers import DR3, FeatureNorm
from dr3.sweeps import Preparation, Task, missing_files, read_grid

GRID = """
steps = 1e3
seeds = [2, 4, 6]
seeds_per_task = 2
data = ["grid16smoothobs", "logs/a.npz:fraction=0.5"]
regularizers = ["none", "dr3", "dr3:0.5:absolute", "norm:0.3"]
coefficients = [0.1, 1]
env = "none"

[methods.dqn]
hidden = [[8], [16, 4]]
learning_rate = [1e-3, 1]
[methods.cql]
hidden = [8, 4]

[prepare]
"logs/a.npz" = "dr3 data collect dqn --env minatar/breakout --out 'logs/a.npz'"
"""


@pytest.fixture
def grid(tmp_path):
    def read(text):
        (tmp_path / "grid.toml").write_text(text)
        return read_grid(tmp_path / "grid.toml", carry_out)

    return read


def test_every_choice_is_a_task(grid):
    first, *tasks = grid(GRID)
    assert isinstance(first, Preparation)
    assert first.makes == "logs/a.npz"
    command = ["data", "collect", "dqn", "--env", "minatar/breakout", "--out", "logs/a.npz"]
    assert first.arguments == {"arguments": command}
    assert first.function is carry_out
    methods = {DQN(hidden=hidden, learning_rate=rate) for hidden in ((8,), (16, 4)) for rate in (0.001, 1.0)}
    methods.add(CQL(hidden=(8, 4)))
    regularizers = {None, DR3(0.1), DR3(1.0), DR3(0.5, absolute=True), FeatureNorm(0.3)}
    assert {task.method for task in tasks} == methods
    assert {task.regularizers for task in tasks} == {(one,) for one in regularizers}
    assert {task.seeds for task in tasks} == {(2, 4), (6,)}
    assert len({task.name for task in tasks}) == len(tasks) == 5 * 2 * 5 * 2
    assert {(task.steps, task.env) for task in tasks} == {(1000, None)}
    assert {task.needs for task in tasks if task.data == "grid16smoothobs"} == {()}
    assert {task.needs for task in tasks if task.data != "grid16smoothobs"} == {(first.name,)}


def test_the_least_that_is_needed(grid):
    only = grid('steps = 5\ndata = "grid16smoothobs"\n[methods.dqn]')
    assert only == [Task("grid16smoothobs", DQN(), steps=5)]


def test_a_setting_that_may_be_nothing_takes_a_number_and_a_list_of_them(grid):
    cql = grid('steps = 5\ndata = "a.npz"\n[methods.continuous-cql]\nlagrange = [5, 2.5]\nalpha = 5')
    assert [task.method.lagrange for task in cql] == [5.0, 2.5]


def test_files_that_are_not_there(grid, tmp_path):
    assert missing_files(grid(GRID)) == []
    (tmp_path / "b.npz").touch()
    words = ["grid16smoothobs:size=8", f"{tmp_path}/b.npz:fraction=0.5", f"{tmp_path}/c.npz:fraction=0.5"]
    assert missing_files([Task(word, DQN()) for word in words]) == [f"{tmp_path}/c.npz"]
    words = [f"{tmp_path}/b.npz:seed=1+{tmp_path}/b.npz", f"{tmp_path}/b.npz+{tmp_path}/samples/d.npz", "sample:any"]
    assert missing_files([Task(word, DQN()) for word in words]) == [f"{tmp_path}/samples/d.npz"]
    assert missing_files([Task("samples/replay", DQN())]) == ["samples/replay"]


def test_a_folder_is_no_grid(tmp_path):
    with pytest.raises(UserError, match="this is a folder, but a file is needed"):
        read_grid(tmp_path, carry_out)


def test_a_file_that_is_made_beside_another_is_not_missing():
    made = Preparation("both/done.json", len, {}, also=("both/a.npz",))
    wanted = [Task(word, DQN(), needs=(made.name,)) for word in ("both/a.npz:fraction=0.5", "both/b.npz+both/a.npz")]
    assert missing_files([made, *wanted]) == ["both/b.npz"]


def test_every_part_of_the_data_waits_for_what_makes_it(grid):
    mixed = GRID.replace('"logs/a.npz:fraction=0.5"', '"b.npz+logs/a.npz:fraction=0.5"')
    first, *tasks = grid(mixed)
    assert {task.needs for task in tasks if task.data != "grid16smoothobs"} == {(first.name,)}
    assert missing_files([first, *tasks]) == ["b.npz"]


LEAST = {"steps": "5", "data": "'grid16smoothobs'"}


@pytest.mark.parametrize(
    ("keys", "methods", "sentence"),
    [
        ({"step": "5"}, "[methods.dqn]", "there is no key 'step'; there are data, methods"),
        ({}, "", "the key 'methods' is missing"),
        ({}, "methods = 3", "methods are tables such as [methods.dqn]"),
        ({}, "[methods.dqm]", "; did you mean dqn?"),
        ({}, "[methods]\ndqn = 3", "methods.dqn is a table of settings, not 3"),
        ({}, "[methods.dqn]\nrate = 3", "methods.dqn has no setting 'rate'; it has "),
        ({}, "[methods.continuous-cql]\nlagrange = 'x'", "methods.continuous-cql.lagrange must be a number, not 'x'"),
        ({}, "[methods.dqn]\nlearning_rate = '3'", "methods.dqn.learning_rate must be a number, not '3'"),
        ({}, "[methods.dqn]\nbatch_size = 3.5", "methods.dqn.batch_size must be a whole number, not 3.5"),
        ({}, "[methods.dqn]\nbatch_size = true", "methods.dqn.batch_size must be a whole number, not True"),
        ({}, "[methods.dqn]\nhidden = 8", "methods.dqn.hidden must be a list, not 8"),
        ({}, "[methods.dqn]\nbatch_size = []", "methods.dqn.batch_size is an empty list"),
        ({}, "[methods.dqn]\nerror = 'l1'", "methods.dqn.error is one of mse, huber, not 'l1'"),
        ({"steps": "0"}, "[methods.dqn]", "steps must be at least 1, not 0"),
        ({"data": "[]"}, "[methods.dqn]", "data is an empty list"),
        ({"seeds": "[]"}, "[methods.dqn]", "seeds is an empty list"),
        ({"regularizers": "['dr4:1']"}, "[methods.dqn]", "regularizers: There is no regularizer 'dr4'"),
        ({"coefficients": "['x']"}, "[methods.dqn]", "coefficients must be a number, not 'x'"),
        ({"coefficients": "[0.1]"}, "[methods.dqn]", "coefficients are of regularizers that name none"),
        ({"coefficients": "[0.1]", "regularizers": "['dr3:1']"}, "[methods.dqn]", "there is no such one"),
        ({"prepare": "3"}, "[methods.dqn]", "prepare is a table of lines"),
        ({}, "[methods.dqn]\n[prepare]\n'a.npz' = \"collect 'a\"", "no command (No closing quotation): collect 'a"),
        ({"steps": ""}, "[methods.dqn]", "grid.toml is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_the_key(grid, keys, methods, sentence):
    lines = [f"{key} = {value}" for key, value in (LEAST | keys).items()]
    with pytest.raises(UserError) as mistake:
        grid("\n".join([*lines, methods]))
    assert sentence in str(mistake.value)
    assert "grid.toml" in str(mistake.value)


def test_a_seed_twice_is_refused(grid):
    with pytest.raises(UserError, match="Two members of the population are the same"):
        grid("steps = 5\nseeds = [1, 1]\ndata = 'grid16smoothobs'\n[methods.dqn]")
