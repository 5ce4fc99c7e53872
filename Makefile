# Everything is set up in .venv by the first target that needs it. PYTHON: which interpreter to build it with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Kafka's own jars, which Maven fetches, the disks that real brokers left (tests/corpus), and which trials `make test-all`
# repeats.
JARS ?= build/kafka-jars
DISKS ?= build/corpus/disks
TRIALS := value-bit,last-batch-cut,zeros-clean,offset-bit,time-index-offset,txn-entry-lost,value-bit-above-recovery-point

ON_CORE := tests/forensics/test_carve.py tests/format/test_gather.py tests/format/test_head_columns.py tests/test_engine.py tests/test_inspect.py tests/test_jobs.py tests/test_record_lines.py tests/test_rows.py tests/log
SALVAGED := value-bit,crc-magic-0,overlap-stale,data-outside-transaction,marker-lost,clean-mark-left,two-replicas,two-swapped

MAVENS_PYTHON := build/carried-python/org/bytedeco/cpython/linux-x86_64/bin/python3.11
CARRIED_PYTHON ?= $(MAVENS_PYTHON)
CARRIED := dist/kdump-linux-x86_64

CORE := $(shell grep -rl '^\# cython:' --include='*.py' kdump)
DEMO := fixtures/clean-1/payments-0/00000000000000000000.log

# The damaged disk of a page of docs/incidents, in build/incidents: make incident NAME=torn-tail
incident: $(VENV)/.ready
	@$(BIN)/python -m tools.incident $(NAME)

.PHONY: demo incident test test-all lint docs site trials bench wheel pex clean

# Also when a module of the core has changed, for what runs is what was compiled.
$(VENV)/.ready: pyproject.toml setup.py $(CORE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# The three renderings of a real segment: transactions, as a 4.3.1 broker wrote them.
demo: $(VENV)/.ready
	@echo '$$ kdump inspect $(DEMO) --limit 12'
	@$(BIN)/kdump inspect $(DEMO) --limit 12
	@echo
	@echo '$$ kdump inspect $(DEMO) --json --records --offset 2..3'
	@$(BIN)/kdump inspect $(DEMO) --json --records --offset 2..3
	@echo
	@echo '$$ kdump inspect $(DEMO) --hex --offset 2'
	@$(BIN)/kdump inspect $(DEMO) --hex --offset 2

# All of it with the compiled core; what stands on the core once more, with the same files as plain Python.
test: lint
	KDUMP_ENGINE=compiled $(BIN)/python -m pytest -n 2
	KDUMP_ENGINE=plain $(BIN)/python -m pytest -n 2 $(ON_CORE)

# The rest as plain Python, and what needs Chromium, Maven and a real broker: some trials, held against docs/broker-trials.json.
test-all: test $(JARS) $(DISKS) pex
	KDUMP_CARRIED=$(abspath $(CARRIED)) $(BIN)/python -m pytest -m carried tests/test_single_file.py
	$(BIN)/python -m pytest -n 2 -m 'every_disk or cluster or browser'
	$(BIN)/python -m pytest -m site
	KDUMP_JARS=$(abspath $(JARS)) $(BIN)/python -m pytest -m jars
	KDUMP_ENGINE=plain $(BIN)/python -m pytest -n 2 $(addprefix --ignore=,$(ON_CORE))
	$(BIN)/python -m tools.broker_trials $(JARS) $(DISKS) --compare --only $(TRIALS)
	$(BIN)/python -m tools.reindex_trials $(JARS) $(DISKS) --compare
	$(BIN)/python -m tools.salvage_trials $(JARS) $(DISKS) --compare --only $(SALVAGED)

$(JARS):
	mvn -q -B -f tools/kafka-jars.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(JARS))

$(DISKS): tests/corpus/disks.tar.zst tests/corpus/oracle.tar.zst | $(VENV)/.ready
	$(BIN)/python -m tools.corpus
	@touch $@

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Rewrites what is made from the code: references, manual pages, what shells complete; the outputs in docs/ and README.md;
# the pictures.
docs: $(VENV)/.ready
	$(BIN)/python tools/json_reference.py > docs/json.md
	$(BIN)/python tools/findings_reference.py > docs/findings.md
	$(BIN)/python -m tools.cli_reference > docs/cli.md
	$(BIN)/python -m tools.api_reference > docs/api-reference.md
	$(BIN)/python -m tools.format_reference
	$(BIN)/python -m tools.man_pages
	$(BIN)/python -m tools.completion_words
	$(BIN)/python -m tools.spark_reference
	$(BIN)/python tools/architecture.py > docs/architecture.svg
	KDUMP_REWRITE=1 $(BIN)/python -m pytest -q tests/test_docs.py
	$(BIN)/python -m tools.browse_capture
	-$(BIN)/python -m tools.report_capture
	$(BIN)/python -m tools.capture

# The documentation as a site, in build/site: open build/site/index.html. It needs no network, neither here nor there.
site: $(VENV)/.ready
	$(BIN)/python -m tools.site build/site

# Real brokers on damaged disks: what docs/findings.md quotes. See tools/broker_trials.py.
trials: $(VENV)/.ready $(JARS) $(DISKS)
	$(BIN)/python -m tools.broker_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.restart_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.salvage_trials $(JARS) $(DISKS)

# A wheel for the interpreter of .venv, in dist/; those of all are built by cibuildwheel (see pyproject.toml).
wheel: $(VENV)/.ready
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# One file that runs on any x86-64 Linux (docs/carry.md). CARRIED_PYTHON: the interpreter that it carries, else Maven's.
pex: $(VENV)/.ready $(CARRIED_PYTHON)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang==0.15.2
	nice $(BIN)/python -m tools.carry.build $(CARRIED_PYTHON) $(CARRIED)

$(MAVENS_PYTHON): tools/carry/python.xml
	mvn -q -B -f $< dependency:unpack-dependencies -DoutputDirectory=$(abspath build/carried-python) -DmarkersDirectory=$(abspath build/carried-python/markers)
	chmod +x $@
	@touch $@

# The table of docs/performance.md. JARS: a directory of Kafka's jars, else Maven fetches them (without Java, kdump alone).
# BENCH: more options, as --runs 5 or --only gzip; `python -m bench --help` tells.
bench: $(VENV)/.ready
	$(BIN)/python -m bench --jars '$(wildcard $(JARS))' $(BENCH)

clean:
	rm -rf $(VENV) build dist $$(find kdump -name "*.so") *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
