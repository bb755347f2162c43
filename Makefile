# Everything a newcomer types. Each target sets up .venv by itself; python3 and make are enough.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-slow check bench docs clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/installed  ## set-up and main job: choose 5 of 294 things for 32,711 real visitors
	$(BIN)/diminuendo demo --out out/demo

test: check  ## set-up, style, types and the whole test suite
	$(BIN)/pytest -n auto

test-slow: .venv/developing  ## the long statistical runs and proofs of optimality
	$(BIN)/pytest -m slow -rs --durations=10

check: .venv/developing  ## ruff and mypy strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv-bench/installed  ## ours, the peers and the floor in one run, as ratios
	.venv-bench/bin/python -m benchmarks

docs: .venv/installed  ## write docs/reference.md from the program itself
	$(BIN)/python -m diminuendo.cli.reference docs

clean:  ## forget the environments and what was made
	rm -rf .venv .venv-bench out .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "diminuendo needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/developing: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# The peers are heavy and disagree about versions, so they have an environment of their own.
.venv-bench/installed: pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@
