# `make book`, `make check` and `make test` need Python >= 3.11, make and git, and nothing else. See README.md.

# 3.11 first: every pinned package is known to have a wheel for it. A name that is there but does not run is passed over.
usable = $(shell $(1) -c 'import sys; sys.version_info >= (3, 11) and print(sys.executable)' 2>/dev/null)
PYTHON ?= $(or $(call usable,python3.11),$(call usable,python3.12),$(call usable,python3.13),$(call usable,python3))
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check
SETUP := $(VENV)/.ready
BOOK := _build/html/.ready
# The ledgers, the picture of the house and the API pages are computed, so the book is made again when these change.
PAGES := $(shell find book chapters bilevel_core experiments results tests -type f \
  -not -path '*/.*' -not -path '*/__pycache__/*' -not -name '*.ckpt*')
EXPERIMENTS := $(subst _,-,$(patsubst experiments/%.toml,%,$(wildcard experiments/*.toml)))
JUDGED := hyper-representation hyper-cleaning # the experiments of the paper, whose claims get verdicts
SIZE ?= full
JOBS ?= 1
# One thread: the methods are timed and compared that way, and test processes share the cores.
export OMP_NUM_THREADS = 1
# Modules are compiled once, not in each of the hundred processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE
# Three for two cores: they wait for browsers, kernels and clusters.
WORKERS ?= 3

.PHONY: bench book lint check test lab lock notebooks student instructor slides pdf sphinx reproduce mutate release cover clean
.DEFAULT_GOAL := book

book: $(BOOK)
	@echo "Open $(CURDIR)/_build/html/book/index.html"

lint: $(SETUP)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check --exclude chapters --exclude book/instructor .
	$(RUN) -m ruff format --check --config line-length=80 chapters book/instructor
	$(RUN) -m mypy

check: lint
	$(RUN) -m pytest tests -p no:nbval -n 2 -m "not slow and not browser" --durations=10 --durations-min=1

# With CLUSTER=1 also the tests of sweeps on a cluster, which are skipped where Dask is not installed.
test: lint $(BOOK)
	$(if $(CLUSTER),$(PIP) --only-binary :all: -r requirements-cluster.txt)
	$(RUN) -m pytest tests chapters --nbval-lax --nbval-sanitize-with tests/nbval.cfg --nbval-cell-timeout 600 -n $(WORKERS)

# make lab ARGS="--port=9000" passes options on to jupyter-lab.
lab: $(SETUP)
	$(RUN) book/tools.py lab $(ARGS)

notebooks: $(SETUP)
	$(RUN) book/tools.py notebooks

# Chapters with stubs for solutions, the solutions of homework, and slides: each into a folder of its own in _build.
student instructor slides: $(SETUP)
	$(RUN) book/tools.py $@

# Every page and the whole book, printed by Chromium into _build/html/pdf.
pdf: $(BOOK)
	$(RUN) book/tools.py pdf

# The same pages by plain Sphinx and its newer theme: the way out, should Jupyter Book 1 end.
sphinx: $(SETUP)
	$(RUN) book/sphinx/build.py

# Runs that are stored in results/ with the same settings are not done again.
reproduce: $(SETUP)
	for name in $(EXPERIMENTS); do \
	  $(RUN) -m bilevel_book reproduce $$name --size $(SIZE) --jobs $(JOBS) && \
	  $(RUN) -m bilevel_book report $$name --size $(SIZE) || exit 1; \
	done
	for name in $(JUDGED); do $(RUN) -m bilevel_book verdicts $$name || exit 1; done

# Costs over floors and peers, growth and memory, into results/cost: for an idle machine. Peers: benchmarks/requirements.txt.
bench: $(SETUP)
	$(RUN) benchmarks/bench.py
	$(RUN) benchmarks/scaling.py
	$(RUN) benchmarks/which_tool.py
	$(RUN) benchmarks/attention.py

# Wheel and source distribution, tried in an empty environment of each Python.
# make release PYTHONS="/path/to/python3.12 ..." chooses; those that are not found are named.
release: $(SETUP)
	$(PIP) -r book/workshop/requirements.txt
	$(RUN) book/tools.py release $(PYTHONS)

# requirements.txt and all that it needs, with hashes; BUILDS="torch-...+cpu-...whl" adds other builds of torch. Try the file
# by `pip download --require-hashes -r requirements-lock.txt`, and write into its head what could not be tried.
lock: $(SETUP)
	$(PIP) -r book/workshop/requirements.txt
	$(VENV)/bin/uv pip compile requirements.txt --quiet --no-config --no-annotate --generate-hashes --only-binary :all: \
	  --python-version 3.11 --python-platform x86_64-unknown-linux-gnu --custom-compile-command "make lock" > requirements-lock.txt
	$(foreach wheel,$(BUILDS),sed -i '/^torch==/a\    '"$$($(RUN) -m pip hash $(wheel) | tail -1)"' \\' requirements-lock.txt;)

# Change one thing at a time in the code and see whether a test fails: an hour on two cores. tests/mutate.py says more.
mutate: $(SETUP)
	$(RUN) tests/mutate.py $(ARGS)

cover: $(SETUP)
	$(RUN) book/tools.py cover

clean:
	rm -rf _build build *.egg-info

$(SETUP): requirements.txt pyproject.toml book/pyproject.toml
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo \
	  "Python >= 3.11 is needed; found: $(or $(PYTHON),none). Say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	@$(PIP) --only-binary :all: -r requirements.txt || { echo \
	  "pip could not install the package it names above. If it has no wheel for $$($(RUN) -V), choose another Python:" \
	  "rm -rf $(VENV) && make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PIP) --no-build-isolation --no-deps -e . -e book
	touch $@

$(BOOK): $(SETUP) _config.yml _toc.yml $(PAGES)
	$(VENV)/bin/jupyter-book build . --all -W -n --keep-going -q
	touch $@
