# The habits of the house. Each target sets up .venv first if it has to.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
TORCH := $(shell grep '^torch==' requirements.txt)
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench docs pictures clean

help:
	@echo "make setup    a virtual environment in .venv, with pinned versions"
	@echo "make demo     demonstrations, then R2D3 from pixels on Wall Sensor; a report with curve and video"
	@echo "              AGENT=r2d2|bc, DEMO_SEED=1, DEMO_MINUTES=5, DEMO=runs/mine change what its names say"
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

# Small pictures, and more demonstrations in a batch than MiniGrid wants: docs/learning.md.
AGENT ?= r2d3
DEMO_MINUTES ?= 30
DEMO_SEED ?= 0
DEMO ?= runs/demo$(if $(filter-out r2d3,$(AGENT)),-$(AGENT))$(if $(filter-out 0,$(DEMO_SEED)),-$(DEMO_SEED))
DEMO_DATA := runs/demonstrations
DEMO_SIZE := --height 36 --width 48
DEMO_TRAIN := --env-args '{"height": 36, "width": 48}' --max-episode-steps 600 --batch-size 16 \
  --samples-per-insert 4 --n-step 5 --target-period 150 --replay-capacity 30_000 --adam-epsilon 1e-7 \
  --evaluate-every 1000 --video-every 5 --checkpoint-minutes 2 --final-episodes 25
DEMO_SHARE := $(if $(filter r2d3,$(AGENT)),--demo-ratio 1/8)
DEMO_FROM := $(if $(filter-out r2d2,$(AGENT)),--demos $(DEMO_DATA)/hardeight/wall-sensor/scripted-48x36-v0)

demo: $(INSTALLED)
	@echo "1 of 2: 100 demonstrations of Wall Sensor, about 20 s."
	@$(BIN)/r2d3 demos make wall_sensor --episodes 100 $(DEMO_SIZE) --out $(DEMO_DATA) || { \
	  echo "To begin anew: rm -r $(DEMO_DATA) $(DEMO)" >&2; exit 1; }
	@echo "2 of 2: $(AGENT) learns from pixels for $(DEMO_MINUTES) minutes. Ctrl-C stops; 'make demo' goes on."
	@echo "Look at $(DEMO)/report.html meanwhile: it is renewed as the run goes on."
	@if [ -d $(DEMO)/checkpoints ] && [ -n "$$(ls $(DEMO)/checkpoints)" ]; then \
	  $(BIN)/r2d3 train --resume --out $(DEMO) --minutes $(DEMO_MINUTES); \
	else \
	  $(BIN)/r2d3 train HardEight/WallSensor-v0 --agent $(AGENT) $(DEMO_FROM) $(DEMO_SHARE) \
	    $(DEMO_TRAIN) --minutes $(DEMO_MINUTES) --seed $(DEMO_SEED) --out $(DEMO); \
	fi
	@echo "The run: $(DEMO)/report.html"

test: $(INSTALLED)
	$(BIN)/pytest -n 2 -m "not cluster"
	$(BIN)/pytest -m cluster

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
