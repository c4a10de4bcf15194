"""Tests mirror the package; `tests.stub` is a stub judge."""
