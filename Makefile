# `make help` lists the targets. PYTHON=/path/to/python3.12 and AIRJUDGE_DEVICE=cpu|gpu overrule what setup finds.
.DEFAULT_GOAL := help
.PHONY: help install dev test test-oracles demo lint format lock clean

BIN := .venv/bin
ARGS ?=

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1|\2/p' Makefile | while IFS='|' read -r target about; do \
		printf '  %-20s%s\n' "$$target" "$$about"; done

install: ## set up .venv from the lock file that fits this machine (again: a moment)
	@bash .ci/install

dev: ## the same, and the tools for tests and lint
	@bash .ci/install dev

test: dev ## all tests, on real weights (ARGS='-k name' goes to pytest)
	@$(BIN)/airjudge models pull smollm2-135m
	@$(BIN)/python -m pytest $(ARGS)

test-oracles: install ## airjudge held against ragas, opik and deepeval, in .venv-oracles (ARGS go to pytest)
	@$(BIN)/airjudge models pull smollm2-135m
	@bash .ci/install oracles
	@bash .ci/oracles $(ARGS)

demo: install ## score the demo samples with the default judge (ARGS=--json)
	@$(BIN)/airjudge demo $(ARGS)

lint: dev ## ruff, mypy and the layers
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: dev ## rewrite what ruff can mend
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

lock: dev ## write the lock files anew (ARGS=--upgrade takes newer versions)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python .ci/lock.py $(ARGS)

clean: ## remove both environments and all caches of the tools; weights stay
	rm -rf .venv .venv-oracles .pytest_cache tests/oracles/.pytest_cache .mypy_cache .ruff_cache .hypothesis dist
