# Everything runs in .venv, made from the Python named by PYTHON (3.11 or newer).
PYTHON ?= python3
# Each further process imports, collects and prepares everything again: eight seconds of processor time.
JOBS ?= 2
VENV := .venv
STAMP := $(VENV)/.made-from-pyproject

export JOBS

.PHONY: help setup quick test nightly demo agents bench bench-peers torture wheel

help:
	@echo 'make setup    make .venv and install idumb and its tools into it'
	@echo 'make demo     watch a plan run, fail, resume and roll back in a throw-away repository'
	@echo 'make quick    format, lint, types, layers, own plan and the unit tests, in less than a minute'
	@echo 'make test     the same with all tests of a push, and the wheel in a clean venv'
	@echo 'make nightly  all samples of the fault programmes, tests of the test tools, real toolchains'
	@echo 'make agents   install real agents and run them beside a scripted model'
	@echo 'make bench    measure idumb beside its floors'
	@echo 'make bench-peers  install the tools that users may choose instead, and measure idumb beside them'
	@echo 'make torture  long programmes: kill, interrupt and fill up, then compare bytes'
	@echo 'make wheel    build the wheel into dist/'

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "idumb needs Python 3.11 or newer as '$(PYTHON)' (it is: $$($(PYTHON) --version 2>&1)); try 'make PYTHON=python3.12'" >&2; exit 1; }
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV) \
		|| { echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu install python3-venv" >&2; exit 1; }
	@.ci/install $(VENV) --editable '.[dev]'
	@touch $@

quick: setup
	@.ci/check quick

test: setup
	@.ci/budget .ci/check all

nightly: setup
	@.ci/check nightly

demo: setup
	@$(VENV)/bin/python docs/demo/run.py

agents: setup
	@.ci/check agents

bench: setup
	@.ci/check bench $(ARGS)

# The peers are installed on request only, below .venv: they are not what idumb is made of.
bench-peers: setup
	$(VENV)/bin/python -m bench.install_peers
	@.ci/check bench --only start --only peers $(ARGS)

torture: setup
	@.ci/check torture $(ARGS)

wheel: setup
	@.ci/check wheel dist
