"""What was logged: readers that make one table, and a look at what is in it."""

from dr3.data.assemble import assemble
from dr3.data.describe import Description, describe, table
from dr3.data.npz import read_npz, write_npz
from dr3.data.read import READERS, read
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions, monte_carlo_returns

__all__ = [
    "READERS",
    "ContinuousActions",
    "Description",
    "DiscreteActions",
    "Transitions",
    "assemble",
    "describe",
    "monte_carlo_returns",
    "read",
    "read_npz",
    "table",
    "write_npz",
]
