# `make` alone lists the targets. Every target does its own set-up in .venv; only Python and make are needed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What was installed is remembered by two stamps: the compiler alone, and the tools to work on it.
COMPILER := $(VENV)/.compiler-installed
DEV := $(VENV)/.dev-installed
BUILD ?= build
TARGETS ?= sm_90a
GPU_BUNDLE := $(BUILD)/gpu-bundle
OUTPUT ?= kernels
PROFILE ?= benchmarks/results/profiles-products-nvidia-h100-80gb-hbm3.json

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# What is installed is locked, by version and hash, for every Python and machine that tilec is for.
# UNLOCKED=1 installs what pyproject.toml allows, and says so.
ifdef UNLOCKED
install = @echo 'note: not locked, since UNLOCKED is set'; $(PIP) --editable '.[clone,$(1)]'
else
install = $(PIP) --require-hashes --requirement requirements/$(1).txt
endif

.DEFAULT_GOAL := help
.PHONY: help kernels test lint bless lock gpu-bundle test-gpu bench tune profile clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

kernels: $(COMPILER) ## build kernels/*.tile into build/ (TARGETS=sm_90a,sm_80)
	$(BIN)/tilec build kernels/*.tile -o $(BUILD) --target $(TARGETS)

test: lint ## lint, types, import layers and all tests that need no GPU
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(DEV) ## style, formatting, types and import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bless: $(DEV) ## rewrite the expected output in the test pages; then read the diff
	$(BIN)/python -m pytest --bless

lock: $(BIN)/python ## lock the newest versions that pyproject.toml allows, in requirements/
	$(PIP) 'uv>=0.8,<1'
	for extra in compiler dev; do \
	  $(BIN)/uv pip compile pyproject.toml --extra clone --extra $$extra --output-file requirements/$$extra.txt --upgrade \
	    --quiet --universal --python-version 3.10 --generate-hashes --no-annotate --no-emit-index-url \
	    --custom-compile-command 'make lock' || exit; \
	done

gpu-bundle: $(COMPILER) ## pack cubins, tests and runtime for a machine with a GPU (WHEELS=1 adds Python packages)
	$(BIN)/python tests/gpu/pack.py $(GPU_BUNDLE) $(if $(WHEELS),--wheels 3.12)

test-gpu: ## run the GPU tests from prebuilt cubins, with PYTHON as it is (no set-up; JOBS=4 processes)
	PYTHONPATH=src $(PYTHON) tests/gpu/run.py $(JOBS)

bench: ## run the benchmarks from prebuilt cubins, with PYTHON as it is (BENCH='--only softmax')
	PYTHONPATH=src $(PYTHON) -m tilec bench --build $(BUILD) --save benchmarks/results $(BENCH)

tune: ## measure the members of families from prebuilt cubins, with PYTHON as it is (OUTPUT=kernels)
	PYTHONPATH=src $(PYTHON) benchmarks/tune_all.py $(BUILD) -o $(OUTPUT)

profile: ## profile products and their rivals by Nsight Compute, from prebuilt cubins, with PYTHON as it is
	PYTHONPATH=src TILEC_BUILD=$(BUILD) $(PYTHON) benchmarks/profile.py $(PROFILE) --rivals torch,product,exact @benchmarks/profiled_products.txt

clean: ## remove what was built; .venv stays
	rm -rf $(BUILD) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "tilec needs Python 3.10 or later: make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)

$(COMPILER): pyproject.toml setup.py src/tilec/runtime/hot_path.c requirements/compiler.txt | $(BIN)/python
	$(call install,compiler)
	$(PIP) --no-deps --no-build-isolation --editable .
	@# An editable install compiles nothing, and where Python may write no bytecode every command would.
	@$(BIN)/python -m compileall -q src
	@touch $@

$(DEV): pyproject.toml requirements/dev.txt | $(COMPILER)
	$(call install,dev)
	@touch $@
