# Every target sets up what it needs: a virtual environment in .venv with the locked packages.
PYTHON ?= python3
PYTHONS ?= 3.11 3.12 3.13 3.14
VENV ?= .venv
TORCH ?=
TESTS ?=
BIN := $(VENV)/bin
OLDEST := $(shell sed -n 's/^  "torch>=\([0-9.]*\)".*/\1/p' pyproject.toml)

.PHONY: demo test lint tests test-pythons test-oldest dist setup docs bench clean

demo: setup  ## train plain, tempered and hinted models, evaluate them by length, write demo/report.html
	$(BIN)/taskhint demo --out demo

test: lint tests  ## lint, types, tests; the page's tests need Chromium with its chromedriver

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

tests: setup  ## the tests alone; TESTS="tests/model/test_model.py" runs some of them
	@command -v chromedriver > /dev/null || echo "make tests: no chromedriver found, so the tests of" \
	  "the page will fail; on Debian: apt-get install chromium chromium-driver"
	OMP_WAIT_POLICY=passive $(BIN)/pytest --numprocesses auto --dist worksteal $(TESTS)

test-pythons:  ## the tests with every Python of PYTHONS that is here; those that are not are named
	@set -e; for version in $(PYTHONS); do \
	  if python$$version -c '' 2> /dev/null; then \
	    $(MAKE) tests VENV=.venv-$$version PYTHON=python$$version; \
	  else echo "make test-pythons: no python$$version here, NOT tested"; fi; done

test-oldest:  ## the tests with the oldest torch that pyproject.toml allows
	$(MAKE) tests VENV=.venv-oldest TORCH=$(OLDEST).0

dist: setup  ## wheel and source archive into dist/
	$(BIN)/python -m hatchling build

setup: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	sed '$(if $(TORCH),s/^torch==.*/torch==$(TORCH)/)' requirements.lock > $(VENV)/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r $(VENV)/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

docs: setup  ## write anew what pages take from results, then build the site in docs/_build
	$(BIN)/python -m tools.fill_pages
	$(BIN)/taskhint list --markdown > docs/recipes.md
	$(BIN)/python tools/draw_figures.py
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build

bench: setup  ## time everything beside other libraries (a quarter of an hour), fill docs/performance.md with it
	mkdir -p results
	$(BIN)/python -m benchmarks all --json > results/bench.json.tmp
	mv results/bench.json.tmp results/bench.json
	$(BIN)/python -m tools.fill_pages

clean:
	rm -rf .venv .venv-* demo dist
