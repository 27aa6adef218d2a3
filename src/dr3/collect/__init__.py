"""Making data by acting. What needs MuJoCo (`dr3.collect.drawers`) is imported from its own file."""

from dr3.collect.learning_curve import LearningCurve, learning_curve
from dr3.collect.maze import collect_maze
from dr3.collect.online_dqn import collect_dqn
from dr3.collect.online_sac import collect_sac

__all__ = ["LearningCurve", "collect_dqn", "collect_maze", "collect_sac", "learning_curve"]
