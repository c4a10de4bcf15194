"""airjudge: context recall by a judge that never leaves your box."""

from importlib.metadata import version

__version__ = version("airjudge")

__all__ = ["__version__"]
