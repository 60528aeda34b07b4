# The environment: Python's packages in the locked versions, the compiled twin, and Debian's packages.
.PHONY: running venv c-types lock system compiler proton-system debian-packages

VENV := .venv
PY   := $(VENV)/bin/python
PIP  := $(PY) -m pip --quiet --disable-pip-version-check
HOT  := setup.py pipeline/setup.py $(shell find trouter pipeline/src -name '*.pxd' -o -name '*.py')
# $(call needs,names of make/system.sh), and `wants` for what a chore does without.
needs = @make/system.sh need $(1)
wants = @make/system.sh want $(1)
# The tests start Python thousands of times: without bytecode each start compiles the router's sources, which takes half of its time.
unexport PYTHONDONTWRITEBYTECODE

# Exactly the locked versions, from the index that pip is configured for. First the router's dependencies.
running: $(VENV)/running ## install the router's dependencies in .venv
$(VENV)/running: requirements.lock pyproject.toml setup.py pipeline/pyproject.toml pipeline/setup.py | system
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "trouter needs Python 3.11 or later; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -r requirements.lock
	@rm -rf trouter.egg-info pipeline/src/trouter_pipeline.egg-info
	TROUTER_PURE=1 $(PIP) install --no-deps --no-build-isolation -e .
	TROUTER_PURE=1 $(PIP) install --no-deps --no-build-isolation -e pipeline
	@touch $@

# Then those of development: tests, lint, types, Spark. One of the packages, python-qpid-proton, is compiled here.
venv: $(VENV)/locked ## install what development takes: tests, lint, types, Spark
	@.ci/proton $(PY) $(PROTON)
$(VENV)/locked: requirements-dev.lock $(VENV)/running | compiler proton-system
	$(PIP) install -r requirements-dev.lock
	@touch $@
PROTON = $$(grep '^python-qpid-proton==' requirements-dev.lock)

# What `make test-quick` takes, in the locked versions; `venv` has it too.
$(VENV)/quick: requirements-dev.lock $(VENV)/running
	@[ -e $(VENV)/locked ] || $(PIP) install -c requirements-dev.lock hypothesis networkx pytest pytest-trio
	@touch $@

# The compiled twin, in place; it is built if a source is newer.
$(VENV)/built: $(VENV)/running $(HOT) | compiler
	$(PY) setup.py --quiet build_ext --inplace
	cd pipeline && $(abspath $(PY)) setup.py --quiet build_ext --inplace
	@touch $@

c-types: running ## write the C types of the compiled modules from their annotations, as the build does
	$(PY) -c 'from trouter._compiling import distributions; [each.write_types() for each in distributions()]'

system:
	$(call needs,python)

compiler: system
	$(call needs,compiler headers)

# With these python-qpid-proton is the client that distributions have: it logs in by every mechanism of Cyrus SASL, and over TLS.
proton-system: system
	$(call wants,pkg-config sasl-headers openssl-headers)

debian-packages: ## install all Debian packages that `make test` uses, at once
	@make/system.sh plan $(TESTED)
	@make/system.sh want $(TESTED)

define freeze
{ sed -n '/^#/p' $(1); build/lock/bin/python -m pip freeze --all --exclude trouter --exclude trouter-pipeline --exclude pip; } > build/lock.txt && mv build/lock.txt $(1)
endef

lock: ## pin the current versions of all dependencies, to be reviewed and committed
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	TROUTER_PURE=1 build/lock/bin/python -m pip install --quiet --disable-pip-version-check . Cython 'setuptools>=77'
	$(call freeze,requirements.lock)
	TROUTER_PURE=1 build/lock/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation ./pipeline
	TROUTER_PURE=1 build/lock/bin/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	$(call freeze,requirements-dev.lock)
