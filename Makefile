# Every target sets up what it needs: a virtual environment in .venv with the locked packages.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test setup docs bench clean

demo: setup  ## train plain, tempered and hinted models, evaluate them by length, write demo/report.html
	$(BIN)/taskhint demo --out demo

test: setup  ## lint, types, tests; the page's tests need Chromium with its chromedriver
	@command -v chromedriver > /dev/null || echo "make test: no chromedriver found, so the tests of" \
	  "the page will fail; on Debian: apt-get install chromium chromium-driver"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_WAIT_POLICY=passive $(BIN)/pytest --numprocesses auto --dist worksteal

setup: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
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
	rm -rf .venv demo
