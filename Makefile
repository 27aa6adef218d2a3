# `make demo` and `make test` are the whole set-up: they need Python 3.11, pip and make, nothing else.

PYTHON ?= python3
PIP    := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test quick slow test-lowest lint types docs linkcheck tutorials release-check release fuzz chaos bench bench-speed bench-row \
        bench-memory bench-statistics clean

# One environment; a stamp for what has been put into it. The pins are the versions everything was tested with.
.venv/created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dr3 needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/user: .venv/created requirements.txt pyproject.toml
	.venv/bin/python $(PIP) --constraint requirements.txt --editable '.[envs,plots]'
	touch $@

.venv/dev: .venv/created requirements.txt pyproject.toml
	.venv/bin/python $(PIP) --constraint requirements.txt --editable '.[dev]'
	touch $@ .venv/user

demo: .venv/user
	.venv/bin/dr3 demo

# The quick tests first, so that a mistake shows early. The slow ones take over what those have compiled.
COMPILED := $(CURDIR)/build/compiled

test: lint types
	rm -rf $(COMPILED) # a killed process leaves torn files
	JAX_COMPILATION_CACHE_DIR=$(COMPILED) $(MAKE) quick
	JAX_COMPILATION_CACHE_DIR=$(COMPILED) $(MAKE) slow
	rm -rf $(COMPILED)

lint: .venv/dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports --no-logo

types: .venv/dev
	.venv/bin/ty check

# Each worker takes a stretch of files of its own, so that what one file's tests compile is compiled once.
PYTEST := .venv/bin/pytest -n auto --dist worksteal --durations 20

# What one runs while writing: under two minutes on two cores.
quick: .venv/dev $(if $(TORCH),.venv/torch)
	$(PYTEST) -m 'not slow'

slow: .venv/dev $(if $(TORCH),.venv/torch)
	$(PYTEST) -m slow

# The site, in build/site: every warning is an error, links and anchors between pages among them. Nothing is trained for it.
.venv/docs: .venv/created requirements.txt pyproject.toml
	.venv/bin/python $(PIP) --constraint requirements.txt --editable '.[docs]'
	touch $@

docs: .venv/docs
	rm -rf build/site # pages that are no more would stay
	.venv/bin/sphinx-build -W --keep-going -q -b html -d build/doctrees docs build/site
	.venv/bin/python docs/site_pages/links.py build/site
	@echo "The site is in build/site/index.html."

# Also the links that lead out of the site, which needs the network.
linkcheck: .venv/docs
	.venv/bin/sphinx-build -W --keep-going -q -b linkcheck docs build/linkcheck

# Executes docs/tutorials into pages with what they print and draw, which `make docs` then shows. Each takes well under a minute.
tutorials: .venv/docs .venv/dev .venv/torch
	.venv/bin/python docs/site_pages/tutorials.py $(ONLY)

# The wheel and the sdist, checked, installed into an empty environment, and tried there; into dist.
.venv/release: .venv/created requirements.txt
	.venv/bin/python $(PIP) --constraint requirements.txt build twine
	touch $@

release-check: .venv/release
	.venv/bin/python tools/release.py

# The same of a tag, with checksums: make release TAG=v0.2.0. It uploads nothing.
release: .venv/release
	.venv/bin/python tools/release.py --tag $(TAG)

# Damaged files of every format, 2,000 of each; `make test` tries 25. FIRST=2000 goes on where one has ended.
fuzz: .venv/dev
	DR3_FUZZ=2000 DR3_FUZZ_FIRST=$(or $(FIRST),0) .venv/bin/pytest -n auto tests/contracts/test_fuzz.py

# Kills, damages and full disks at random over the commands: docs/reliability.md. MINUTES=60 SEED=7 make it longer, or the same again.
chaos: .venv/dev
	.venv/bin/python tests/chaos.py --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

# `make test TORCH=1` tests the integrations too. Without their dependencies: d3rlpy pins another Gymnasium than ours.
.venv/torch: .venv/dev requirements-torch.txt
	.venv/bin/python $(PIP) --no-deps --requirement requirements-torch.txt
	touch $@

# All tests with the oldest versions that the metadata allow. The other extras need not be there: their tests are skipped.
.venv-lowest/ready: requirements-lowest.txt pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python $(PIP) --constraint requirements-lowest.txt --editable '.[envs,plots,hdf5]' hypothesis pytest pytest-xdist
	touch $@

test-lowest: .venv-lowest/ready
	.venv-lowest/bin/pytest -n auto --dist worksteal

# Peers live in environments of their own: their pins do not agree with ours, nor with each other.
.venv-peers/ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(PIP) -r benchmarks/peers/requirements.txt
	touch $@

.venv-rliable/ready: benchmarks/statistics/requirements.txt
	$(PYTHON) -m venv .venv-rliable
	.venv-rliable/bin/python $(PIP) -r benchmarks/statistics/requirements.txt
	touch $@

bench: bench-speed bench-row bench-memory bench-statistics

bench-speed: .venv/user .venv-peers/ready
	.venv/bin/python benchmarks/run.py --peer .venv-peers/bin/python

# One decision of an exported policy, and of runs.policy.
bench-row: .venv/dev
	.venv/bin/python benchmarks/one_row.py

# 20 million rows, about half an hour and 15 GB of disk; BENCH_ROWS=2000000 for a tenth of it.
bench-memory: .venv/dev
	.venv/bin/python benchmarks/beyond_memory.py --rows $(or $(BENCH_ROWS),20000000)

bench-statistics: .venv/user .venv-rliable/ready
	.venv/bin/python benchmarks/statistics/run.py --peer .venv-rliable/bin/python

clean:
	rm -rf .venv .venv-lowest .venv-peers .venv-rliable .pytest_cache .ruff_cache build dist
