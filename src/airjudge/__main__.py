"""`python -m airjudge`: the command line without its script."""

from airjudge.cli import main

main()
