# powerlab: "make demo" measures this machine, "make test" tests it. Both make and reuse .venv by themselves.

.DEFAULT_GOAL := help
.PHONY: help demo test test-ci test-all campaigns check check-python check-native environment fuzz bench bench-engine bench-contention bench-networks bench-precision bench-sampler bench-search bench-service \
  bench-train bench-database bench-pages lock openapi docs messages networks plotly notebook site wheels mutation format clean

# A Python to build .venv with, where the first one found is not the right one: make demo PYTHON=/path/to/python3
PYTHON ?=
export PYTHON
BIN := .venv/bin
# Optuna's GP sampler needs PyTorch, on the processor alone: SEARCH_TORCH="torch --index-url
# https://download.pytorch.org/whl/cpu" spares gigabytes of GPU libraries.
SEARCH_TORCH ?= torch==2.13.0
# Many tests wait for simulated boards rather than compute, so there are more workers than cores.
TEST_WORKERS ?= $(shell expr $$(nproc) + 2)
# Tests start powerlab hundreds of times: without cached bytecode, every start compiles it anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

demo: ## sweep ResNet-50 on this machine, print the table, serve the dashboard (about 2 minutes after set-up)
	@scripts/setup_venv server
	@$(BIN)/powerlab demo

test: ## run the fast tests (14 minutes on two slow cores); one that lacks a system program says which and is skipped
	@scripts/setup_venv dev
	@$(PYTEST) -m "not campaign" $(PYTEST_ARGS)

test-ci: ## run what continuous integration runs: fast tests, short campaigns, and one part of the long ones (PART=2: that one)
	@scripts/setup_venv dev
	@$(PYTEST) -m "not release" --campaigns-part $(or $(PART),change) $(PYTEST_ARGS)

test-all: ## run all of these parts: all campaigns of kills, faults, builds, boards, PostgreSQL (about an hour)
	@scripts/setup_venv dev
	@$(PYTEST) -m "not release" $(PYTEST_ARGS)

campaigns: ## run what is left of the campaigns before a release: seven more simulated boards, two more readers of each page (10 minutes)
	@scripts/setup_venv dev
	@$(PYTEST) -m release $(PYTEST_ARGS)

check: check-python check-native ## ruff, mypy, the import contract, clang-format, and C++ with warnings as errors

environment:
	@scripts/setup_venv dev

check-python: environment
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Without make's own share of jobs: ninja would wait for mypy to end.
check-native: environment
	env -u MAKEFLAGS $(BIN)/python scripts/check_native.py

fuzz: ## change models at random and run them, MINUTES=30 of it; SANITIZED=1: with C++ sanitizers, which needs g++
	@scripts/setup_venv dev
	@PYTHONPATH=tests:tests/support:tests/engine $(BIN)/python -m fuzz --minutes $(or $(MINUTES),30) $(if $(SANITIZED),--sanitized)

format: ## put Python and C++ into the house's layout
	@scripts/setup_venv dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python scripts/check_native.py --format

# Those that need nothing but the development environment; the others have targets of their own, below, or say what
# they need (python -m bench.training.gradients).
BENCHMARKS := engine.vs_peers engine.contention engine.loading engine.shapes precision.vs_peers precision.floats \
  gpu.vs_ncnn gpu.overhead gpu.slices arm.instructions measuring.sampler_cost measuring.agent_footprint \
  measuring.energy_methods claims.false_claims claims.gate_rates database.trace_stores

bench: ## run the benchmarks one after the other (hours; wants a quiet machine)
	@scripts/setup_venv dev
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python -m "bench.$$name" || failed="$$failed $$name"; done; \
	  test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

bench-engine: ## the engine against every installed peer (15 minutes; QUICK=1: 2; wants a quiet machine)
	@scripts/setup_venv dev
	@$(BIN)/python -m bench.engine.vs_peers $(if $(QUICK),--quick) --json build/engine_vs_peers.json

bench-precision: ## 8-bit integers against float32 and peers, and what they cost (10 minutes; wants a quiet machine; MODELS="resnet50 ...")
	@scripts/setup_venv dev
	@$(BIN)/python -m bench.precision.vs_peers $(MODELS)
	@$(BIN)/python -m bench.precision.vs_peers $(MODELS) --tier avx2

bench-contention: ## what other work beside an engine costs it, and its peers (10 minutes a situation; wants a quiet machine; SITUATION=quota or unequal: as root)
	@scripts/setup_venv dev
	@$(BIN)/python -m bench.engine.contention $(if $(SITUATION),--situation $(SITUATION))

bench-networks: ## the engine on 66 networks nobody tuned it for (1 hour; installs PyTorch into build/; HELD_BACK=1, MORE=1: others)
	@scripts/setup_venv dev
	@test -d build/networks-venv || $(BIN)/python -m venv build/networks-venv
	@build/networks-venv/bin/pip install --quiet torch torchvision timm transformers onnx
	@build/networks-venv/bin/python -m bench.engine.export_networks build/networks$(if $(HELD_BACK),-held-back --held-back)$(if $(MORE),-more --more)
	@$(BIN)/python -m bench.engine.vs_peers build/networks$(if $(HELD_BACK),-held-back)$(if $(MORE),-more)/*.onnx --batch 1 --threads $(or $(THREADS),2) --seconds 3

bench-sampler: ## what sampling costs, beside the ways of other tools (about 3 minutes; wants a quiet machine)
	@scripts/setup_venv dev
	@$(BIN)/python -m bench.measuring.sampler_cost

bench-search: ## runs until the best is found, beside other ways to search (hours, installs PyTorch into build/; SEEDS=3 GP_SEEDS=1: less)
	@scripts/setup_venv dev
	@test -d build/search-venv || $(BIN)/python -m venv build/search-venv
	@build/search-venv/bin/pip install --quiet $(SEARCH_TORCH)
	@build/search-venv/bin/pip install --quiet optuna scipy numpy msgspec platformdirs prometheus-client psutil rich urllib3
	@build/search-venv/bin/python -m bench.search.compare --seeds $(or $(SEEDS),20) --gp-seeds $(or $(GP_SEEDS),3) --results build/search

bench-train: ## the engine's training against PyTorch (20 minutes; installs it into build/; MODELS="resnet50 ..." BATCH="8" PEERS="torch torch-compile")
	@scripts/setup_venv dev
	@test -d build/torch || $(BIN)/python -m pip install --quiet --target build/torch torch
	@PYTHONPATH=build/torch $(BIN)/python -m bench.training.speed $(MODELS) $(if $(BATCH),--batch $(BATCH)) $(if $(PEERS),--peers $(PEERS))

bench-service: ## agents at one server, samples a second, beside Prometheus, query times (half an hour, 16 GB; QUICK=1: 4 minutes; wants both and PostgreSQL)
	@scripts/setup_venv dev
	@PYTHONPATH=tests:tests/support $(BIN)/python -m bench.service.load $(if $(QUICK),--agents 100 --jobs 50 --over 15 --start 5)
	@PYTHONPATH=tests:tests/support $(BIN)/python -m bench.service.load --kill --lease-s 10 $(if $(QUICK),--agents 100 --jobs 50,--agents 300 --jobs 300) --over 60
	@PYTHONPATH=tests:tests/support $(BIN)/python -m bench.service.ingest $(if $(QUICK),--seconds 3)
	@PYTHONPATH=tests:tests/support $(BIN)/python -m bench.service.beside_prometheus $(if $(QUICK),--scale 0.05 --times 10)
	@$(MAKE) --no-print-directory bench-database $(if $(QUICK),RUNS=20000)

bench-pages: ## bytes, first paint, click and zoom of every page over 1 M runs and a trace of 1 M samples (8 minutes, 7 GB, PostgreSQL, Chromium)
	@scripts/setup_venv dev
	@$(BIN)/python -m bench.database.pages $(if $(RUNS),--runs $(RUNS))

bench-database: ## query times over 1 M runs and 1 G samples (16 GB of disk, PostgreSQL; RUNS=50000: fewer)
	@scripts/setup_venv dev
	@$(BIN)/python -m bench.database.big_database $(if $(RUNS),--runs $(RUNS) --samples $(RUNS)000)

lock: ## resolve requirements.lock anew from pyproject.toml, for every platform and Python
	@scripts/setup_venv dev
	@$(BIN)/pip install --quiet -c requirements.lock uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --group build --group lock --group mutation \
	  pyproject.toml -o requirements.lock

openapi: ## write api/openapi.json from the application
	@scripts/setup_venv dev
	$(BIN)/python scripts/write_openapi.py

docs: ## write docs/cli.md from the command line's own help and docs/operators.md from ONNX's node cases
	@scripts/setup_venv dev
	$(BIN)/python scripts/write_cli_page.py
	$(BIN)/python scripts/write_operators_page.py

plotly: ## build the part of Plotly that the charts use, from npm (dashboards/plotly; needs node and npm)
	@cd dashboards/plotly && npm ci --ignore-scripts --no-audit --no-fund && npm run build

networks: ## write the outlines of the zoo's networks, which the dashboards show
	@scripts/setup_venv dev
	$(BIN)/python scripts/write_networks.py

messages: ## bring the dashboards' Chinese catalogue up to date with the words in the code
	@scripts/setup_venv dev
	$(BIN)/python scripts/write_messages.py

pictures: ## take docs/images/pages: every dashboard page, desk and phone, light and dark (2 minutes, Chromium)
	@scripts/setup_venv dev
	@PYTHONPATH=.:tests:tests/support $(BIN)/python -m tests.browser.pictures $(PAGES)

notebook: ## execute docs/notebooks/tutorial.ipynb and keep its outputs (half a minute)
	@scripts/setup_venv dev
	$(BIN)/python scripts/write_notebook.py

mutation: ## change the modules that decide figures, fault by fault, and count the faults their tests notice (1 hour)
	@scripts/setup_venv dev
	@$(BIN)/pip install --quiet -c requirements.lock cosmic-ray
	@$(BIN)/python scripts/mutation_test.py $(MODULES)

wheels: ## build wheels for x86-64 and 64-bit Arm into dist/, for this Python and any Linux with glibc 2.17 (4 minutes; ONLY=aarch64: that one)
	@scripts/setup_venv dev
	@$(BIN)/pip install --quiet -c requirements.lock cmake ninja wheel ziglang
	@$(BIN)/python scripts/build_wheels.py $(if $(ONLY),--only $(ONLY))

site: ## build the documentation as a site into build/site; a broken link fails
	@scripts/setup_venv dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean
	@echo "build/site/index.html (to search it: python3 -m http.server --directory build/site)"

clean: ## remove everything that was built, .venv too; results in the database stay
	rm -rf .venv build dist .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
