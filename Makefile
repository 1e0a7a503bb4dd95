# `make book` and `make test` need Python 3.11, make and git, and nothing else. See README.md.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin/python
SETUP := $(VENV)/.ready
BOOK := _build/html/.ready
# The ledgers are computed from the library and the stored runs, so the book is made again when these change.
PAGES := $(shell find book chapters bilevel_core experiments results -type f \
  -not -path '*/.*' -not -path '*/__pycache__/*' -not -name '*.ckpt')
EXPERIMENTS := $(subst _,-,$(patsubst experiments/%.toml,%,$(wildcard experiments/*.toml)))
JUDGED := hyper-representation hyper-cleaning
SIZE ?= full
JOBS ?= 1
# One thread: the methods are timed and compared that way, and two test processes share two cores.
export OMP_NUM_THREADS = 1

.PHONY: book test lab notebooks reproduce cover clean
.DEFAULT_GOAL := book

book: $(BOOK)
	@echo "Open $(CURDIR)/_build/html/book/index.html"

test: $(BOOK)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check --exclude chapters .
	$(RUN) -m ruff format --check --config line-length=80 chapters
	$(RUN) -m pytest tests -n 2
	$(RUN) -m pytest chapters --nbval-lax --nbval-sanitize-with tests/nbval.cfg --nbval-cell-timeout 600 -n 2 --dist loadfile --no-loadscope-reorder

lab: $(SETUP)
	$(VENV)/bin/jupyter-lab chapters

notebooks: $(SETUP)
	$(RUN) book/tools.py notebooks

# Runs that are stored in results/ with the same settings are not done again.
reproduce: $(SETUP)
	for name in $(EXPERIMENTS); do \
	  $(RUN) -m bilevel_core reproduce $$name --size $(SIZE) --jobs $(JOBS) && \
	  $(RUN) -m bilevel_core report $$name --size $(SIZE) || exit 1; \
	done
	test $(SIZE) != full || for name in $(JUDGED); do $(RUN) -m bilevel_book verdicts $$name || exit 1; done

cover: $(SETUP)
	$(RUN) book/tools.py cover

clean:
	rm -rf _build build *.egg-info

$(SETUP): requirements.txt pyproject.toml book/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed, this is " + sys.version.split()[0] + "; say make PYTHON=/path/to/python3.11")'
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps -e . -e book
	touch $@

$(BOOK): $(SETUP) _config.yml _toc.yml $(PAGES)
	$(VENV)/bin/jupyter-book build . --all -W -n --keep-going -q
	touch $@
