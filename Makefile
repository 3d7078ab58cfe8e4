# Everything happens in .venv, which each target makes and renews by itself: `make train` and `make test` are enough.
# Variables: ARGS goes to the command; PYTHON is the interpreter of a new .venv (`make clean` first to change it).

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
DEV := $(VENV)/.dev-installed
UNFINISHED := $(VENV)/.unfinished

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: train test lint bench play clean help FORCE

help:
	@echo 'Reversi Lab. The first call of a target sets up .venv, which takes some minutes.'
	@echo
	@echo '  make train   train an agent with configs/experiment/quick.yaml   ARGS="seed=1"'
	@echo '  make play    play against an agent in the terminal               ARGS="runs/x"'
	@echo '  make test    run the tests, without the slow ones                ARGS="-m slow"'
	@echo '  make lint    check format, style and types'
	@echo '  make bench   measure the environment and count perft leaves'
	@echo '  make clean   remove .venv, caches and built packages; runs/ stays'
	@echo
	@echo 'PYTHON=python3.12 chooses the interpreter of a new .venv (3.11, 3.12 or 3.13).'

train: $(CORE)
	@$(BIN)/reversi train experiment=quick $(ARGS)

play: $(CORE)
	@$(BIN)/reversi play $(ARGS)

bench: $(CORE)
	@$(BIN)/reversi bench env
	@$(BIN)/reversi bench perft

test: $(DEV)
	@$(BIN)/python -m pytest $(ARGS)

lint: $(DEV)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up. A stamp holds the folder for which .venv was made and is written last. .venv is made anew where a set-up was
# cut short (it may hold half a package), its interpreter is gone, or the folder was moved; else it is only renewed.
# Byte code is made of what training imports, wherever Python itself may not keep it; pip would take all of 16,000 files.

$(CORE): pyproject.toml constraints.txt
	$(call install,.)
	@pwd -P >$(CORE)

$(DEV): pyproject.toml constraints.txt
	$(call install,.[dev])
	@pwd -P >$(CORE) && pwd -P >$(DEV)

usable = $(BIN)/python -m pip --version >/dev/null 2>&1 && [ ! -e $(UNFINISHED) ] && $(in_place)
in_place = { [ ! -e $(CORE) ] || [ "$$(cat $(CORE))" = "$$(pwd -P)" ]; }

ifneq ($(shell [ ! -e $(CORE) ] || { $(BIN)/python -c '' 2>/dev/null && $(in_place); } || echo spoilt),)
$(CORE) $(DEV): FORCE
endif

define install
@if ! { $(usable); }; then \
	$(check_python); \
	echo "Setting up $(VENV) with $(PYTHON), once; this takes some minutes ..."; \
	rm -rf $(VENV) && mkdir $(VENV) && touch $(UNFINISHED) && $(PYTHON) -m venv $(VENV) || exit 1; \
else \
	echo "Bringing $(VENV) up to date; this may take some minutes ..."; \
fi; \
touch $(UNFINISHED) && rm -f $(CORE) $(DEV) && \
$(BIN)/python -m pip install -qq --no-compile -c constraints.txt -e "$(1)" && \
PYTHONDONTWRITEBYTECODE= $(BIN)/python -c 'import experiments.train' && \
rm $(UNFINISHED) || { echo "The set-up failed; the next call begins it again." >&2; exit 1; }
endef

define check_python
command -v $(PYTHON) >/dev/null 2>&1 || \
	{ echo "There is no $(PYTHON) here. Name a Python 3.11, 3.12 or 3.13: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }; \
$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Reversi Lab needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is %d.%d. Name another: make $(MAKECMDGOALS) PYTHON=python3.12" % sys.version_info[:2])' || exit 1; \
$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "$(PYTHON) lacks the venv module. Install it (on Debian and Ubuntu: apt install python3-venv), or name another Python: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
endef

FORCE:
