# Everything a contributor runs. `make` alone lists it.

VENV ?= .venv
EXTRAS ?= dev,python,mcp,otel,docker,deepagents,openai-agents,pydantic-ai,smolagents
ARGS ?=
LOCK_FLAGS ?=
PYTHON ?= $(shell for name in python3.11 python3 python3.12 python3.13 python3.14 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; \
	done)

# Without bytecode every process of a test run would compile carrel and its tests again.
unexport PYTHONDONTWRITEBYTECODE

# uv uses the system's certificates, and the index that pip is configured for.
export UV_SYSTEM_CERTS ?= 1
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

BIN := $(VENV)/bin
# What is installed: carrel with its guest is enough for `make demo`, the rest is for contributors.
READY := $(VENV)/.ready
STAMP := $(VENV)/.installed
CODE := src tests bench docs/generate.py docs/manual.py docs/reference_pages scripts
PROGRESS = $(PYTHON) scripts/progress.py
# uv verifies the hashes of constraints.txt, for build requirements too.
UV := $(BIN)/uv pip install --python $(BIN)/python --compile-bytecode --constraint constraints.txt --build-constraint constraints.txt
comma := ,

.DEFAULT_GOAL := help
.NOTPARALLEL: # they install into one place
.PHONY: help setup guest demo check test coverage lint fix proto docs site bench mutants soak thorough lock audit clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1#\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='#' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## create .venv with the package and all tools; instant if nothing changed

# install EXTRAS: create .venv if there is none that works, and install the package into it, editable
define install
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name one: make PYTHON=..." >&2; exit 1; }
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PROGRESS) "creating $(VENV)" $(PYTHON) -m venv --clear $(VENV)
	@awk '/^uv==/ { found = 1 } found; found && !/\\$$/ { exit }' constraints.txt > $(VENV)/uv.txt
	@test -x $(BIN)/uv || $(PROGRESS) "installing uv" $(BIN)/python -m pip install --progress-bar off \
		--disable-pip-version-check --require-hashes --requirement $(VENV)/uv.txt
	@$(PROGRESS) "installing packages" $(UV) --editable '.[$(1)]'
endef

$(READY): pyproject.toml constraints.txt
	$(call install,python)
	@touch $@

$(STAMP): pyproject.toml constraints.txt
	$(call install,$(EXTRAS))
	@touch $@ $(READY)

guest: $(READY) ## compile the guest that runs Python in sessions; instant if it is compiled
	@$(BIN)/carrel setup

demo: $(READY) ## run the demo; the first time, compile the guest before (ARGS="--keep plots")
	@$(BIN)/carrel demo $(ARGS)

check: setup ## within a minute: the static checks, the tests of what changed, and quick ones
	@$(BIN)/python scripts/check.py quick

test: setup ## check format, lint, types and import contracts, and run all tests (ARGS="-k name")
	@$(BIN)/carrel setup --fuel
	@$(BIN)/python scripts/check.py all $(ARGS)

coverage: setup ## run all tests, those of `make thorough` too, and report the lines that no test reaches
	@$(BIN)/carrel setup --fuel
	@$(BIN)/python scripts/check.py coverage $(ARGS)

lint: setup ## check format, lint, types and import contracts
	@$(BIN)/python scripts/check.py lint

fix: setup ## format, and fix what ruff can fix
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

proto: setup ## regenerate the modules of src/carrel/remote/proto
	cd src && $(abspath $(BIN))/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. \
		carrel/remote/proto/carrel_v1.proto

docs: setup ## regenerate the pages of docs/reference and docs/man
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.manual

site: docs ## build the documentation site into build/site; open it from disk
	$(BIN)/zensical build --strict --clean

bench: setup guest ## run the measurements and write docs/benchmarks.md (ARGS=--quick, ARGS=--render)
	$(BIN)/python -m bench $(ARGS)

thorough: setup ## repeat the guards of the tests at length: races, kills, attacks
	@$(BIN)/carrel setup --fuel
	@$(BIN)/python scripts/check.py thorough $(ARGS)

soak: setup ## let many clients use a service for a minute (SOAK_SECONDS=60 SOAK_CLIENTS=500)
	PYTHONPATH=. $(BIN)/python tests/soak.py

mutants: setup ## remove one guard at a time; each must fail a test
	@$(BIN)/carrel setup --fuel
	$(BIN)/python -m tests.mutants

lock: setup ## pin what pyproject.toml requires, with hashes (LOCK_FLAGS=--upgrade takes the newest)
	$(BIN)/uv pip compile pyproject.toml $(patsubst %,--extra %,$(subst $(comma), ,$(EXTRAS))) \
		--universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet \
		--output-file constraints.txt $(LOCK_FLAGS)

audit: setup ## ask the package index whether a pin was yanked or has a known vulnerability
	$(BIN)/python scripts/audit.py

clean: ## remove what the other targets created
	rm -rf .venv .venv-* .benchmarks .cache build dist .coverage .coverage.* htmlcov \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench docs -type d -name __pycache__ -prune -exec rm -rf {} +
