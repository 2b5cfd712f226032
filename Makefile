# make run    installs oi-tui into .venv and starts it; ARGS='--profile demo' passes flags on
# make test   the whole test suite        make check   linters, types, import contracts, spelling
# make bench  the promised numbers, measured on this machine

PYTHON ?= $(firstword $(foreach p,python3.13 python3.12 python3.11 python3,$(shell command -v $(p) 2>/dev/null)))
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

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "oi-tui needs Python 3.11 or newer; none was found. Set PYTHON=/path/to/python."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "oi-tui needs Python 3.11 or newer; $(PYTHON) is older. Set PYTHON=/path/to/python."; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
