# Everything a contributor runs. `make` alone lists it.

VENV ?= .venv
EXTRAS ?= dev,python,mcp,otel,docker,deepagents,openai-agents,pydantic-ai,smolagents
ARGS ?=
LOCK_FLAGS ?=
PYTHON ?= $(shell for name in python3.11 python3 python3.12 python3.13 python3.14 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; \
	done)

# uv trusts what the machine trusts, and asks the index that pip was told to ask.
export UV_SYSTEM_CERTS ?= 1
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CODE := $(wildcard src tests bench docs/generate.py)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
UV := $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt
comma := ,

.DEFAULT_GOAL := help
.PHONY: help setup guest demo test coverage lint fix proto docs bench mutants soak thorough lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1#\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='#' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## make .venv with all that is needed; instant when nothing changed

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name one: make PYTHON=..." >&2; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) uv && $(UV) --editable '.[$(EXTRAS)]' || { \
		echo "uv did not manage; trying pip" >&2; $(PIP) --editable '.[$(EXTRAS)]'; }
	@touch $@

guest: setup ## compile the guest that runs Python in sessions; instant when it is there
	$(BIN)/carrel setup

demo: guest ## show what carrel does
	$(BIN)/carrel demo

test: lint ## check format, lint, types and import contracts, then run all tests (ARGS="-k name")
	$(BIN)/carrel setup --fuel
	@$(BIN)/python -m compileall -q src # hundreds of tests start a process, which may not write bytecode
	$(BIN)/pytest -n auto $(ARGS)

coverage: guest ## run all tests and say which lines none of them reaches
	$(BIN)/pytest -n auto --cov --cov-report=term $(ARGS)

lint: setup ## check format, lint, types and import contracts
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports

fix: setup ## format, and mend what ruff can mend
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

proto: setup ## make the modules of src/carrel/remote/proto anew
	cd src && $(abspath $(BIN))/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. \
		carrel/remote/proto/carrel_v1.proto

docs: setup ## make the generated pages of docs/reference anew
	$(BIN)/python docs/generate.py

bench: guest ## run the measurements and write docs/benchmarks.md (ARGS=--quick, ARGS=--render)
	$(BIN)/python -m bench $(ARGS)

thorough: guest ## go all the way where the tests only go deep enough: races, kills, attacks
	THOROUGH=1 $(BIN)/pytest -n auto tests/attack/test_every_operation.py tests/race tests/workspace/test_ledger_killed.py

soak: setup ## let many clients use a service for a minute (SOAK_SECONDS=60 SOAK_CLIENTS=500)
	PYTHONPATH=. $(BIN)/python tests/soak.py

mutants: setup ## take out one guard at a time; each must fail a test
	PYTHONPATH=. $(BIN)/python tests/mutants.py

lock: setup ## pin what pyproject.toml asks for (LOCK_FLAGS=--upgrade takes the newest)
	$(BIN)/uv pip compile pyproject.toml $(patsubst %,--extra %,$(subst $(comma), ,$(EXTRAS))) \
		--universal --python-version 3.11 --no-header --no-annotate --quiet \
		--output-file constraints.txt $(LOCK_FLAGS)

clean: ## remove what the other targets made
	rm -rf .venv .venv-* build dist .coverage .coverage.* htmlcov \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench docs -type d -name __pycache__ -prune -exec rm -rf {} +
