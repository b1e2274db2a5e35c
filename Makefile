# Two commands do everything from a bare clone: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Set-up is done once, and again only when what it reads has changed.
READY := $(VENV)/.ready

.PHONY: help demo test lint types fast-tests test-slow test-gpu test-browser test-cluster bench results transcripts docs clean

# shown by plain `make`
help:
	@echo "make demo       two languages learned at lengths up to 40, right at 500 and a million"
	@echo "make test       format, lint, types and the fast tests: what must pass"
	@echo "make test-slow  the long tests       make test-gpu  those that need a CUDA device"
	@echo "make test-browser  the report in Chromium   make test-cluster  several processes, Ray"
	@echo "make bench      time and memory      make results   tables of the documents from rows"
	@echo "make docs       the documents as a site, in site/"
	@echo "make transcripts  docs/cli.md: every command is run, and what it says is written down"

demo: $(READY)
	@$(BIN)/python examples/demo.py

test: lint types fast-tests

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

fast-tests: $(READY)
	$(BIN)/pytest -q -n 2 --dist loadfile

test-slow: $(READY)
	@# what is skipped is named, as LaTeX where there is no TeX
	$(BIN)/pytest -q -rs -m slow

test-gpu: $(READY)
	@# most of the time kernels are compiled, on the processor
	$(BIN)/pytest -q -m gpu -n 8

test-browser: $(READY)
	$(BIN)/pytest -q -m browser
	@echo "What the browser showed: build/screenshots/"

test-cluster: $(READY)
	$(BIN)/pytest -q -m cluster

bench: $(READY)
	$(BIN)/python benchmarks/layer.py
	$(BIN)/python benchmarks/tasks.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/tokens.py
	$(BIN)/python benchmarks/streams.py
	$(BIN)/python benchmarks/distributed.py
	if $(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then \
	  for one in kernels precision steps; do $(BIN)/python benchmarks/$$one.py || exit 1; done; fi

transcripts: $(READY)
	$(BIN)/python docs/transcripts.py

docs: $(READY)
	$(BIN)/mkdocs build --strict

results: $(READY)
	$(BIN)/python benchmarks/summary.py

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
