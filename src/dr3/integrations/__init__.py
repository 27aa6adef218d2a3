"""Critics and training loops of other libraries. Each library is imported only when its module here is."""

from dr3.integrations.diagnose import diagnose

__all__ = ["diagnose"]
