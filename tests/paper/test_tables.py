from __future__ import annotations

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.paper import PrintedValue, all_tables, table

# Sums of the printed columns, added up apart from the code: final, its deviations, final with DR3, …, average with DR3.
SUMS = {
    "atari-cql-1": (65369.1, 7596.8, 58372.8, 11709.9, 67035.0, 3679.2, 67129.4, 3031.3),
    "atari-cql-5": (92052.2, 12596.3, 89870.6, 9230.8, 91158.7, 4729.8, 97320.1, 6383.9),
    "atari-cql-10": (79293.4, 7787.0, 85242.9, 8009.9, 81002.8, 3878.1, 84759.8, 4733.7),
    "atari-rem-1": (4557.1, 3228.3, 17185.0, 5669.3, 10569.7, 2629.4, 27247.3, 4225.8),
    "atari-rem-5": (46666.7, 19632.7, 90037.6, 13814.0, 49361.1, 6056.5, 60082.3, 6887.7),
    "atari-rem-10": (79005.1, 9067.5, 90162.8, 9080.2, 69809.1, 3478.0, 73377.7, 4492.5),
    "brac": (403.6, 44.2, 478.1, 57.5, 441.8, 96.6, 559.4, 119.4),
}


@pytest.mark.parametrize("name", list(SUMS))
def test_column_sums(name: str) -> None:
    found = table(name)
    sums = []
    for column in found.columns:
        sums.append(found.means(column.algorithm, column.measure).sum())
        sums.append(found.deviations(column.algorithm, column.measure).sum())
    np.testing.assert_allclose(sums, SUMS[name], atol=1e-6)


def test_cells_read_by_eye() -> None:
    assert table("atari-cql-5").value("DemonAttack", "CQL+DR3", "average") == PrintedValue(8396.7, 689.4)
    assert table("atari-rem-10").value("Zaxxon", "REM+DR3", "final") == PrintedValue(0.0, 0.0)
    assert table("atari-iqm-average").value("5%", "REM+DR3", "average") == PrintedValue(60.2, interval=(55.8, 65.1))
    assert table("atari-median").value("10%", "REM+DR3", "average") == PrintedValue(63.9, interval=(67.1, 73.9))
    assert table("atari-median").value("1%", "REM", "final") == PrintedValue(0.0, interval=(-0.7, 0.1))
    assert table("atari-stop-gradient").value("10%", "REM+Δ'", "average") == PrintedValue(67.7, interval=(64.7, 71.3))
    assert table("antmaze").value("antmaze-medium-play-v2", "CQL", "3M") == PrintedValue(16.0, 26.85)
    assert table("kitchen").value("kitchen-partial", "CQL+DR3", "2M") == PrintedValue(40.67, 4.04)
    assert table("brac").value("walker2d-medium-replay-v0", "BRAC+DR3", "final") == PrintedValue(38.7, 9.6)
    assert table("atari-normalisers").value("IceHockey", "DQN replay", "average") == PrintedValue(-8.5)


def test_all_tables_are_there_and_whole() -> None:
    assert len(all_tables()) == 14
    games = table("atari-normalisers").rows
    assert len(set(games)) == 17
    for name, found in all_tables().items():
        assert found.name == name
        assert all(len(values) == len(found.columns) for values in found.cells.values())
        if name.startswith(("atari-cql", "atari-rem")):
            assert found.rows == games


def test_printing_keeps_the_papers_digits() -> None:
    assert table("antmaze").cells["antmaze-umaze-v2"][0].text(table("antmaze").digits) == "84.00 ± 2.67"
    assert table("atari-iqm-average").cells["10%"][3].text(1) == "73.8 (69.3, 78.0)"
    assert table("atari-normalisers").cells["Enduro"][0].text(1) == "0.0"


def test_exports() -> None:
    lines = table("kitchen").as_csv().splitlines()
    assert lines[0] == "row,algorithm,measure,mean,deviation,lower,upper"
    assert lines[1] == "kitchen-mixed,CQL,2M,27.67,12.66,,"
    assert len(lines) == 7
    record = table("atari-iqm-average").as_dict()
    assert record["label"] == "tab:cql_res"
    assert record["cells"][0] == {
        "row": "1%",
        "algorithm": "CQL",
        "measure": "average",
        "mean": 43.7,
        "deviation": None,
        "interval": (39.6, 48.6),
    }


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(UserError, match="'table-9'"):
        table("table-9")
