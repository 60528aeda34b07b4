# The chores of every day. The others stand by subject in make/*.mk; `make` lists all of them.
.DEFAULT_GOAL := help
PYTHON ?= python3
ARGS   ?=
# SYSTEM=no: install no Debian packages.
SYSTEM ?= yes
export SYSTEM
export BASE_PYTHON := $(PYTHON)
include make/environment.mk make/console.mk make/tests.mk make/fuzz.mk make/measure.mk make/docs.mk make/package.mk

.PHONY: run build test test-quick lint types fuzz bench docs package clean help

run: running ## start a router here (127.0.0.1:5672; ARGS='-c FILE' for a configuration)
	@make/run.sh $(ARGS)

build: $(VENV)/built ## compile the router, so that it runs at full speed

test: ## run the tests, compiled and interpreted (ARGS='tests/wire -k name' to choose; SYSTEM=no installs nothing)
	@echo "make: this checkout gets, by pip and npm, what its lock files name$(if $(filter no,$(SYSTEM)),, (and RabbitMQ 4 in build/))" >&2
	@make/system.sh plan $(TESTED)
	@make/system.sh want $(TESTED)
	@SAID=yes $(MAKE) --no-print-directory test-whole

test-quick: build $(VENV)/quick ## run the tests of the rooms without I/O on both twins, in less than a minute
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target test-quick-compiled test-quick-pure

lint: venv ## run ruff
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: venv ## run mypy --strict
	$(PY) -m mypy

fuzz: venv build ## run every fuzz target for a minute (TARGET='codec engine' to choose, SECONDS=900 for longer)
	$(PY) fuzz/run.py $(TARGET) --seconds $(or $(SECONDS),60) $(ARGS)

bench: venv build bench-system $(VENV)/bench ## measure the router against HAProxy and RabbitMQ (ARGS for its options)
	$(PY) -m bench $(ARGS)

docs: venv man ## write the generated pages of the manual, build/site (the manual as a site) and man/
	$(PY) -m manual docs
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

package: wheel deb rpm ## build wheels, the Debian package and the RPM in dist/

clean: ## remove all generated files
	rm -rf $(VENV) build dist man *.egg-info pipeline/build pipeline/man pipeline/src/*.egg-info .mypy_cache .pytest_cache .ruff_cache \
	  .hypothesis .coverage tests/interop/rhea/node_modules tests/field/node_modules console/node_modules console/test-results \
	  trouter/http/console
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find trouter pipeline/src -name '*.so' -delete

help: ## list the chores (GROUP=tests to describe those of a group)
	@make/help.sh $(GROUP)
