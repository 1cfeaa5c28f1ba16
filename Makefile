# Both commands below build their own virtual environment; all they need is make and Python >= 3.11 with venv.
#
#   make demo   install, fit two real tables, draw them, and the pictures of the tour
#   make test   install, run the tests
#
# Others: make fuzz SECONDS=60 SEED=1 (every algorithm on random problems; without SEED a fresh one, which is printed),
# make coverage (lines and branches that no test runs), make lint (style, types, subpackages), make docs (the site, in
# docs/_build/html), make bundle (the JavaScript of the explorer), make wheels (what is published), make bench
# (measurements), make clean.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
RUN = $(VENV)/bin
PIP = $(RUN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Neighbouring tests stay in one process, as far as the ends allow, so that few loops are compiled twice; their order is
# that of tests/conftest.py. With SCIPY_ARRAY_API scikit-learn checks estimators with arrays of other libraries, too;
# the gate also tests without it.
IN_PARALLEL = --numprocesses auto --maxprocesses 4 --dist worksteal

.PHONY: demo test coverage fuzz lint docs bundle wheels bench clean

demo: $(VENV)/.installed
	$(RUN)/python examples/demo.py

test: $(VENV)/.installed
	SCIPY_ARRAY_API=1 $(RUN)/python -m pytest $(IN_PARALLEL) -m "not slow"

coverage: $(VENV)/.installed
	$(RUN)/python -m coverage erase
	SCIPY_ARRAY_API=1 $(RUN)/python -m coverage run -m pytest -q $(IN_PARALLEL) -m "not alone and not exhaustive"
	$(RUN)/python -m coverage run -m pytest -q -m "alone and not exhaustive"
	$(RUN)/python -m coverage combine --quiet
	$(RUN)/python -m coverage report

fuzz: $(VENV)/.installed
	$(RUN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

lint: $(VENV)/.installed-lint
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports

docs: $(VENV)/.installed-docs
	$(RUN)/python -m sphinx -q -j 2 -W --keep-going docs docs/_build/html
	$(RUN)/python docs/check_site.py docs/_build/html

bundle:
	$(PYTHON) tools/bundle_explorer.py

wheels: $(VENV)/.installed-publish
	VENV=$(VENV) .ci/wheels

bench: $(VENV)/.installed-bench
	$(RUN)/python benchmarks/all.py

$(VENV)/.installed: pyproject.toml constraints.txt src/kernpool/_version.py | $(VENV)/bin/python
	@echo "Installing kernpool into $(VENV) (a minute or two) ..."
	$(PIP) --editable ".[plot,torch,arrow,nufft,dask,cli,test,browser,grammar]"
	@touch $@

$(VENV)/.installed-lint: $(VENV)/.installed
	$(PIP) --editable ".[lint]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) --editable ".[docs]"
	@touch $@

$(VENV)/.installed-publish: $(VENV)/.installed
	$(PIP) --editable ".[publish]"
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	@echo "Installing the peers that kernpool is measured against ..."
	$(PIP) --editable ".[plot,torch,arrow,nufft,dask,cli,test,browser,grammar,bench]"
	@touch $@

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "kernpool needs Python 3.11 or newer; none was found. Try: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "could not make a virtual environment; on Debian and Ubuntu: apt install python3-venv"; exit 1; }

clean:
	rm -rf .venv* build demo docs/_build docs/gallery docs/api/*.rst docs/api/items docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
	find . -name __pycache__ -prune -exec rm -rf {} +
