# `make demo` and `make test` are the whole set-up: they need Python 3.11, pip and make, nothing else.

PYTHON ?= python3
PIP    := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint types unit bench bench-speed bench-statistics clean

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

test: lint types unit

lint: .venv/dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: .venv/dev
	.venv/bin/ty check

unit: .venv/dev $(if $(TORCH),.venv/torch)
	.venv/bin/pytest -n auto

# `make test TORCH=1` tests the integrations too. Without their dependencies: d3rlpy pins another Gymnasium than ours.
.venv/torch: .venv/dev requirements-torch.txt
	.venv/bin/python $(PIP) --no-deps --requirement requirements-torch.txt
	touch $@

# Peers live in environments of their own: their pins do not agree with ours, nor with each other.
.venv-peers/ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(PIP) -r benchmarks/peers/requirements.txt
	touch $@

.venv-rliable/ready: benchmarks/statistics/requirements.txt
	$(PYTHON) -m venv .venv-rliable
	.venv-rliable/bin/python $(PIP) -r benchmarks/statistics/requirements.txt
	touch $@

bench: bench-speed bench-statistics

bench-speed: .venv/user .venv-peers/ready
	.venv/bin/python benchmarks/run.py --peer .venv-peers/bin/python

bench-statistics: .venv/user .venv-rliable/ready
	.venv/bin/python benchmarks/statistics/run.py --peer .venv-rliable/bin/python

clean:
	rm -rf .venv .venv-peers .venv-rliable .pytest_cache .ruff_cache build dist
