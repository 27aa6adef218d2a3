"""Statistics on runs x tasks matrices, with an explicit random generator and nothing dropped silently."""

from dr3.runs.results import CheckpointResult, append_results, read_results, write_results
from dr3.stats.aggregates import Missing, Statistic, iqm, mean, median, optimality_gap, task_means
from dr3.stats.comparison import Improvement, improvement, improvement_by_task, probability_of_improvement
from dr3.stats.curves import average_over_checkpoints, efficiency_curve, evenly_spaced, forward_fill
from dr3.stats.matrices import Hole, Matrices, ScoreTable
from dr3.stats.profiles import performance_profile
from dr3.stats.resampling import Band, Interval, bootstrap, difference, interval, intervals
from dr3.stats.summary import Comparison, Measure, as_dict, compare, comparison_pairs, profile_thresholds, summarise

__all__ = [
    "Band",
    "CheckpointResult",
    "Comparison",
    "Hole",
    "Improvement",
    "Interval",
    "Matrices",
    "Measure",
    "Missing",
    "ScoreTable",
    "Statistic",
    "append_results",
    "as_dict",
    "average_over_checkpoints",
    "bootstrap",
    "compare",
    "comparison_pairs",
    "difference",
    "efficiency_curve",
    "evenly_spaced",
    "forward_fill",
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
    "profile_thresholds",
    "read_results",
    "summarise",
    "task_means",
    "write_results",
]
