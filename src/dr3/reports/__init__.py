"""Pictures and reports."""

from dr3.reports.report import write_report

__all__ = ["write_report"]
