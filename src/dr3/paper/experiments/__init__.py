"""Every figure and table of the paper as an experiment: a description, and the tool that runs and judges it."""

from dr3.paper.experiments.bundle import keep_sweep
from dr3.paper.experiments.catalogue import ALL, EXPERIMENTS, find
from dr3.paper.experiments.declaration import (
    SCALES,
    Answer,
    Arm,
    Design,
    Experiment,
    Folders,
    Keeping,
    Row,
    Scale,
    Verdict,
)
from dr3.paper.experiments.evidence import Evidence
from dr3.paper.experiments.record import write_record
from dr3.paper.experiments.result import Result
from dr3.paper.experiments.running import Plan, jobs_of, judged, reproduce

__all__ = [
    "ALL",
    "EXPERIMENTS",
    "SCALES",
    "Answer",
    "Arm",
    "Design",
    "Evidence",
    "Experiment",
    "Folders",
    "Keeping",
    "Plan",
    "Result",
    "Row",
    "Scale",
    "Verdict",
    "find",
    "jobs_of",
    "judged",
    "keep_sweep",
    "reproduce",
    "write_record",
]
