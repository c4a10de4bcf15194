"""airjudge held against the originals: run by `make test-oracles`, in an environment of their own."""
