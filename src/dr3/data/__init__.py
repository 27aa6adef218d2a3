"""What was logged: readers into one table."""

from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions

__all__ = ["ContinuousActions", "DiscreteActions", "Transitions"]
