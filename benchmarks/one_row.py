"""How long one decision takes: python benchmarks/one_row.py

A policy of 2 x 256 units, exported, acts on one logged row: in onnxruntime with one thread, and as `runs.policy`. The
best of several rounds counts, for what else the machine does only adds to it. The bars were set before it was measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dr3

BAR_FILE, BAR_RUNS = 0.2, 1.0  # milliseconds
CALLS, ROUNDS = 500, 20


def main() -> None:
    import numpy as np
    import onnxruntime

    from dr3.export import export_policy

    data = dr3.load("grid16smoothobs")
    method = dr3.DQN(hidden=(256, 256), batch_size=32)
    with tempfile.TemporaryDirectory() as folder:
        runs = dr3.train(data, method, steps=10, out=Path(folder) / "run", env=None, progress=False)
        export_policy(runs, Path(folder) / "policy.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # a small network is done before a second thread has begun
        session = onnxruntime.InferenceSession(str(Path(folder) / "policy.onnx"), options)
        row = np.asarray(data.observations[:1])
        judge("policy.onnx", milliseconds(lambda: session.run(["action"], {"observation": row})), BAR_FILE)
        judge("runs.policy", milliseconds(lambda: runs.policy(row)), BAR_RUNS)


def milliseconds(act: Callable[[], object]) -> float:
    """Of one call: the best round's mean."""
    act()  # compiles
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            act()
        best = min(best, (time.perf_counter() - began) / CALLS)
    return 1000 * best


def judge(name: str, found: float, bar: float) -> None:
    print(f"{name}: {found:.3f} ms a row (bar: {bar:g} ms, {'met' if found <= bar else 'MISSED'})")


if __name__ == "__main__":
    main()
