"""Many populations, on one machine or on a Ray cluster: a rerun does only what is missing."""

from dr3.sweeps.engine import Ended, Engine
from dr3.sweeps.grid import missing_files, read_grid
from dr3.sweeps.in_process import InProcess
from dr3.sweeps.local import Local
from dr3.sweeps.on_ray import OnRay
from dr3.sweeps.run import Failure, SweepResult, run_tasks
from dr3.sweeps.summary import SummaryRow, collected_results, method_words, summarise
from dr3.sweeps.task import Job, Preparation, Task, data_of
from dr3.sweeps.timing import seconds_of

__all__ = [
    "Ended",
    "Engine",
    "Failure",
    "InProcess",
    "Job",
    "Local",
    "OnRay",
    "Preparation",
    "SummaryRow",
    "SweepResult",
    "Task",
    "collected_results",
    "data_of",
    "method_words",
    "missing_files",
    "read_grid",
    "run_tasks",
    "seconds_of",
    "summarise",
]
