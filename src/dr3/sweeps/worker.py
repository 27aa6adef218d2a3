"""A worker process: `python -m dr3.sweeps.worker CORES`. A line of JSON in for each task, one out when it is over.

The end of its input, also that of a parent which was killed, is its signal to stop: it saves and leaves.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from dr3.compiled_programs import replace_torn_programs
from dr3.cores import claim_cores
from dr3.plugins import take_up
from dr3.sweeps.work import work

Orders = SimpleQueue[dict[str, Any] | None]


def main(cores: int) -> None:
    claim_cores(cores)
    replace_torn_programs()
    orders: Orders = SimpleQueue()
    Thread(target=_listen, args=(orders,), daemon=True).start()
    # What a task prints must not be taken for an answer.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        while (order := orders.get()) is not None:
            take_up(order["plugins"])
            error = work(Path(order["folder"]), save_every=order["save_every"])
            print(json.dumps({"error": error}), file=answers, flush=True)


def _listen(orders: Orders) -> None:
    # Unbuffered: a thread that waits in a buffered read would keep the interpreter from leaving.
    with open(0, "rb", buffering=0, closefd=False) as lines:
        for line in lines:
            orders.put(json.loads(line))
    orders.put(None)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(int(sys.argv[1]))
