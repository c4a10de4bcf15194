"""ragas' context recall by our judge: the same names, methods and errors, statements ruled on one by one.

Change the import and a script runs on the server that its client names. `evaluate()` and `EvaluationDataset` are
not here: `airjudge score` reads the same files, shows progress, keeps each verdict and resumes.
"""

from airjudge.compat.ragas.llm import JudgeLLM, llm_factory
from airjudge.compat.ragas.prompt import (
    ContextRecallClassification,
    ContextRecallInput,
    ContextRecallOutput,
    ContextRecallPrompt,
)
from airjudge.compat.ragas.recall import ContextRecall
from airjudge.compat.ragas.result import MetricResult
from airjudge.compat.ragas.single_turn import (
    DistanceMeasure,
    IDBasedContextRecall,
    LLMContextRecall,
    NonLLMContextRecall,
    SingleTurnSample,
)

__all__ = [
    "ContextRecall",
    "ContextRecallClassification",
    "ContextRecallInput",
    "ContextRecallOutput",
    "ContextRecallPrompt",
    "DistanceMeasure",
    "IDBasedContextRecall",
    "JudgeLLM",
    "LLMContextRecall",
    "MetricResult",
    "NonLLMContextRecall",
    "SingleTurnSample",
    "llm_factory",
]
