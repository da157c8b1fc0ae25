# Every target sets up what it needs. On a bare machine: Python 3.11+ with pip, and make.
#   make demo PYTHON=python3.12       another interpreter
#   make demo PIP_FLAGS="..."         further flags for pip
PYTHON ?= python3
PIP_FLAGS ?=
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
LISTED := pyproject.toml constraints.txt $(wildcard requirements/*.txt)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS)

# Every package by its hash but torch, whose builds differ; flit_core of that list builds rarefy.
define install
	@$(PIP) --require-hashes --no-deps $(1:%=-r requirements/%.txt)
	@$(PIP) -c constraints.txt torch
	@$(PIP) --no-deps --no-build-isolation -e .
endef

.PHONY: help demo test test-whole test-heavy test-versions search lint bench docs wheel archive lock audit clean

help:
	@echo "make demo   run the headline studies at quick scale and write report.html"
	@echo "make test   run the tests, the quickest that ask a rule"
	@echo "make test-whole  the slower tests of the same rules too: really compiled, in several processes, killed"
	@echo "make test-heavy  kills, fuzzing and load, for hours; keeps what came out in tests/heavy/last.json"
	@echo "make test-versions  part of the suite on the lowest and on the latest versions of all packages"
	@echo "make search property tests with new examples"
	@echo "make lint   style, types, spelling and the one-way imports"
	@echo "make bench  run every benchmark beside its plain baseline"
	@echo "make docs   build the documentation into site/"
	@echo "make wheel  build the wheel and the source archive into dist/"
	@echo "make archive  the results of this commit as one zip file for Zenodo, into dist/"
	@echo "make lock   renew requirements/, the lists of packages with hashes, and docs/licences.md"
	@echo "make audit  ask the public services whether a package is known to be vulnerable"
	@echo "make clean  remove what was built, and the environment"

# The stamps hold the time of the last installation, so a second call installs nothing.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "rarefy needs Python 3.11 or newer, $(PYTHON) is older: make PYTHON=python3.12 ..."; exit 1; }
	@echo "== making the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(LISTED)
	@echo "== installing rarefy (exact versions, checked by their hashes)"
	$(call install,run)
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python $(LISTED)
	@echo "== installing rarefy and what developing needs (exact versions, checked by their hashes)"
	$(call install,run dev)
	@touch $(VENV)/.installed $@

$(VENV)/.installed-heavy: $(BIN)/python $(LISTED)
	@echo "== installing rarefy and what its heavy tests need (exact versions, checked by their hashes)"
	$(call install,run dev heavy)
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@

demo: $(VENV)/.installed
	@echo "== rarefy demo"
	@$(BIN)/python -m rarefy demo

# One thread per worker: two workers with two threads each would fight for two cores. A worker that
# has nothing left takes over half of what the other has. Every worker would rewrite the assertions
# of all tests, to say more of one that fails: that is done afterwards, for those that failed.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal $(TIER)
test: $(VENV)/.installed-dev
	@echo "== tests, $(JOBS) at a time"
	@$(PYTEST) --assert=plain || { echo "== once more those that failed"; $(PYTEST) --last-failed; exit 1; }

test-whole: TIER = -m "not heavy"
test-whole: export HYPOTHESIS_PROFILE = whole
test-whole: test

# ONLY="-k kills" runs some of them; what the others gave last stays.
test-heavy: $(VENV)/.installed-heavy
	@echo "== heavy tests, one at a time"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m heavy --record tests/heavy/last.json $(ONLY) tests

# VERSIONS=lowest runs one of the two.
test-versions: $(VENV)/.installed-heavy
	@$(BIN)/python requirements/versions.py $(VERSIONS)

search: $(VENV)/.installed-dev
	@echo "== property tests with examples that nobody has tried yet"
	@HYPOTHESIS_PROFILE=search OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile \
		$$(grep -rl "^@given" tests)

lint: $(VENV)/.installed-dev
	@echo "== ruff"
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@echo "== typos"
	@$(BIN)/typos
	@echo "== mypy"
	@$(BIN)/python -m mypy
	@$(BIN)/python -m pytest -q -n 0 -m slow tests/test_surface.py -k mypy
	@echo "== import-linter"
	@PYTHONPATH=docs $(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	@set -e; for script in benchmarks/bench_*.py; do \
	  echo "== $$script"; $(BIN)/python "$$script"; done

docs: $(VENV)/.installed-dev
	@echo "== pages of committed results, into site/"
	@$(BIN)/python docs/make.py site
	@echo "open site/index.html"

# The same commit gives the same bytes.
wheel: $(VENV)/.installed
	@mkdir -p dist && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -c \
	  "from flit_core import buildapi; print(buildapi.build_wheel('dist'), buildapi.build_sdist('dist'))"

archive: $(VENV)/.installed
	@$(BIN)/python docs/archive.py dist

# Versions come from constraints.txt; optional packages are only looked at, for their licences.
lock: $(VENV)/.installed-heavy
	@echo "== renewing the lists"
	@$(BIN)/python requirements/lists.py
	@echo "== installing what they say, and reading its licences"
	$(call install,run dev heavy)
	@touch $(VENV)/.installed $(VENV)/.installed-dev $(VENV)/.installed-heavy
	@rm -rf build/optional
	@$(PIP) --target build/optional --require-hashes --no-deps -r requirements/optional.txt
	@$(PIP) --target build/optional --no-deps -c constraints.txt torchvision
	@$(BIN)/python docs/make.py licences

# --strict: without it a package that the service does not answer for passes for a sound one.
audit: $(VENV)/.installed-heavy
	@echo "== asking for known vulnerabilities of what constraints.txt pins"
	@$(BIN)/python -m pip_audit --strict --disable-pip --no-deps -r constraints.txt

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache \
	  .import_linter_cache
