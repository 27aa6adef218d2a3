"""The compiled loop, populations, evaluation: batches meet a method and a regularizer, and a run folder comes out."""

from dr3.training.evaluation import Evaluator, Policy, evaluator_for
from dr3.training.train import train

__all__ = ["Evaluator", "Policy", "evaluator_for", "train"]
