# Every target sets up what it needs. On a bare machine: Python 3.11+ with pip, and make.
#   make demo PYTHON=python3.12       another interpreter
#   make demo PIP_FLAGS="..."         further flags for pip
PYTHON ?= python3
PIP_FLAGS ?=
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt

.PHONY: help demo test test-heavy search lint bench docs clean

help:
	@echo "make demo   run the headline studies at quick scale and write report.html"
	@echo "make test   run the whole test suite"
	@echo "make test-heavy  kills, fuzzing and load, for hours; keeps what came out in tests/heavy/last.json"
	@echo "make search property tests with new examples"
	@echo "make lint   style, types and the one-way imports"
	@echo "make bench  run every benchmark beside its plain baseline"
	@echo "make docs   build the documentation into site/"
	@echo "make clean  remove what was built, and the environment"

# The stamps hold the time of the last installation, so a second call installs nothing.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "rarefy needs Python 3.11 or newer, $(PYTHON) is older: make PYTHON=python3.12 ..."; exit 1; }
	@echo "== making the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "== installing rarefy (exact versions from constraints.txt)"
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	@echo "== installing rarefy and what developing needs (exact versions from constraints.txt)"
	@$(INSTALL) -e ".[dev]"
	@touch $(VENV)/.installed $@

$(VENV)/.installed-heavy: $(BIN)/python pyproject.toml constraints.txt
	@echo "== installing rarefy and what its heavy tests need (exact versions from constraints.txt)"
	@$(INSTALL) -e ".[heavy]"
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@

demo: $(VENV)/.installed
	@echo "== rarefy demo"
	@$(BIN)/python -m rarefy demo

# One thread per worker: two workers with two threads each would fight for two cores.
test: $(VENV)/.installed-dev
	@echo "== tests, $(JOBS) at a time"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile

# ONLY="-k kills" runs some of them; what the others gave last stays.
test-heavy: $(VENV)/.installed-heavy
	@echo "== heavy tests, one at a time"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m heavy --record tests/heavy/last.json $(ONLY) tests

search: $(VENV)/.installed-dev
	@echo "== property tests with examples that nobody has tried yet"
	@HYPOTHESIS_PROFILE=search OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile \
		$$(grep -rl "^@given" tests)

lint: $(VENV)/.installed-dev
	@echo "== ruff"
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@echo "== mypy"
	@$(BIN)/python -m mypy
	@echo "== import-linter"
	@PYTHONPATH=docs $(BIN)/lint-imports

bench: $(VENV)/.installed
	@set -e; for script in benchmarks/bench_*.py; do \
	  echo "== $$script"; $(BIN)/python "$$script"; done

docs: $(VENV)/.installed-dev
	@echo "== running the studies at tiny scale for their pages"
	@$(BIN)/python docs/make.py claims pictures site
	@echo "== building site/"
	@$(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache \
	  .import_linter_cache
