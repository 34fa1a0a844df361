# The habits of the house. Each target sets up .venv first if it has to.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
TORCH := $(shell grep '^torch==' requirements.txt)
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup test lint format bench docs pictures clean

help:
	@echo "make setup    a virtual environment in .venv, with pinned versions"
	@echo "make test     all tests"
	@echo "make lint     ruff and mypy, changing nothing"
	@echo "make format   let ruff fix and format"
	@echo "make bench    how fast the environments step on this machine"
	@echo "make docs     build the pages of docs/ into site/, links checked"
	@echo "make pictures draw the pages of the tasks in docs/tasks anew"
	@echo "make clean    remove .venv, caches and build products"

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, and $(PYTHON) is: $$($(PYTHON) --version 2>&1)." \
	    "Name another: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up .venv: a few minutes the first time."
	$(PYTHON) -m venv .venv
	$(PIP) install --quiet --constraint requirements.txt $(TORCH)
	$(PIP) install --quiet --requirement requirements.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	$(PIP) check
	@touch $@

test: $(INSTALLED)
	$(BIN)/pytest -n 2 --dist loadgroup

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(INSTALLED)
	$(BIN)/r2d3 bench env

docs: $(INSTALLED)
	$(PIP) install --quiet --constraint requirements.txt --requirement requirements-docs.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(INSTALLED)
	$(BIN)/python -m hard_eight.pictures --out docs/tasks

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(wildcard src tests benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +
