"""Weights: brought from where the profile says, checked against its hashes, made ready for vLLM."""

from airjudge.weights.cache import Prepared, Progress, cache_dir, hash_file, silent
from airjudge.weights.compiling import compile_seconds
from airjudge.weights.prepare import Verification, carried_files, prepared, pull, verify
from airjudge.weights.tokens import JudgeTokenizer

__all__ = [
    "JudgeTokenizer", "Prepared", "Progress", "Verification", "cache_dir", "carried_files", "compile_seconds",
    "hash_file", "prepared", "pull",
    "silent", "verify",
]  # fmt: skip
