"""A report of runs: one HTML file that opens from a disk, makes no request, and shows what the figures rest on."""

from airjudge.report.comparing import comparison_of, named
from airjudge.report.seal import wrong_with
from airjudge.report.writing import Evidence, ReportSettings, Written, check_target, write_report

__all__ = [
    "Evidence",
    "ReportSettings",
    "Written",
    "check_target",
    "comparison_of",
    "named",
    "write_report",
    "wrong_with",
]
