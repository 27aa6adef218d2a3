"""What was logged: readers that make one table, and a look at what is in it."""

from dr3.data.assemble import assemble
from dr3.data.cog import read_cog
from dr3.data.convert import WRITERS, write
from dr3.data.d4rl import read_d4rl, write_d4rl
from dr3.data.describe import Description, describe, table
from dr3.data.dqn_replay import read_dqn_replay
from dr3.data.dqn_replay_files import write_dqn_replay
from dr3.data.frames import Frames
from dr3.data.gridworld import sample_gridworld
from dr3.data.minari import read_minari
from dr3.data.minari_writing import write_minari
from dr3.data.mixing import concatenate, without_rewards
from dr3.data.npz import read_npz, write_npz
from dr3.data.read import READERS, read
from dr3.data.source import files_of, load, load_recorded, samples
from dr3.data.subsets import replay_subset, trajectory_subset
from dr3.data.tables import Schema, encode_masks, encode_rows, guess_schema, read_table
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions, monte_carlo_returns

__all__ = [
    "READERS",
    "WRITERS",
    "ContinuousActions",
    "Description",
    "DiscreteActions",
    "Frames",
    "Schema",
    "Transitions",
    "assemble",
    "concatenate",
    "describe",
    "encode_masks",
    "encode_rows",
    "files_of",
    "guess_schema",
    "load",
    "load_recorded",
    "monte_carlo_returns",
    "read",
    "read_cog",
    "read_d4rl",
    "read_dqn_replay",
    "read_minari",
    "read_npz",
    "read_table",
    "replay_subset",
    "sample_gridworld",
    "samples",
    "table",
    "trajectory_subset",
    "without_rewards",
    "write",
    "write_d4rl",
    "write_dqn_replay",
    "write_minari",
    "write_npz",
]
