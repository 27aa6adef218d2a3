from __future__ import annotations

import dataclasses
import json

import pytest

from dr3.data.standardisation import Standardisation
from dr3.data.subsets import split_episodes
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.runs import Runs
from dr3.runs.config import FORMAT, RunConfig
from dr3.runs.member import population


@pytest.fixture
def changed(copied_run):
    """The run with other words in its configuration; of a field that is a record, with other words in that."""

    def change(**fields):
        file = copied_run / "config.json"
        record = json.loads(file.read_text())
        for name, value in fields.items():
            record[name] = (
                record[name] | value if isinstance(record.get(name), dict) and isinstance(value, dict) else value
            )
        file.write_text(json.dumps(record))
        return copied_run

    return change


def test_it_comes_back_from_json_as_it_was(small_run):
    config = Runs(small_run).config
    record = json.loads((small_run / "config.json").read_text())
    assert config.to_json() == record
    assert RunConfig.from_json(record) == config
    assert record["format"] == FORMAT
    assert (config.steps, config.metrics_every, config.evaluate_every) == (40, 10, 20)
    assert (config.data.rows, config.data.discount, config.data.source) == (64, 0.9, "grid16smoothobs:size=64")


def test_what_older_versions_did_not_write_is_as_it_was_with_them(copied_run):
    file = copied_run / "config.json"
    record = json.loads(file.read_text())
    del record["data"]["discount"], record["one_core"]
    file.write_text(json.dumps(record | {"format": 1}))
    config = RunConfig.read(file)
    assert (config.data.discount, config.one_core, config.init_from) == (0.9, False, None)


@pytest.mark.parametrize("version", [FORMAT + 1, "2", 0, True])
def test_a_format_that_is_not_known_is_said(changed, version):
    with pytest.raises(UserError, match=rf"config\.json is of format {version!r}, .* up to {FORMAT}; update dr3"):
        Runs(changed(format=version))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"metrics_every": -200}, "metrics_every must be at least 1, not -200"),
        ({"evaluate_every": 0}, "evaluate_every must be at least 1, not 0"),
        ({"steps": True}, "steps must be a whole number, not True"),
        ({"one_core": "no"}, "one_core must be True or False, not 'no'"),
        ({"execution": "magic"}, "execution must be one of 'threads', 'stacked', not 'magic'"),
        ({"evaluation": 3}, "evaluation must be a record or none, not 3"),
        ({"observation_shape": [4, "x"]}, "every number in observation_shape must be a whole number, not 'x'"),
        ({"observation_shape": [0]}, "every number in observation_shape must be at least 1, not 0"),
        ({"action_space": {"count": 0}}, "action_space: count must be at least 1, not 0"),
        ({"data": {"rows": "many"}}, "data: rows must be a whole number, not 'many'"),
        ({"data": {"name": None}}, "data: name must be a text, not None"),
        ({"data": {"source": 3}}, "data: source must be a text, not 3"),
        ({"data": {"discount": 2}}, "data: discount must be between 0 and 1, not 2"),
        ({"init_from": {"run": "a", "step": -1, "member": 0, "fingerprint": ""}}, "init_from: step must be at least 0"),
    ],
)
def test_what_cannot_be_is_refused_with_its_file_and_field(changed, fields, says):
    path = changed(**fields)
    with pytest.raises(UserError) as refused:
        Runs(path)
    assert f"{path / 'config.json'}: {says}" in str(refused.value)


def test_a_member_that_cannot_be_is_said_with_its_number(copied_run):
    file = copied_run / "config.json"
    record = json.loads(file.read_text())
    record["members"][1]["seed"] = -1
    file.write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"config\.json: members\[1\]: A seed is a whole number from 0"):
        Runs(copied_run)


def test_the_folder_name_knows_neither_the_length_nor_the_format(small_run, monkeypatch):
    config = Runs(small_run).config
    name = config.folder_name
    monkeypatch.setattr("dr3.runs.config.FORMAT", FORMAT + 1)
    assert config.folder_name == name
    assert dataclasses.replace(config, steps=80, metrics_every=1, one_core=True).folder_name == config.folder_name
    seeds = tuple(dataclasses.replace(member, seed=member.seed + 7) for member in config.members)
    assert dataclasses.replace(config, members=seeds).folder_name != config.folder_name


def test_columns_are_standardised_by_the_rows_that_are_learned_from(logged):
    members = population(DQN(standardise=True), None, 1)
    config = RunConfig.of(logged, members, steps=1, held_out="50%")
    kept, _ = split_episodes(logged, "50%")
    assert config.spec.standardisation == Standardisation.of(kept.observations)
    assert config.spec.standardisation != Standardisation.of(logged.observations)
