"""Statistics on runs x tasks matrices, with an explicit random generator and nothing dropped silently."""

from dr3.stats.aggregates import Missing, Statistic, iqm, mean, median, optimality_gap, task_means
from dr3.stats.bootstrap import Band, Interval, bootstrap, difference, interval, intervals
from dr3.stats.curves import average_over_checkpoints, efficiency_curve, evenly_spaced
from dr3.stats.improvement import Improvement, improvement, improvement_by_task, probability_of_improvement
from dr3.stats.matrices import Hole, Matrices, ScoreTable
from dr3.stats.profiles import performance_profile
from dr3.stats.results import Result, append_results, read_results, write_results

__all__ = [
    "Band",
    "Hole",
    "Improvement",
    "Interval",
    "Matrices",
    "Missing",
    "Result",
    "ScoreTable",
    "Statistic",
    "append_results",
    "average_over_checkpoints",
    "bootstrap",
    "difference",
    "efficiency_curve",
    "evenly_spaced",
    "improvement",
    "improvement_by_task",
    "interval",
    "intervals",
    "iqm",
    "mean",
    "median",
    "optimality_gap",
    "performance_profile",
    "probability_of_improvement",
    "read_results",
    "task_means",
    "write_results",
]
