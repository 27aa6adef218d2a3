from __future__ import annotations

import numpy as np

from dr3.data import frames
from dr3.data.standardisation import Standardisation


def test_mean_and_deviation_by_hand_whatever_the_parts(monkeypatch):
    rows = np.array([[1, 5, 1e6, 0], [2, 5, 1e6 + 2, 0], [6, 5, 1e6 + 4, 0]], np.float32)
    whole = Standardisation.of(rows)
    assert whole.mean == (3.0, 5.0, 1e6 + 2, 0.0)
    np.testing.assert_allclose(whole.deviation, [np.sqrt(14 / 3), 1, np.sqrt(8 / 3), 1], rtol=1e-6)
    monkeypatch.setattr(frames, "CHUNK", 2)
    np.testing.assert_allclose(Standardisation.of(rows).deviation, whole.deviation, rtol=1e-6)


def test_the_numbers_survive_json():
    import json

    drawn = Standardisation.of(np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32))
    again = json.loads(json.dumps({"mean": drawn.mean, "deviation": drawn.deviation}))
    assert Standardisation(tuple(again["mean"]), tuple(again["deviation"])) == drawn
