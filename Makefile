# Every target sets up what it needs: a virtual environment in .venv with the locked packages.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test setup docs clean

demo: setup  ## train plain, tempered and hinted models, evaluate them by length, write demo/report.html
	$(BIN)/taskhint demo --out demo

test: setup  ## lint, types, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

setup: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

docs: setup  ## write docs/recipes.md anew from the recipes themselves
	$(BIN)/taskhint list --markdown > docs/recipes.md

clean:
	rm -rf .venv demo
