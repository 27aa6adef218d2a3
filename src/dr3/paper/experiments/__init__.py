"""Every figure and table of the paper as an experiment: a description, and the tool that runs and judges it."""

from dr3.paper.experiments.catalogue import EXPERIMENTS, find
from dr3.paper.experiments.declaration import SCALES, Answer, Arm, Design, Experiment, Folders, Row, Scale, Verdict
from dr3.paper.experiments.evidence import Evidence
from dr3.paper.experiments.record import write_record
from dr3.paper.experiments.result import Result
from dr3.paper.experiments.running import Plan, jobs_of, reproduce

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Answer",
    "Arm",
    "Design",
    "Evidence",
    "Experiment",
    "Folders",
    "Plan",
    "Result",
    "Row",
    "Scale",
    "Verdict",
    "find",
    "jobs_of",
    "reproduce",
    "write_record",
]
