# Hostile bytes on the fuzz targets; inputs that fail are stored among the seeds.
.PHONY: fuzz-guided fuzz-image fuzz-packages fuzz-properties

# With atheris, which keeps inputs that reach new code. For it clang compiles the hot modules a second time, with counters.
COUNTED := build/counted
fuzz-guided: $(VENV)/fuzz $(COUNTED)/built ## the same as fuzz with atheris, guided by coverage inside the compiled modules
	$(PY) fuzz/run.py $(TARGET) --guided --counted $(COUNTED)/lib --seconds $(or $(SECONDS),60) $(ARGS)

# Builds fuzzers by .clusterfuzzlite/build.sh, with clang of this machine and a `compile_python_fuzzer` as that of the image.
fuzz-image: $(VENV)/fuzz ## build fuzzers as ClusterFuzzLite and OSS-Fuzz do, without their image (TARGET to choose)
	$(call needs,clang)
	PYTHON=$(abspath $(PY)) fuzz/parts/image.sh $(TARGET)

$(COUNTED)/built: $(HOT) | $(VENV)/locked
	$(call needs,clang)
	export CC=clang CFLAGS='-O1 -fsanitize=fuzzer-no-link'; into='--build-lib $(abspath $(COUNTED))/lib --build-base $(abspath $(COUNTED))'; \
	  $(PY) setup.py --quiet build $$into && cd pipeline && $(abspath $(PY)) setup.py --quiet build $$into-pipeline
	@touch $@

# atheris, for tests too: without it those that need it are skipped.
fuzz-packages: venv
	@$(MAKE) --no-print-directory $(VENV)/fuzz || echo "make: tests under atheris are skipped, for the reason above" >&2
$(VENV)/fuzz: fuzz/requirements.lock | $(VENV)/locked
	$(PY) -m pip install --quiet --disable-pip-version-check -r fuzz/requirements.lock
	@touch $@

fuzz-properties: venv build ## run the property tests on hostile input with many examples
	$(PY) -m pytest -m fuzz --hypothesis-profile=deep $(ARGS)
