"""The command line: arguments, wiring, printing, exit codes."""

from airjudge.cli.commands import app, main

__all__ = ["app", "main"]
