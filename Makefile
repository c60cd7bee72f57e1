# Everything runs in .venv; nothing is installed outside it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := .venv-tools

.PHONY: demo test test-tools lint docs build wheel speed paper audit chaos clean

demo: $(VENV)/.installed
	$(BIN)/dpcurate demo --force

test: $(VENV)/.installed-dev lint
	$(BIN)/pytest -n 2 --dist loadfile

# The tools that a graph is handed over to pin other versions than ours, so they have an environment of their own.
test-tools: $(TOOLS)/.installed
	DPCURATE_REQUIRE_TOOLS=1 $(TOOLS)/bin/pytest tests/tools

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src/dpcurate
	$(BIN)/lint-imports

docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/sphinx-build --quiet --fail-on-warning docs docs/_build
	@echo "open docs/_build/index.html"

paper: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.run

audit: $(VENV)/.installed-dev
	$(BIN)/dpcurate audit --long

chaos: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.chaos --minutes 30 --page docs/reliability.md

speed: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.speed

build: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

wheel: build
	$(BIN)/python .ci/smoke.py dist/*.whl

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed

# Not compiled: few of their modules are imported, and that is half of the time it takes.
$(TOOLS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --no-compile --editable '.[tools]' 'pytest>=8.2'
	@touch $@

clean:
	rm -rf $(VENV) $(TOOLS) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
