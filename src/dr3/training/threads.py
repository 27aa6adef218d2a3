"""How many threads XLA works with on a CPU: one for each member where updates are too small to share."""

from __future__ import annotations

import math
import os

import jax

from dr3.cores import available_cores
from dr3.methods import Method, Spec
from dr3.training.loop import begin

# Rows of a batch times weights of the critic below which two cores do not share an update well. XLA gives each of its
# steps, most of some microseconds, to a thread that is free: to wake it takes up to 50 µs, and what it reads is in
# another core's cache. One member with DR3 on two cores (Zen 5), ms with one thread | with two:
#   MLP 2 x  64, batch  32 ( 0.2 million):  0.022 | 0.040      MLP 2 x 512, batch 32 ( 9 million):  0.62 | 0.76
#   MLP 2 x 128, batch 256 ( 5 million):    0.37  | 0.48       MLP 2 x 512, batch 64 (18 million):  1.10 | 1.05
#   MinAtar's,   batch  32 ( 4 million):    0.53  | 0.69       MinAtar's,  batch 128 (17 million):  2.35 | 2.22
# An older machine (Zen 4) shared MinAtar's update in 0.68 ms instead of 1.05: with two threads it was the quicker one.
SMALL = 10_000_000


def threads_for(members: int, method: Method, spec: Spec, rows: int) -> int:
    """A thread for each member of small updates, else one for each core. `rows`: of the table."""
    cores = available_cores()
    if members >= cores:
        return cores
    try:
        learner = jax.eval_shape(begin, method, jax.ShapeDtypeStruct((), "uint32"), spec).learner
    except Exception:  # this is about speed alone: `train` refuses, in a sentence, what does not fit together
        return cores
    weights = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(method.critic(learner)))
    return max(members, 1) if weights * (method.batch_size or rows) < SMALL else cores


def start_xla(threads: int) -> None:
    """Have XLA start with so many threads, which it keeps for as long as the process lives.

    Where it has started already, this does nothing: so it is for commands, which train once, and not for `dr3.train`,
    after which a large network may follow. A user's own NPROC, which XLA reads in the place of a count of cores, stays.
    """
    if "NPROC" in os.environ:
        return
    os.environ["NPROC"] = str(threads)
    try:
        jax.devices()
    finally:
        del os.environ["NPROC"]
