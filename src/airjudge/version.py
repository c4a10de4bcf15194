"""The installed version, which every signature carries."""

from importlib.metadata import version

__version__ = version("airjudge")
