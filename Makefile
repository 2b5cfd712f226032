# make run    installs oi-tui into .venv and starts it; ARGS='--profile demo' passes flags on
# make test   the whole test suite        make check   linters, types, import contracts, spelling
# make bench  the promised numbers, measured on this machine

PYTHON ?=
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
WORKERS ?= auto

.PHONY: run test check bench clean

run: $(VENV)/.installed
	@$(BIN)/oi-tui $(ARGS)

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks $(ARGS)

# The first Python that really runs and is new enough; a name on the path may be a version manager's empty shim.
$(BIN)/python:
	@for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python); do \
	  if "$$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "Setting up $(VENV) with $$("$$python" --version) (once)."; \
	    exec "$$python" -m venv $(VENV); \
	  fi; \
	done; \
	echo "oi-tui needs Python 3.11 or newer, with its venv module; none was found. Set PYTHON=/path/to/python."; exit 1

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
