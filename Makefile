# Everything a contributor runs. Each target brings its own environment: `make test` on a fresh clone is enough.
#   make demo    a small shop on SQLite, nothing else needed        make check   style, types, import directions
#   make test    all tests but slow and soak ones                      make bench   what a store can do; bench-peers: beside others
#   make test-slow   many processes, crashes; soak: minutes each    make docs    the site, in docs/_build/html
#   make test-servers   what depends on it, on every PostgreSQL     make test-fast   what needs no server and no crash
#   make chaos   workers killed and stopped at random, judged       ARGS="--store postgres --seed 7 --jobs 3000 --kills 15"
#   make clean   remove caches and build results (keeps .venv)
# Arguments for the tool behind a target: make test ARGS="tests/domain -k backoff"

VENV    := .venv
BIN     := $(VENV)/bin
# Two more than there are cores: many tests wait for a lease to run out.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 2)
ARGS    ?=

# Compiled modules are kept, even where the environment says not to (as in many containers): without them each of the processes that
# run tests, and each that a test starts, compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

# A pyenv shim may be on the path and still fail, and Debian's python3 may lack venv: ask each candidate to show that it works.
find_python = for candidate in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo "$$candidate"; exit 0; fi; done; \
	echo "No working Python >= 3.11 with venv found; set one: make PYTHON=/path/to/python3.11 ..." >&2; exit 1
pip_install = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-slow test-fast test-servers soak chaos check hooks format bench bench-peers bench-peers-npm docs docs-parts docs-rules docs-settings docs-cli docs-api docs-failpoints docs-matrix docs-layers docs-pictures clean
.DEFAULT_GOAL := help

help:
	@sed -n '2,8s/^# *//p' Makefile

$(BIN)/python:
	@python=$$($(find_python)) && echo "venv: creating $(VENV) with $$($$python --version)" && $$python -m venv $(VENV)

# Stamps: one per set of packages, renewed when pyproject.toml changes. What is installed already is not fetched again.
$(VENV)/.installed-core: pyproject.toml | $(BIN)/python
	@echo "venv: installing windlass"
	@$(pip_install) -e . && touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "venv: installing windlass with its development tools"
	@$(pip_install) -e '.[dev]' && touch $@ $(VENV)/.installed-core

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	@echo "venv: installing windlass with what builds its site"
	@$(pip_install) -e '.[docs]' && touch $@ $(VENV)/.installed-core

$(VENV)/.installed-peers: pyproject.toml | $(BIN)/python
	@echo "venv: installing windlass with the queues it is measured against"
	@$(pip_install) -e '.[dev,peers]' && touch $@ $(VENV)/.installed-dev $(VENV)/.installed-core

demo: $(VENV)/.installed-core
	@$(BIN)/windlass demo $(ARGS)

test: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup -m "not slow and not soak and not serial" $(ARGS)

# Two runs: in parallel what can be, then alone what must be. pytest's exit code 5 means "no such tests", which is fine for the second.
test-slow: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup -m "slow and not soak and not serial" $(ARGS)
	@$(BIN)/python -m pytest -q -p no:xdist -m "serial and slow and not soak" $(ARGS) || [ $$? -eq 5 ]

# What a change of Python may break, in two minutes: for other versions, `make test-fast VENV=.venv-py313 PYTHON=python3.13`.
FAST := tests/domain tests/submission tests/failure tests/events tests/runtime tests/observability tests/test_app.py tests/test_errors.py \
	tests/test_public_names.py tests/test_settings.py tests/stores/test_contract.py
test-fast: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not soak and not serial" -k "not postgres" $(FAST) $(ARGS)

# On every PostgreSQL that is found; ARGS="--only 15 -- -x".
test-servers: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.servers $(ARGS)

# The long tests, then 2,000 examples of each property, if ARGS leave one (exit code 5: none).
soak: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -p no:xdist -m soak --timeout 3600 $(ARGS)
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -n $(WORKERS) -m "hypothesis and not soak and not slow" --timeout 3600 $(ARGS) || [ $$? -eq 5 ]

chaos: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.chaos $(ARGS)

check: $(VENV)/.installed-dev
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports
	@$(BIN)/python .ci/commit_subjects.py

# Once per clone: git runs .githooks/commit-msg then. With pre-commit: `pre-commit install`, which runs the linters too.
hooks:
	@git config core.hooksPath .githooks

format: $(VENV)/.installed-dev
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(VENV)/.installed-dev
	@$(BIN)/python -m benchmarks.run $(ARGS)

bench-peers: $(VENV)/.installed-peers
	@$(BIN)/python -m benchmarks.peers.run $(ARGS)

# The peer that is no Python package, beside the others in VENV. It needs Node.js 18 or newer with npm (Debian: apt-get install nodejs npm);
# 0.17 is the last version for Node.js before 22. No scripts of packages are run.
bench-peers-npm: | $(BIN)/python
	@command -v npm >/dev/null || { echo "npm is not installed; Debian: apt-get install nodejs npm" >&2; exit 1; }
	@npm install --prefix $(VENV)/npm --no-audit --no-fund --ignore-scripts --loglevel=error graphile-worker@0.17

docs: $(VENV)/.installed-docs
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html $(ARGS)
	@echo "docs/_build/html/index.html"

# The parts of the documentation that are written by scripts; tests/docs fails when one of them is stale. Pictures: the terminal's shows
# what one run printed, so it changes every time and is drawn only when asked for; so does the flow's.
docs-parts: docs-rules docs-settings docs-cli docs-api docs-failpoints docs-matrix docs-layers

docs-rules: $(VENV)/.installed-dev
	@$(BIN)/python -m docs.generate_rules

docs-settings: $(VENV)/.installed-dev
	@$(BIN)/python -m docs.generate_settings

docs-cli: $(VENV)/.installed-dev
	@$(BIN)/python -m docs.generate_cli

docs-api: $(VENV)/.installed-dev
	@$(BIN)/python -m docs.generate_api

docs-failpoints: $(VENV)/.installed-dev
	@$(BIN)/python -m docs.generate_failpoints

docs-matrix: $(VENV)/.installed-dev
	@$(BIN)/python -m docs.generate_matrix

docs-layers: $(VENV)/.installed-dev
	@$(BIN)/python -m docs.generate_layers

docs-pictures: $(VENV)/.installed-dev
	@$(BIN)/python -m docs.draw_life
	@$(BIN)/python -m docs.draw_clock_changes
	@$(BIN)/python -m docs.draw_flow
	@$(BIN)/python -m docs.draw_pipelines
	@$(BIN)/python -m docs.draw_terminal

clean:
	@rm -rf build dist docs/_build .coverage .coverage.* htmlcov .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
