# Everything runs in .venv; nothing is installed outside it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := .venv-tools

SEED ?= default
PYTEST := $(BIN)/pytest -n 2 --dist worksteal --randomly-seed=$(SEED)
# What `make test` leaves to `make test-slow`: together they run every test once.
SLOW := slow or spark or database or browser or proxy

.PHONY: demo test test-slow test-tools test-all lint docs build wheel release-check speed paper audit chaos clean

demo: $(VENV)/.installed
	$(BIN)/dpcurate demo --force

# A few minutes. The order is random; `make test SEED=7` has the order of that seed.
test: lint
	$(PYTEST) -m "not ($(SLOW) or tools)"

test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m "$(SLOW)"

# The tools that a graph is handed over to pin other versions than ours, so they have an environment of their own.
test-tools: $(TOOLS)/.installed
	DPCURATE_REQUIRE_TOOLS=1 $(TOOLS)/bin/pytest tests/tools

test-all: test test-slow test-tools

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src/dpcurate
	$(BIN)/lint-imports

docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --group docs
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

# What a release needs: a wheel made from the source archive that runs in empty environments, and a typed interface.
release-check: $(VENV)/.installed-dev
	$(BIN)/pip install --quiet --group release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python .ci/smoke.py dist/*.whl
	$(BIN)/python .ci/typed.py dist/*.whl

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[all]' --group dev
	@touch $@ $(VENV)/.installed

# Not compiled: few of their modules are imported, and that is half of the time it takes.
$(TOOLS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --no-compile --editable '.[tools]' 'pytest>=8.2'
	@touch $@

clean:
	rm -rf $(VENV) $(TOOLS) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
