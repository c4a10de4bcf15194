"""The objects that a user builds: a metric scores one sample or many, and makes their records."""

from airjudge.metrics.graded import GradedContextRecall, GradedResult
from airjudge.metrics.protocol import Metric
from airjudge.metrics.recall import ContextRecall, RecallResult, checked_sample, record, without_contexts

__all__ = [
    "ContextRecall",
    "GradedContextRecall",
    "GradedResult",
    "Metric",
    "RecallResult",
    "checked_sample",
    "record",
    "without_contexts",
]
