# Two commands for a newcomer: make demo, make test. Everything is installed below this folder.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests start hundreds of processes, each of which would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE
# Inside the environment, so that they go with it.
STAMPS := $(VENV)/.stamps
# What tests run on: the released build's core where there is one, or where another goal of this
# call makes it, else the tests' own build.
TEST_GOALS := test ready check check-pg test-long extension test-extension lint types unit rust mutants servers fuzz-twin
TEST_CORE := $(STAMPS)/core$(if $(wildcard $(STAMPS)/core)$(filter-out $(TEST_GOALS),$(MAKECMDGOALS)),,-checked)
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
PYTEST := $(BIN)/python -m pytest
TEST_SERVERS = PGHEADROOM_TEST_SERVERS="$$(ls -d .servers/*/package 2>/dev/null | paste -sd:)" \
	PGHEADROOM_LONG_TEST_SERVERS="$$(ls -d .servers/debian/1[789]/usr/lib/postgresql/* 2>/dev/null | paste -sd:)"
# Whole files each, the longest first (tests/conftest.py). Servers' tests are three at a time: two
# left a third of two cores idle (420 s, three take 323).
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder
SERVER_TESTS := tests/cli tests/postgres tests/report tests/extension

.PHONY: help setup demo docs site test ready test-long check check-pg lint types unit rust mutants golden record fuzz coverage fuzz-inputs fuzz-profiles fuzz-twin fuzz-wal bench bench-advice bench-extension bench-wal public-schemas wal-truth doctor-truth accuracy wheel extension test-extension lint-release pgo changelog servers lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(STAMPS)/core ## Virtual environment, pinned dependencies, compiled core (quick when done)

# --no-compile: modules are compiled when they are imported first, and most of them never are.
$(STAMPS)/venv: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, found " + sys.version.split()[0] + ": make PYTHON=/path/to/python3 setup")'
	@command -v cargo >/dev/null || { echo "cargo is needed (https://rustup.rs)" >&2; exit 1; }
	@echo "installing the pinned dependencies into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement requirements.lock
	@mkdir -p $(STAMPS) && touch $@

FORCE:

# Where the wheel's libclang is, for cargo; a LIBCLANG_PATH that is set goes before it. And how often
# branches are taken, for rustc.
# Asked for each time, and written where it is another: a compiler may be.
.cargo/config.toml: $(STAMPS)/venv FORCE
	@$(BIN)/python tools/build/pgheadroom_build.py

# One of the two is installed at a time.
$(STAMPS)/core: PROFILE = release
$(STAMPS)/core-checked: PROFILE = checked
$(STAMPS)/core $(STAMPS)/core-checked: $(STAMPS)/venv .cargo/config.toml pyproject.toml $(RUST_SOURCES)
	@mkdir -p $(STAMPS)
	@echo "building the core, profile $(PROFILE) (log: $(STAMPS)/build.log)"
	@rm -f $(STAMPS)/core $(STAMPS)/core-checked
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --profile $(PROFILE) --locked >$(STAMPS)/build.log 2>&1 || { cat $(STAMPS)/build.log >&2; exit 1; }
	@touch $@

demo: setup ## The main job on an embedded PostgreSQL 18; its last line is the report's path
	$(BIN)/pgheadroom demo

docs: setup ## Play the commands of README and tutorial; write down what the tutorial's print
	$(BIN)/python tools/tutorial.py

# A folder with a request.json is a record of the laboratory; other folders there are not.
site: setup ## Reports of the laboratory's records under experiments/record as a static site in build/site
	@records="$$(find experiments/record -name request.json -exec dirname {} \; | sort)"; \
	test -n "$$records" || { echo "experiments/record holds no record of the laboratory" >&2; exit 1; }; \
	mkdir -p build; mapfile -t folders <<<"$$records"; \
	$(BIN)/pgheadroom lab report "$${folders[@]}" --site build/site

test: ready check check-pg ## Everything that needs no second machine

# Servers are fetched while the core is compiled: the network is idle then.
ready: $(STAMPS)/venv
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(TEST_CORE) servers

# Two at a time: mypy and linkers leave a core idle. Each target's output comes when it is done.
check: $(TEST_CORE) ## Format, lint, types, unit tests; no server
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint types rust unit

check-pg: $(TEST_CORE) servers ## Tests against real servers: 18 and 16 always, others where installed
	$(TEST_SERVERS) $(PYTEST) -m "not long" -n 3 $(SIDE_BY_SIDE) --durations=10 $(SERVER_TESTS)

# One at a time: a test that plays at a rate for half a minute wants the machine to itself.
# LONG is what generated cases and the core's tests ask (tests/lengths.py, tests/common/mod.rs). Of
# the mutants one shows that the way works.
test-long: export LONG = 1
test-long: export PROPTEST_RNG_SEED = $(or $(SEED),1)
test-long: $(TEST_CORE) servers ## What make test has no time for: runs of minutes, further servers, all generated cases
	env --unset=MAKEFLAGS --unset=MFLAGS MUTATIONS=1000000 CASES=200 cargo test --profile checked --locked --quiet --workspace
	$(BIN)/python tools/mutants.py run prune-below-tenth
	$(PYTEST) -m "not long" $(wildcard tests/property)
	$(TEST_SERVERS) $(PYTEST) -m long --durations=10 tests/unit $(wildcard tests/property) $(SERVER_TESTS)

lint: $(TEST_CORE) ## ruff and rustfmt, clippy with warnings as errors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --profile checked --all-targets --locked --quiet -- -D warnings

types: $(TEST_CORE) ## mypy strict, and the stub of the core against the core
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest pgheadroom._core

# One profile for the core that tests run on, for tests and for clippy, so that each crate is
# compiled once; what mutants depend on is of it too. Properties draw the same examples in every
# run, so that a failure is one that comes again; other ones by `make rust SEED=2`. Both flags name
# files that only calls of make inherit.
rust: export PROPTEST_RNG_SEED = $(or $(SEED),1)
rust: $(TEST_CORE) ## Tests of the core; SEED=1
	env --unset=MAKEFLAGS --unset=MFLAGS cargo test --profile checked --locked --quiet --workspace

mutants: $(TEST_CORE) ## Break each rule of the twin in turn: its scenarios have to fail (an hour; resumes)
	$(BIN)/python tools/mutants.py run

unit: $(TEST_CORE) ## Python tests without a server
	$(PYTEST) -m "not long" -n 2 $(SIDE_BY_SIDE) --durations=10 tests/unit $(wildcard tests/property)

fuzz-inputs: setup ## Damaged files through the real commands, whole (some minutes); SEED=1 COUNT=40
	PYTHONPATH=tools $(BIN)/python tools/fuzz_inputs.py --seed $(or $(SEED),1) --count $(or $(COUNT),40)

fuzz-twin: ## Random whole profiles through the twin, none a panic; SEED=1 COUNT=20000
	SEED=$(or $(SEED),1) PROFILES=$(or $(COUNT),20000) cargo test --profile checked --locked --package pgheadroom-twin --test twin no_profile_panics

fuzz-profiles: ## Profiles by libFuzzer, led by coverage, none a panic; FOR=300 (seconds)
	fuzz/run profiles $(or $(FOR),300)

fuzz-wal: ## The log's reader under libFuzzer, led by coverage, none a panic; MINUTES=30 SEGMENTS=folder
	tools/fuzz-wal $(or $(MINUTES),30) $(SEGMENTS)

fuzz: setup ## Random profiles through both players, to the unit; SEED=1 COUNT=200 CLIENTS=1 MINUTES=60
	PYTHONPATH=tools $(BIN)/python -m fuzz_profiles --seed $(or $(SEED),1) --count $(or $(COUNT),200) --clients $(or $(CLIENTS),1) $(if $(MINUTES),--minutes $(MINUTES)) --versions $${VERSIONS:-18,16}

# Wants the machine to itself, or a load that is told beside the figures.
coverage: setup ## How often intervals of 90 % hold, with the server's run and without; SEED=1 COUNT=20
	for clients in 2 4 8; do \
		PYTHONPATH=tools $(BIN)/python -m fuzz_profiles --alone --keep build/coverage --seed $(or $(SEED),1) --count $(or $(COUNT),20) --clients $$clients --versions $${VERSIONS:-18,16,15}; \
	done

bench: setup ## Benchmarks of the core
	cargo bench --locked

accuracy: setup ## Play what docs/accuracy.md lacks on the servers at hand, and write it anew
	$(BIN)/python tools/accuracy.py

bench-advice: setup ## Regret of the advice on measured workloads: play what is missing, score, write the page
	PYTHONPATH=tools $(BIN)/python -m bench_advice

bench-extension: setup ## Placement by clustered_heap beside plain heap, on a quiet machine; build/bench-extension.md; ROWS=1000000 RUNS=3
	PYTHONPATH=tools $(BIN)/python -m bench_extension --rows $(or $(ROWS),1000000) --runs $(or $(RUNS),3)

public-schemas: setup servers ## Schemas of public applications, observed and proved; docs/public-schemas.md; CLONES=folder ONLY=names
	PYTHONPATH=tools $(BIN)/python -m public_schemas $(ONLY) $(if $(CLONES),--clones $(CLONES)) $(if $(AGAIN),--again)

bench-wal: setup ## `wal stats` beside pg_waldump on the log of a throw-away server (some minutes); FOLDER=pg_wal
	$(BIN)/python tools/bench_wal.py $(FOLDER)

wal-truth: setup servers ## The log's sums (a GB a version), images and what-if beside servers, 15 to 19; MIB=1024 TRANSACTIONS=60000
	$(TEST_SERVERS) tools/wal-truth $(or $(MIB),1024) $(or $(TRANSACTIONS),60000) $(wildcard .servers/debian/*/usr/lib/postgresql/*)

doctor-truth: export LONG = 1
doctor-truth: setup servers ## The doctor's rules on every server at hand, then on healthy ones under load (an hour); MINUTES=10 CLONES=folder
	$(TEST_SERVERS) $(PYTEST) --durations=10 tests/unit/test_doctor.py $(wildcard tests/postgres/test_doctor_*.py) tests/cli/test_cli_doctor.py
	PYTHONPATH=tools $(BIN)/python -m doctor_healthy --minutes $(or $(MINUTES),10) $(if $(CLONES),--clones $(CLONES))

record: setup servers ## What servers do in the scenarios (15, 16 and 18, and 17 where npm is installed); SERVER=19 all that its major has recorded, and what differs
	$(BIN)/python $(if $(SERVER),tools/record_anew.py $(SERVER),tools/record_scenarios.py)

servers: $(STAMPS)/venv ## Further servers for the tests: npm's 17 and 18, Debian's 17, 18 and 19
	-@tools/fetch-servers .servers
	-@PYTHONPATH=tools $(BIN)/python -m debian_servers .servers/debian

pgo: setup ## Count how often each branch of the core is taken, for the compiler (ten minutes and more; needs llvm-tools)
	$(BIN)/python tools/pgo.py

wheel: setup ## A wheel for this platform in dist/, started where there is no cargo
	rm -f dist/*.whl
	$(BIN)/maturin build --release --locked --out dist
	tools/try-wheel dist/*.whl

extension: $(TEST_CORE) servers ## The server extension for every server at hand, in build/extension; a warning fails
	$(BIN)/python tools/build_extension.py build/extension

test-extension: $(TEST_CORE) servers ## The extension on every server at hand: all of its tests (some minutes)
	$(TEST_SERVERS) $(PYTEST) -n 2 $(SIDE_BY_SIDE) --durations=10 tests/extension

lint-release: ## What only GitHub and Docker run, and shell scripts, by pinned linters
	tools/lint-release

changelog: setup ## The fragments of changelog.d as the newest section of CHANGELOG.md, for a release
	$(BIN)/towncrier build --yes --version "$$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)"

lock: ## Resolve the pinned dependencies anew (needs pip-tools)
	$(BIN)/python -m piptools compile --quiet --extra dev --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --allow-unsafe --output-file requirements.lock pyproject.toml
	cargo update --workspace

clean: ## Remove what make has made, apart from records
	rm -rf $(VENV) .cargo target dist build .servers .mypy_cache .ruff_cache .pytest_cache .hypothesis python/pgheadroom/_core*.so
