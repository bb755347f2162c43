# Everything a newcomer types. Each target sets up .venv by itself; python3 and make are enough.
# pip is told not to compile modules: Python compiles those that are used when it first loads them, a fifth of all.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-slow check browser bench docs clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/installed  ## set-up and main job: choose 5 of 294 things for 32,711 real visitors
	$(BIN)/diminuendo demo --out out/demo

test: check browser  ## set-up, style, types and the whole test suite
	$(BIN)/pytest -n auto --dist worksteal

# The report is looked at in a real browser too. Where it is missing and can be had, it is fetched; else that is skipped.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing chromium with apt-get: the report is tested in a real browser."; \
	  timeout 60 apt-get -qq update >/dev/null 2>&1; \
	  DEBIAN_FRONTEND=noninteractive timeout 180 apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 \
	    || echo "That failed; the tests that need a browser will be skipped."; \
	else echo "No chromium here; the tests that need a browser will be skipped. On Debian: apt-get install chromium"; fi

test-slow: .venv/developing  ## the long statistical runs and proofs of optimality
	$(BIN)/pytest -m slow -rs --durations=10

check: .venv/developing  ## ruff and mypy strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv-bench/installed  ## ours, the peers and the floor in one run, as ratios
	.venv-bench/bin/python -m benchmarks --out benchmarks/results

docs: .venv/developing  ## docs/reference.md from the program, and the site in out/docs; a broken link fails
	$(BIN)/python -m diminuendo.cli.reference docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## forget the environments and what was made
	rm -rf .venv .venv-bench out .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "diminuendo needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[all]'
	@touch $@

.venv/developing: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@touch $@

# The peers are heavy and disagree about versions, so they have an environment of their own. obp asks for torch, which
# what is measured of it does not use: it comes without its dependencies, and where it cannot be had it is reported.
.venv-bench/installed: pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[bench]'
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps obp==0.4.1 || true
	@touch $@
