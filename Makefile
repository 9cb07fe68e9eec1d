# Every target does its own set-up: it makes .venv with the versions of constraints/, installs
# symop into it (editable) with the extras that the target needs, and does so only once.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON  ?= python3
WORKERS ?= 2
ARGS    ?=
SUITE   ?=
EXAMPLES ?= 10

VENV        := .venv
BIN         := $(VENV)/bin
VERSION     := $(or $(shell $(PYTHON) -c 'import sys; print("py%d%d" % sys.version_info[:2])'),none)
CONSTRAINTS := constraints/$(VERSION).txt
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint $(CONSTRAINTS)

# A set-up is out of date when one of these is newer than its stamp.
SETUP := pyproject.toml $(CONSTRAINTS) $(VENV)/.stamp-$(VERSION)

.PHONY: help
help:  ## list the targets
	@echo "usage: make TARGET [PYTHON=python3.12] [ARGS='options passed on']"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: $(VENV)/.stamp-train  ## train the digits classifier on real data, results in runs/digits/
	@$(BIN)/python examples/digits.py $(ARGS)

.PHONY: test
test: $(VENV)/.stamp-test  ## run the tests, of repetitive ones a sample
	@echo "==> pytest on $(WORKERS) workers"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not thorough" $(ARGS)

.PHONY: test-all
test-all: $(VENV)/.stamp-test  ## run all tests but those marked slow, as CI does
	@echo "==> pytest on $(WORKERS) workers"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

.PHONY: lengthy
lengthy: $(VENV)/.stamp-test  ## measure which tests `make test` leaves out since they take long
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not thorough" \
	  --update-lengthy $(ARGS)

# Each of these starts processes of its own, so that they run one after the other.
.PHONY: scale
scale: $(VENV)/.stamp-test  ## run the tests on several devices and processes, the slow ones too
	@$(BIN)/python -m pytest -m scale $(ARGS)

.PHONY: check
check: $(VENV)/.stamp-dev  ## check format, lint, types and import layers
	@echo "==> ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "==> ruff check"
	@$(BIN)/ruff check .
	@echo "==> mypy --strict"
	@$(BIN)/python -m mypy --strict
	@echo "==> lint-imports"
	@$(BIN)/lint-imports

.PHONY: format
format: $(VENV)/.stamp-dev  ## format the code and fix what lint can fix
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: viewer
viewer: $(VENV)/.stamp-train  ## fetch the layout library of interactive drawings by npm
	@$(BIN)/python build_viewer.py

.PHONY: mxnet
mxnet: $(VENV)/.stamp-test  ## compare every sample of MXNet's operators with its definition
	@$(BIN)/python -m pytest -n $(WORKERS) tests/test_mxnet_samples.py $(ARGS)

.PHONY: golden
golden: $(VENV)/.stamp-test  ## rewrite the stubs, the golden texts in tests/golden/, docs/names.md, docs/mxnet.md, docs/paddle.md
	@$(BIN)/python -m pytest tests -m golden --update-golden $(ARGS)

.PHONY: proofs
proofs: $(VENV)/.stamp-test  ## run every proof on what changed, results in docs/operators.md
	@XLA_FLAGS="$$($(BIN)/python tests/xla_flags.py)" \
	  $(BIN)/python -m symop.cli check registry.ops --sheets docs --workers $(WORKERS)

.PHONY: mutants
mutants: $(VENV)/.stamp-test  ## flip each sign of each gradient maker; the proofs must see it
	@$(BIN)/python tests/mutants.py $(ARGS)

.PHONY: fuzz
fuzz: $(VENV)/.stamp-test  ## run random graphs in every way against plain JAX, ARGS='--seconds 300'
	@PYTHONPATH=. $(BIN)/python tests/fuzz_graphs.py $(ARGS)

.PHONY: fuzz-files
fuzz-files: $(VENV)/.stamp-test  ## read damaged files of all kinds, ARGS='--seconds 300 --seed 1'
	@PYTHONPATH=. $(BIN)/python tests/fuzz_files.py $(ARGS)

# The standard's own tests, github.com/data-apis/array-api-tests with its submodule; nothing is
# fetched here. What fails and why is in tests/array_api_xfails.txt.
.PHONY: conformance
conformance: suite $(VENV)/.stamp-test  ## run the array API's own tests, SUITE=path/to/array-api-tests
	@$(BIN)/python -c "import ndindex, pytest_jsonreport" || { echo "The suite needs more: " \
	  "$(BIN)/python -m pip install -r '$(SUITE)/requirements.txt'" >&2; exit 1; }
	@echo "==> pytest $(SUITE)"
	@cd "$(SUITE)" && JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 ARRAY_API_TESTS_VERSION=2024.12 \
	  ARRAY_API_TESTS_MODULE=symop.nd $(abspath $(BIN))/python -m pytest array_api_tests -q -rfX \
	  --tb=short --xfails-file "$(CURDIR)/tests/array_api_xfails.txt" --disable-deadline \
	  --hypothesis-derandomize --max-examples $(EXAMPLES) $(ARGS)

.PHONY: suite
suite:
	@test -d "$(SUITE)/array_api_tests" -a -d "$(SUITE)/array-api/spec" || { echo "conformance: SUITE must be a" \
	  "folder with array-api-tests and its submodule, got '$(SUITE)'; for example:" >&2; \
	  echo "  make conformance SUITE=../array-api-tests" >&2; exit 1; }

# Notebooks run while the site is built, those that changed; STORED=1 shows their stored outputs.
.PHONY: docs
docs: $(VENV)/.stamp-docs  ## build the site into build/site (STORED=1: without running notebooks)
	@echo "==> mkdocs build --strict"
	@SYMOP_DOCS_NOTEBOOKS=$(if $(STORED),stored) JAX_PLATFORMS=cpu NO_MKDOCS_2_WARNING=1 \
	  $(BIN)/python -m mkdocs build --strict $(ARGS)
	@echo "open it with: $(BIN)/python -m http.server --directory build/site"

.PHONY: bench
bench: $(VENV)/.stamp-bench  ## run the benchmarks, results in benchmarks/results/
	@$(BIN)/python benchmarks/run.py $(ARGS)

.PHONY: clean
clean:  ## remove the virtual environment, caches and build outputs
	rm -rf $(VENV) build dist *.egg-info .coverage .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call install,EXTRA,EXTRAS THAT IT CONTAINS)
define install
	@echo "==> Installing symop-jax[$(1)] into $(VENV) (minutes the first time, never twice)"
	@$(PIP_INSTALL) --quiet setuptools
	@$(PIP_INSTALL) --no-build-isolation --editable ".[$(1)]"
	@touch $(patsubst %,$(VENV)/.stamp-%,$(1) $(2))
endef

$(VENV)/.stamp-train: $(SETUP)
	$(call install,train)

$(VENV)/.stamp-test: $(SETUP)
	$(call install,test,train)

$(VENV)/.stamp-dev: $(SETUP)
	$(call install,dev,train)

$(VENV)/.stamp-bench: $(SETUP)
	$(call install,bench,train)

$(VENV)/.stamp-docs: $(SETUP)
	$(call install,docs,train)

$(VENV)/.stamp-$(VERSION): | $(CONSTRAINTS)
	@echo "==> Making $(VENV) with $$($(PYTHON) --version)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@touch $@

constraints/%.txt:
	@echo "symop needs Python 3.11, 3.12 or 3.13, but $(PYTHON) is $*." >&2
	@echo "Name one of these, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2
	@exit 1
