# Measurements and the demonstration of the pipeline.
.PHONY: bench-pipeline pipeline-demo bench-system instructions

bench-pipeline: venv build $(VENV)/bench ## measure the pipeline against the same in python-qpid-proton (ARGS for its options)
	$(PY) -m pipeline.bench $(ARGS)

$(VENV)/bench: bench/requirements.lock | $(VENV)/locked
	$(PY) -m pip install --quiet --disable-pip-version-check -r bench/requirements.lock
	@touch $@

# A router, its traffic, every job on Spark, and a report; ARGS names a folder other than build/pipeline-demo.
pipeline-demo: venv build ## run the data pipeline on Spark from end to end, on traffic with an attack and a fraud
	$(call needs,java)
	$(PY) examples/pipeline/demo.py $(or $(ARGS),build/pipeline-demo)

bench-system:
	$(call needs,haproxy rabbitmq)
	$(call wants,proton-examples)
	@$(MAKE) --no-print-directory rabbitmq4 || echo "make: RabbitMQ 4 is not measured, for the reason above" >&2

# Beyond a tenth more of them tests/cost/test_instructions.py fails.
instructions: venv build ## count the instructions of a message by valgrind, and write them down in tests/cost/instructions.json
	$(call needs,valgrind)
	$(PY) -m tests.cost.counting
