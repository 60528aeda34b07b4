# Tests by what they take.
.PHONY: test-whole test-quick-compiled test-quick-pure test-one-router test-in-memory test-twins test-spark field-tests field-clients field-page \
  test-tables test-several test-ways-in test-processes test-commands test-from-files test-field test-pipeline attack test-all test-packaging \
  test-compiled test-pure test-asan test-spark40 test-without-cyrus test-trio test-workers test-brokers rabbitmq4 interop-system planted chaos soak \
  walk-pages

# Two jobs at once for each core, and one more for those that wait. More at once would end no sooner, because most of the time is that
# of processors (starts of routers, Spark, the browser), but each would take longer, and what counts real seconds (a peer that is given
# up as silent, a worker of Spark that must connect) would fail on a slow machine. The longest come first, and none is so long that it
# goes on alone. On the compiled twin: the tests through one router, the parts below, and the tests in memory. On the interpreted twin:
# those of Spark, and the tests in memory of modules with two twins; of the pipeline those that reach such a module
# (tests/house/test_one_twin.py). Beside them the web console, in a browser. The tests left out take long, or use no module with two
# twins; `make test-all` runs all tests on both.
ONE_ROUTER := tests/e2e
tables     := pipeline/tests
several    := tests/network
ways-in    := $(addprefix tests/,http interop management tls)
commands   := $(addprefix tests/,cli kubernetes load packaging tools)
from-files := $(addprefix tests/,chaos dropin plugins soak)
processes  := $(addprefix tests/,testing workers)
PARTS      := tables several ways-in processes commands from-files
TWO_TWINS  := $(addprefix tests/,client core engine fuzz mesh net sim testing wire) pipeline/tests
SHORT      := -m "not spark and not pipeline_long and not long"
AT_ONCE    := $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 2) + 1)))
# The Debian packages that they use, by the names of make/system.sh.
TESTED     := python compiler headers pkg-config sasl-headers openssl-headers npm curl ip sasl openssl java kerberos rabbitmq unshare \
  mmdebstrap prometheus haproxy cxx proton-c proton-cxx proton-examples proton-python valgrind spin $(if $(ARGS),,chromium)
IN_BROWSER := $(if $(ARGS),,$$(make/system.sh has npm chromium && echo console-tests))
test-whole: venv build console fuzz-packages interop-system field-clients
	@mkdir -p build && rm -f build/test-*.log
	@$(MAKE) --no-print-directory --keep-going --jobs=$(AT_ONCE) test-one-router $(if $(ARGS),,test-spark) test-twins $(if $(ARGS),,test-in-memory field-tests $(PARTS:%=test-%)) $(IN_BROWSER); \
	  status=$$?; cat build/test-*.log; exit $$status

# While you change the code: the rooms without I/O, both twins beside each other, about half a minute each of processor time.
# It takes Python, a C compiler, and four packages of pip beside the router's; python-qpid-proton, Spark and all else stay out.
QUICK := $(wildcard $(addprefix tests/,wire engine core mesh policy security admission))
QUICKLY = -m pytest --quiet --no-header --durations=0 --durations-min=5 --hypothesis-profile=brief --ignore-glob='*_against_proton.py' $(or $(ARGS),$(QUICK))
test-quick-compiled:
	$(PY) $(QUICKLY)

test-quick-pure:
	TROUTER_PURE=1 $(PY) $(QUICKLY)

test-one-router:
	$(PY) -m trouter --version | grep -w compiled
	$(PY) -m pytest $(or $(ARGS),$(SHORT) $(ONE_ROUTER))

$(PARTS:%=test-%): test-%:
	$(PY) -m pytest $(SHORT) $($*) >build/test-$*.log 2>&1

test-in-memory:
	$(PY) -m pytest $(SHORT) tests $(addprefix --ignore=,tests/field $(ONE_ROUTER) $(foreach part,$(PARTS),$($(part)))) >build/test-in-memory.log 2>&1

test-twins:
	TROUTER_PURE=1 $(PY) -m pytest $(or $(ARGS),--hypothesis-profile=brief -m "not spark and not one_twin and not slow and not pipeline_long and not long" $(TWO_TWINS)) >build/test-twins.log 2>&1

# Jobs with their Spark take the most processor time of all, so they are a part of their own.
test-spark:
	TROUTER_PURE=1 $(PY) -m pytest --hypothesis-profile=brief -m "spark and not slow and not pipeline_long and not long" pipeline/tests >build/test-spark.log 2>&1

# Clients of other projects, in fixed versions: rhea, node-amqp10, Azure's SDK, Proton in three languages, and others.
test-field: venv build field-clients ## test with clients of other projects, on hosts with addresses of their own (ARGS='-k rhea' to choose)
	$(PY) -m pytest tests/field $(ARGS)

# Without prerequisites, so that parts of `make test` begin beside each other.
field-tests:
	@mkdir -p build
	$(PY) -m pytest $(SHORT) tests/field >build/test-field.log 2>&1

field-page: venv build field-clients ## the same, and write docs/field.md of its results
	$(PY) -m pytest tests/field || echo "make: some clients failed; the page says which" >&2
	$(PY) -m tests.field.page

# Each of these is optional: tests of a client that is missing are skipped. The examples of Proton are compiled as Debian has them.
FIELD_NODE := tests/field/node_modules/.package-lock.json
EXAMPLES   := /usr/share/proton/examples
field-clients: venv node-system
	$(call wants,proton-c proton-cxx proton-examples proton-python cxx ip)
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
test-pipeline: venv build interop-system ## run the tests of the pipeline, without those of minutes (ARGS='pipeline/tests/spool' to choose)
	$(PY) -m pytest $(or $(ARGS),-m "not pipeline_long and not long" pipeline/tests)

# The cases of docs/attacked.md, compiled: the tests with the mark `attack`. `make test` has them too, in the parts where they stand.
# Only modules that contain the mark are collected: to collect all takes longer than to run these.
ATTACKED = $(shell grep -rl --include='test_*.py' 'mark\.attack\b' tests pipeline/tests)
attack: venv build ## test the cases of the attacks on the router, in docs/attacked.md
	$(PY) -m pytest -m attack $(or $(ARGS),$(ATTACKED))

test-all: test-compiled test-pure test-without-cyrus test-trio test-spark40 test-packaging ## every test on both twins, including those of minutes

# Wheel, dashboards and alerts, and the chart with its pods as processes; they need Helm and the other tools for packages.
test-packaging: venv build console packaging-system ## test wheel, chart, dashboards and alerts
	$(PY) -m pytest $(or $(ARGS),tests/packaging tests/kubernetes)

test-compiled: venv build interop-system ## every test on the compiled twin
	$(PY) -m trouter --version | grep -w compiled
	$(PY) -m pytest $(ARGS)

test-pure: venv interop-system ## every test on the interpreted twin
	TROUTER_PURE=1 $(PY) -m pytest $(ARGS)

# The rooms below the sockets with AddressSanitizer of gcc. For it the hot modules are compiled once more, without reuse of memory,
# because what is used after it was freed is noticed only if it was. Python's own allocator is off for the same reason; what Python
# keeps until its end is no leak. The path of a message is watched on the interpreted twin, so it is left out.
ASAN       := build/asan
ASAN_TESTS := $(addprefix tests/,core engine wire)
ASAN_PATH  := $(ASAN)/lib . plugins pipeline/src
test-asan: $(ASAN)/built ## test core, engine and wire with AddressSanitizer (ARGS='tests/core -k streams' to choose)
	TROUTER_REUSE=0 PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$$(gcc -print-file-name=libasan.so) \
	  $(PY) -m pytest -o pythonpath="$(ASAN_PATH)" --hypothesis-profile=brief $(or $(ARGS),-m "not slow and not long" --ignore=tests/core/test_path_of_a_message.py $(ASAN_TESTS))

$(ASAN)/built: $(HOT) | $(VENV)/locked compiler
	TROUTER_REUSE=0 CC=gcc CFLAGS='-O1 -g1 -fsanitize=address -fno-omit-frame-pointer' \
	  $(PY) setup.py --quiet build --build-lib $(abspath $(ASAN))/lib --build-base $(abspath $(ASAN))
	@touch $@

# The oldest Spark that the source, the sink and the jobs with a state run on; everything else as it is locked.
SPARK40 := $(addprefix pipeline/tests/test_,source.py source_reading.py sink.py secured.py audit.py fraud.py latency.py topology.py delta_reader.py)
test-spark40: build/spark40/ready interop-system ## test the amqp source and sink, and the jobs, on the oldest supported Spark
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
test-without-cyrus: venv build interop-system build/without-cyrus/ready ## test with a python-qpid-proton compiled without Cyrus SASL
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
test-trio: venv build ## test sockets and connections with the oldest trio that is supported and with the newest (TRIO=0.30 for another)
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
test-workers: venv build interop-system ## test policy, tenants, routes, auto links, management and networks with two workers in each router
	TROUTER_TEST_WORKERS=2 $(PY) -m pytest $(or $(ARGS),$(WORKERS))

# Everything with a broker of others: RabbitMQ of Debian 12 and of Debian 13, with the ledgers of minutes.
BROKERS := $(addprefix tests/network/test_,rabbitmq.py rabbitmq4.py broker_pages.py transactions.py bridge_for_long.py rabbitmq_for_long.py)
test-brokers: venv build interop-system rabbitmq4 ## test with RabbitMQ 3.10 and 4.0, also for minutes: brokers and routers are killed
	$(PY) -m pytest $(or $(ARGS),$(BROKERS))

# RabbitMQ 4 with its Erlang, of Debian 13: unpacked, not installed; its nodes run with this folder as the root.
rabbitmq4: build/rabbitmq4/ready
build/rabbitmq4/ready: | system
	$(call needs,unshare mmdebstrap)
	rm -rf build/rabbitmq4 && mkdir -p build
	mmdebstrap --quiet --variant=extract --aptopt='APT::Sandbox::User "root"' \
	  --include=rabbitmq-server,base-files,dash,coreutils,sed,grep,mawk,hostname trixie build/rabbitmq4 $$(make/system.sh mirror)
	echo '127.0.0.1 localhost' >build/rabbitmq4/etc/hosts
	@touch $@

planted: venv ## plant bugs one at a time, and report what detects each (ARGS='--page window lock-out')
	$(PY) -m tests.planted.run $(ARGS)

# Routers that are killed, cut off, stopped, replaced or out of room, under load; the ledger is printed at the end.
chaos: venv build interop-system ## cause faults in networks of real routers, with a ledger of every message (ARGS='--count 1000 partition')
	$(PY) -m tests.chaos.run $(ARGS)

# Long traffic and churn; the report in build/soak shows, with plots, the objects and memory left over in the routers.
soak: venv build ## run traffic and churn for half an hour; objects and memory must return (ARGS='--minutes 120')
	$(PY) -m tests.soak.run $(ARGS)

# The commands of the pages whose walks take minutes, as printed.
WALKS := $(addprefix pipeline/tests/test_,attacks_page.py changes_page.py cluster_page.py)
walk-pages: venv build ## type the commands of pages that take minutes: attacks and frauds, changes, a standalone cluster of Spark
	$(PY) -m pytest $(or $(ARGS),$(WALKS))

# Each is optional: tests of a program that is missing are skipped.
interop-system: node-system
	$(call wants,curl sasl kerberos openssl ip java rabbitmq unshare mmdebstrap prometheus haproxy)
	@$(UNPACK_RABBITMQ4) || echo "make: tests with RabbitMQ 4 are skipped, for the reason above" >&2
ifneq ($(wildcard tests/interop/rhea/package-lock.json),)
	@if command -v npm >/dev/null 2>&1 && { [ ! -e $(RHEA) ] || [ tests/interop/rhea/package-lock.json -nt $(RHEA) ]; }; then \
	  cd tests/interop/rhea && npm ci --silent --no-audit --no-fund; fi
endif
RHEA := tests/interop/rhea/node_modules/.package-lock.json
# With SYSTEM=no it is used where it is there, and not unpacked.
UNPACK_RABBITMQ4 := if [ $(SYSTEM) != no ]; then $(MAKE) --no-print-directory rabbitmq4; fi
