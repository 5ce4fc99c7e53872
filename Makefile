# What a target needs is installed in .venv by the first that needs it. PYTHON: which interpreter to build it with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Kafka's own jars, which Maven fetches, the disks that real brokers left (tests/corpus), and which trials `make test-all`
# repeats.
JARS ?= build/kafka-jars
DISKS ?= build/corpus/disks
TRIALS := value-bit,last-batch-cut,zeros-clean,offset-bit,time-index-offset,txn-entry-lost,value-bit-above-recovery-point

# What is written for Spark from columns has no command of its own to be compared by (tests/test_twins.py has the others).
PLAIN_TOO := tests/format/test_gather.py tests/format/test_head_columns.py
# What stands on the compiled core, for its run under the sanitizers.
SANITIZED := tests/format tests/log tests/forensics/test_carve.py tests/test_record_lines.py tests/test_rows.py tests/test_twins.py
# Samples are drawn by the day in `make test-all`, which prints it; a day that failed is repeated by KDUMP_SEED=2026-11-22.
DAILY = KDUMP_SEED=$(or $(KDUMP_SEED),$(shell date +%F)) $(BIN)/python -m pytest -n 3
SALVAGED := value-bit,crc-magic-0,overlap-stale,data-outside-transaction,marker-lost,clean-mark-left,two-replicas,two-swapped

# The kind of machine that `make pex` builds for: x86_64 or aarch64. CARRIED_BUILDER: a Python of the same version that runs here.
ARCH := x86_64
MAVENS_PYTHONS := build/carried-python/org/bytedeco/cpython
MAVENS_NAME = $(patsubst linux-aarch64,linux-arm64,linux-$(1))
CARRIED_PYTHON ?= $(MAVENS_PYTHONS)/$(call MAVENS_NAME,$(ARCH))/bin/python3.11
CARRIED_BUILDER ?= $(if $(filter $(ARCH),$(shell uname -m)),$(CARRIED_PYTHON),$(MAVENS_PYTHONS)/$(call MAVENS_NAME,$(shell uname -m))/bin/python3.11)

CORE := $(shell grep -rl '^\# cython:' --include='*.py' kdump)
DEMO := fixtures/clean-1/payments-0/00000000000000000000.log

# setuptools and Cython as pyproject.toml requires them for a build; what else each group of targets needs: extras of it.
BUILDERS := 'setuptools>=77' 'Cython>=3.2.1'
TEST := avro,browse,protobuf,remote,report,test
SPARK := delta,iceberg,spark,test-spark
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
TOO_OLD := import sys; sys.version_info < (3, 10) and sys.exit("kdump needs Python 3.10 or newer, and $(PYTHON) is %d.%d: make demo PYTHON=python3.12, for example" % sys.version_info[:2])

# Hundreds of tests start a Python of their own, which would compile all that it imports each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo incident test test-all at-work sanitize lint docs site trials bench wheel pex clean
.NOTPARALLEL:

# The runtime dependencies, and what compiles the core.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c '$(TOO_OLD)'
	@echo "Installing kdump and its dependencies into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install $(BUILDERS)
	@KDUMP_COMPILE=0 $(PIP) install --no-build-isolation --editable .
	@touch $@

# kdump, ready to run; also when a module of the core has changed, for what runs is what was compiled.
$(VENV)/.ready: $(VENV)/.installed setup.py $(CORE)
	@if [ "$$KDUMP_COMPILE" = 0 ]; then find kdump -name '*.so' -delete; \
	else echo "Compiling the core (up to 15 seconds; KDUMP_COMPILE=0 skips it)"; fi
	@$(BIN)/python setup.py --quiet build_ext --inplace --build-lib build/core/lib --build-temp build/core
	@touch $@

# What tests, linters, Spark, the site and the tests in a browser need besides.
$(VENV)/.test: EXTRAS := $(TEST)
$(VENV)/.lint: EXTRAS := lint
$(VENV)/.spark: EXTRAS := $(SPARK)
$(VENV)/.docs: EXTRAS := docs
$(VENV)/.browser: EXTRAS := browser
$(addprefix $(VENV)/,.test .lint .spark .docs .browser): $(VENV)/.installed
	@echo "Installing into $(VENV): $(EXTRAS)"
	@KDUMP_COMPILE=0 $(PIP) install --no-build-isolation --editable '.[$(EXTRAS)]'
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

# The core under AddressSanitizer and UndefinedBehaviorSanitizer, built for that in build/sanitized (tools/sanitize.py).
sanitize: $(VENV)/.ready $(VENV)/.test
	$(BIN)/python tools/sanitize.py build/sanitized -q $(SANITIZED)

# The damaged disk of a page of docs/incidents, in build/incidents: make incident NAME=torn-tail
incident: $(VENV)/.ready
	@$(BIN)/python -m tools.incident $(NAME)

# All of it with the compiled core; the same files as plain Python answer alike (tests/test_twins.py). Three processes for
# two cores: some tests wait for a JVM, a server, or a clock.
test: lint $(VENV)/.test $(VENV)/.spark
	KDUMP_ENGINE=compiled $(BIN)/python -m pytest -n 3
	KDUMP_ENGINE=plain $(BIN)/python -m pytest -n 2 $(PLAIN_TOO)

# All of every sample, all of it as plain Python, and what needs Chromium, Maven, QEMU and a real broker: some trials, held
# against docs/broker-trials.json.
test-all: test $(VENV)/.docs $(VENV)/.browser $(JARS) $(DISKS) pex sanitize
	$(MAKE) pex ARCH=aarch64 CARRIED_PYTHON=$(MAVENS_PYTHONS)/linux-arm64/bin/python3.11
	$(BIN)/python -m tools.carry.emulation aarch64
	KDUMP_CARRIED=$(abspath dist/kdump-linux-x86_64) $(BIN)/python -m pytest -m carried tests/test_single_file.py
	KDUMP_CARRIED=$(abspath dist/kdump-linux-aarch64) $(BIN)/python -m pytest -m carried tests/test_single_file.py
	$(BIN)/python -m pytest -m package tests/test_package.py
	$(DAILY) -m 'every_disk or sampled or cluster or browser'
	$(BIN)/python -m pytest -m site
	KDUMP_JARS=$(abspath $(JARS)) $(BIN)/python -m pytest -m jars
	KDUMP_ENGINE=plain $(DAILY)
	$(BIN)/python -m tools.broker_trials $(JARS) $(DISKS) --compare --only $(TRIALS)
	$(BIN)/python -m tools.reindex_trials $(JARS) $(DISKS) --compare
	$(BIN)/python -m tools.salvage_trials $(JARS) $(DISKS) --compare --only $(SALVAGED)
	$(BIN)/python -m tools.at_work $(JARS) --minutes 3

# Every command over the disk of a broker that is changing it all the time.
at-work: $(VENV)/.ready $(VENV)/.test $(VENV)/.spark $(JARS)
	$(BIN)/python -m tools.at_work $(JARS) --minutes $(or $(MINUTES),3)

$(JARS):
	mvn -q -B -f tools/kafka-jars.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(JARS))

$(DISKS): tests/corpus/disks.tar.zst tests/corpus/oracle.tar.zst | $(VENV)/.ready
	$(BIN)/python -m tools.corpus
	@touch $@

# The types of the libraries are in the libraries.
lint: $(VENV)/.ready $(VENV)/.lint $(VENV)/.test $(VENV)/.spark
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Rewrites what is made from the code: references, manual pages, what shells complete; the outputs in docs/ and README.md;
# the pictures.
docs: $(VENV)/.ready $(VENV)/.test $(VENV)/.spark $(VENV)/.browser
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
site: $(VENV)/.ready $(VENV)/.docs
	$(BIN)/python -m tools.site build/site

# Real brokers on damaged disks: what docs/findings.md quotes. See tools/broker_trials.py.
trials: $(VENV)/.ready $(JARS) $(DISKS)
	$(BIN)/python -m tools.broker_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.remedy_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.restart_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.salvage_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.coordinator_trials $(JARS)

# A wheel for the interpreter of .venv, in dist/; those of all are built by cibuildwheel (see pyproject.toml).
wheel: $(VENV)/.ready
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# One file that runs on any Linux with glibc (docs/carry.md). CARRIED_PYTHON: the interpreter that it carries, else Maven's.
pex: $(VENV)/.ready $(CARRIED_PYTHON) $(CARRIED_BUILDER)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang==0.15.2
	nice $(BIN)/python -m tools.carry.build $(CARRIED_PYTHON) dist/kdump-linux-$(ARCH) --builder $(CARRIED_BUILDER)

$(MAVENS_PYTHONS)/%/bin/python3.11: tools/carry/python.xml
	mvn -q -B -f $< dependency:unpack-dependencies -Dclassifier=$* -DoutputDirectory=$(abspath build/carried-python) -DmarkersDirectory=$(abspath build/carried-python/markers)
	chmod +x $@
	@touch $@

# The table of docs/performance.md. JARS: a directory of Kafka's jars, else Maven fetches them (without Java, kdump alone).
# BENCH: more options, as --runs 5 or --only gzip; `python -m bench --help` tells.
bench: $(VENV)/.ready
	$(BIN)/python -m bench --jars '$(wildcard $(JARS))' $(BENCH)

clean:
	rm -rf $(VENV) build dist $$(find kdump -name "*.so") *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
