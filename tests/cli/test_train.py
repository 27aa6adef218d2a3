from __future__ import annotations

import dataclasses
import re
import shutil

import pytest

from dr3.cli import invoke
from dr3.cli.train import Run, train_with
from dr3.data import write_npz
from dr3.methods import CQL, DQN, METHODS, ContinuousCQL, ContinuousMethod
from dr3.regularizers import DR3
from dr3.runs import Runs, digest

SMALL = "--hidden 8 --batch-size 8 --metrics-every 20 --evaluate-every 20"


@pytest.fixture
def file(tmp_path, logged):
    write_npz(tmp_path / "logged.npz", logged)
    return tmp_path / "logged.npz"


@pytest.fixture
def dr3(capsys):
    """Carry out a command line: its exit code, what it printed and what it complained about."""

    def call(line):
        try:
            code = invoke(line.split())
        except SystemExit as left:  # how the argument parser ends
            code = left.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.mark.parametrize("method", [name for name, cls in METHODS.items() if not issubclass(cls, ContinuousMethod)])
def test_the_command_lines_of_the_manual(dr3, tmp_path, method):
    line = f"train {method} --data grid16smoothobs --regularizer dr3:0.03 --steps 40 --seeds 3 --out {tmp_path / 'run'}"
    code, out, err = dr3(f"{line} {SMALL}")
    assert code == 0, err
    runs = Runs(tmp_path / "run")
    assert len(runs) == 3
    assert {member.method.name for member in runs.members} == {method}
    assert {member.regularizer for member in runs.members} == {DR3(0.03)}
    assert runs.steps.tolist() == [0, 20, 40]
    assert runs.evaluations["evaluation/return"].shape == (3, 3)
    assert "seed 2" in out
    assert "Everything is in" in out
    assert "40 of 40 updates (100 %)" in err


def test_a_file_and_several_regularizers(dr3, file, tmp_path):
    line = f"train dqn --data {file} --regularizer none dr3:0.01 --steps 4e1 {SMALL} --out {tmp_path / 'run'}"
    code, out, err = dr3(line)
    assert code == 0, err
    assert "dr3:0.01" in out
    code, out, err = dr3(f"{line} --chunk 7")  # the same command again
    assert code == 0, err
    assert "Nothing is left to do after step 40" in err


class Called(Exception):
    """What the command line would have trained."""


@pytest.fixture
def asked(dr3, monkeypatch):
    """The data and the method that a command line asks to train, without training."""

    def catch(data, method, **options):
        raise Called(data, method, options)

    def call(line):
        monkeypatch.setattr("dr3.training.train", catch)
        with pytest.raises(Called) as called:
            dr3(line)
        return called.value.args

    return call


def test_every_hyperparameter_is_a_flag(asked, file):
    _, method, _ = asked(
        f"train dqn --data {file} --discount 0.9 --learning-rate 1e-3 --adam-epsilon 1e-4 --optimizer adamw "
        "--weight-decay 0.2 --batch-size 4 --hidden 5 3 --error huber --target-period 2 --target-rate 0.5 --double "
        "--network mlp --normalise-features --layer-norm --redo-every 7 --redo-threshold 0.2 --target-clip "
        "--hl-gauss 11 --support -1 2"
    )
    given = {
        "discount": 0.9,
        "learning_rate": 1e-3,
        "adam_epsilon": 1e-4,
        "optimizer": "adamw",
        "weight_decay": 0.2,
        "batch_size": 4,
        "network": "mlp",
        "hidden": (5, 3),
        "normalise_features": True,
        "error": "huber",
        "target_period": 2,
        "target_rate": 0.5,
        "double": True,
        "layer_norm": True,
        "hyperspherical": False,
        "redo_every": 7,
        "redo_threshold": 0.2,
        "target_clip": True,
        "quantiles": 0,
        "hl_gauss": 11,
        "support": (-1.0, 2.0),
    }
    assert dataclasses.asdict(method) == dataclasses.asdict(DQN()) | given


def test_every_whole_number_may_be_written_1e2(asked, file):
    _, method, options = asked(
        f"train dqn --data {file} --batch-size 1e2 --hidden 1e1 5 --seeds 2e0 --target-period 5_000"
    )
    assert (method.batch_size, method.hidden, method.target_period) == (100, (10, 5), 5000)
    assert options["seeds"] == 2


def test_cql_goes_by_the_actions_of_the_data(asked, dr3, file, tmp_path, logged_continuous):
    write_npz(tmp_path / "continuous.npz", logged_continuous)
    data, method, _ = asked(f"train cql --data {tmp_path / 'continuous.npz'} --sampled-actions 3")
    assert method == ContinuousCQL(sampled_actions=3)
    assert data.name == "logged-continuous"
    assert isinstance(asked(f"train cql --data={tmp_path / 'continuous.npz'}")[1], ContinuousCQL)
    assert isinstance(asked(f"train cql --data {file}")[1], CQL)
    assert "dr3 train continuous-cql --help" in " ".join(dr3("train cql --help")[1].split())


def test_a_method_for_other_actions_is_told(dr3, tmp_path, logged_continuous):
    write_npz(tmp_path / "continuous.npz", logged_continuous)
    code, _, err = dr3(f"train dqn --data {tmp_path / 'continuous.npz'} --out {tmp_path / 'run'}")
    assert code == 2
    assert "use continuous-cql (ContinuousCQL), continuous-iql, " in err


def test_part_of_the_rows(asked, file):
    assert len(asked(f"train dqn --data {file}:fraction=0.5")[0]) == 24


def test_data_are_loaded_at_the_methods_discount(asked):
    data, _, _ = asked("train supervised --data grid16smoothobs:size=60 --discount 0.9")
    assert data.returns_discount == 0.9


def test_where_policies_are_tried(asked, file):
    assert asked(f"train dqn --data {file}")[2]["env"] == "auto"
    assert asked(f"train dqn --data {file} --env none")[2]["env"] is None


def help_text(shown, flag):
    """What stands between a flag, with the kind of its value, and its default."""
    kind = r"(?:, --no-\S+|\[(?:INT|FLOAT) \[(?:INT|FLOAT) \.\.\.\]\]|\{[^}]*\}(?:\|[A-Z]+)?|[A-Z]+)"
    found = re.search(rf"--{flag} ?{kind} (?P<text>.*?) ?\(default:", shown)
    assert found, flag
    return found["text"]


def test_a_missing_help_text_would_be_noticed():
    shown = (
        "--heads INT K. (default: 200) --hidden [INT [INT ...]] (default: 8) --double, --no-double On. (default: No)"
    )
    assert [help_text(shown, flag) for flag in ("heads", "hidden", "double")] == ["K.", "", "On."]


@pytest.mark.parametrize("method", METHODS)
def test_every_flag_has_a_help_text(dr3, method):
    code, out, _ = dr3(f"train {method} --help")
    assert code == 0
    shown = " ".join(out.replace("│", " ").split())
    for field in dataclasses.fields(METHODS[method]()):
        assert len(help_text(shown, field.name.replace("_", "-")).split()) >= 2, field.name
    for words in ("Updates of each member", "Adam's step size", "Widths of the dense layers", "The run folder"):
        assert words in " ".join(out.split())


def test_train_alone_lists_the_methods(dr3):
    for line in ("train", "train --help"):
        code, out, _ = dr3(line)
        assert code == 0
        assert all(name in out for name in METHODS)


# --- Mistakes ---


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("trian dqn", "There is no command 'trian'; there are train, "),
        (
            "train dqm --data grid16smoothobs",
            "There is no method 'dqm'; there are bc, brac, cog, continuous-cql, ",
        ),
        ("train DQN --data grid16smoothobs", "; did you mean dqn?"),
        ("train dqn --data grid16smothobs", "; did you mean grid16smoothobs?"),
        ("train dqn --data grid16smoothobs:sise=9", "matrix_only_noise; did you mean size?"),
        ("train dqn --data FILE --regularizer DR3:0.03", "; did you mean dr3?"),
        ("train dqn --data FILE --regularizer none:1", "'none:1': none takes neither a coefficient nor settings."),
        ("train dqn --data FILE --env grid16smothobs", "the nearest names: grid16smoothobs, "),
        ("train dqn --data FILE --env minatar/brekout", "; did you mean minatar/breakout?"),
        ("data descibe FILE", "dr3 data collect; did you mean describe?"),
        ("train --data grid16smoothobs", "dr3 train needs a method first"),
        ("train dqn --data grid17", "There is no data 'grid17': it is neither a file nor one of the worlds"),
        ("train dqn --data missing.npz", "missing.npz"),
        ("train dqn --data HERE", "this folder holds neither Minari's files (data/metadata.json) nor DQN-replay files"),
        ("train dqn --data FILE+", "The name of the data is empty, or one that is joined by + is."),
        ("train dqn --data=", "The name of the data is empty, or one that is joined by + is."),
        ("train dqn --data grid16smoothobs:size=many", "size must be a whole number, not 'many'"),
        ("train dqn --data FILE --regularizer dr4:1", "There is no regularizer 'dr4'"),
        ("train dqn --data FILE --regularizer dr3:much", "coefficient must be a number, not 'much'"),
        ("train dqn --data FILE --steps 0", "steps must be at least 1, not 0"),
        ("train dqn --data FILE --seeds 0", "at least one method and one seed"),
        ("train dqn --data FILE --target-period 0", "target_period must be at least 1, not 0"),
        ("train dqn --data FILE:fraction=0", "The fraction of a subset"),
        ("train dqn --data FILE --env Nowhere-v3", "There is no world 'Nowhere-v3'"),
        ("train dqn --data CUT --steps 1", "cut.npz"),
        ("train dqn --data FILE --steps 1 --out FILE", "cannot be a run folder"),
        ("data describe CUT", "cut.npz"),
        (
            "data list",
            "'dr3 data list'; there are dr3 data describe, dr3 data schema, dr3 data convert, dr3 data collect.",
        ),
        ("run digest HERE", "is not a run: it has no config.json"),
        ("run show HERE", "There is no command 'dr3 run show'; there are dr3 run digest, dr3 run export."),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(dr3, file, tmp_path, monkeypatch, line, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cut.npz").write_bytes(file.read_bytes()[:-40])
    for word, path in {"FILE": file, "CUT": tmp_path / "cut.npz", "HERE": tmp_path}.items():
        line = line.replace(word, str(path))
    code, _, err = dr3(line)
    assert code == 2
    assert says in err
    assert err.startswith("dr3: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("train dqn --data FILE --steps inf", "inf"),
        ("train dqn --data FILE --learning-rate fast", "fast"),
        ("train dqn --data FILE --batch-size 4.5", "4.5 is not a whole number"),
        ("train dqn --data FILE --steps few", "'few' is not a number"),
        ("train dqn --data FILE --stesp 5", "--stesp"),
        ("train dqn", "--data"),
    ],
)
def test_a_mistaken_flag_is_named_with_exit_code_2(dr3, file, line, says):
    code, out, err = dr3(line.replace("FILE", str(file)))
    assert code == 2
    assert says in out + err
    assert "Traceback" not in out + err


def test_a_folder_with_another_run_is_left_alone(dr3, file, tmp_path):
    line = f"train dqn --data {file} --steps 20 {SMALL} --out {tmp_path / 'run'}"
    assert dr3(line)[0] == 0
    before = digest(Runs(tmp_path / "run"))
    code, _, err = dr3(f"{line} --discount 0.5")
    assert code == 2
    assert "holds another run: its" in err
    assert err.count("\n") == 1
    assert digest(Runs(tmp_path / "run")) == before


def test_a_digest_is_the_same_for_a_copy(dr3, file, tmp_path):
    assert dr3(f"train dqn --data {file} --steps 20 {SMALL} --out {tmp_path / 'run'}")[0] == 0
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    (code, one, _), (_, other, _) = (dr3(f"run digest {tmp_path / name}") for name in ("run", "copy"))
    assert code == 0
    assert one == other
    assert len(one.strip()) == 64


def test_a_run_that_would_only_clone_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("dr3.training.train", lambda *_, **__: None)
    run = Run(data="grid16smoothobs", steps=100, out=tmp_path / "run")
    train_with(run, ContinuousCQL(warm_start=100))
    assert "clones for its first 100 updates" in capsys.readouterr().err
    train_with(run, ContinuousCQL(warm_start=99))
    assert not capsys.readouterr().err
