# `make` alone lists the targets.
.DEFAULT_GOAL := help
GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
TYPESCRIPT := 7.0.2
FUZZTIME ?= 30s

# Runs a command with a Neo4j of the LTS line, which it fetches if necessary. It is built,
# because go run does not pass on signals and the exit code.
NEO4J = $(GO) build -o .cache/neo4j-serve ./deploy/neo4j/serve && .cache/neo4j-serve

# Without debug information linking takes half the time; lint already runs vet. The program runs go test and lists the slowest
# tests. Less frequent garbage collection saves the compiler a quarter of its processor time and tests an eighth. It is as
# frequent as mneme's programs set it for themselves.
quick test: export GOGC = 300
TEST = .cache/slowest -vet=off -ldflags='-s -w'

.PHONY: slowest
slowest:
	@$(GO) build -o .cache/slowest ./internal/mnemetest/slowest

# These packages take longest. They come first, because one that starts last runs alone.
LONG = ./test/faults ./pkg/graph/neo4jstore ./internal/service ./test/browser ./test/neo4j ./test/hostile ./cmd/mneme

# SQLite itself, C translated to Go, is not checked for races: it is half the work of the projections' tests under the race
# detector, which ignores SQLite's memory anyway, because it is not on Go's heap.
RACED = -race -gcflags=modernc.org/sqlite/lib=-race=false -short -skip 'Unraced$$'

# With the race detector, all tests of these packages run under it alone, except those whose names end with Unraced.
RACED_PACKAGES := ./pkg/projection/... ./pkg/eventlog/...

# The race detector needs a C compiler.
RACE := $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo yes)

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build, start everything in one process, show an example, serve until Ctrl-C
	bin/mneme up --example

.PHONY: run-neo4j
run-neo4j: build ## The same with the graph in Neo4j, which is fetched (needs Java and Maven), with data in .mneme/neo4j
	$(NEO4J) -dir .mneme/neo4j -listen 127.0.0.1:7687 -heap 1024 -page-cache 512 bin/mneme up --example --store neo4j

.PHONY: build
build: ## Build the programs into bin/
	$(GO) build -trimpath -ldflags='-s -w' -o bin/ ./cmd/... ./examples/scout

# Many tests wait, so twice as many packages as processors run at once.
PACKAGES = $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

.PHONY: quick
quick: slowest ## Run the tests that need only Go, on smaller inputs: no Neo4j, no language model, nothing is fetched
	@MNEME_TEST_NEO4J= MNEME_TEST_NEO4J_URI= MNEME_TEST_NEO4J_JARS= MNEME_TEST_REQUIRE_LLM= MNEME_TEST_LLM_DIR=none; \
	export MNEME_TEST_NEO4J MNEME_TEST_NEO4J_URI MNEME_TEST_NEO4J_JARS MNEME_TEST_REQUIRE_LLM MNEME_TEST_LLM_DIR; \
	$(TEST) -p $(PACKAGES) -short ./cmd/mneme ./internal/service ./pkg/graph/sqlitestore ./cmd/... ./deploy/... ./events/... ./examples/... ./internal/... ./pkg/...

.PHONY: test
test: slowest ## Run all tests; with a C compiler, the log and the engine under the race detector
	@if [ -d "$${MNEME_TEST_DATA:-../shared/data}" ]; then echo "recorded sessions: used"; \
	else echo "recorded sessions: not found, the tests that need them are skipped (MNEME_TEST_DATA names their folder)"; fi
	@mkdir -p .cache; for language in python javascript sdk; do \
	  if $(MAKE) .cache/$$language/installed >.cache/$$language.log 2>&1; then echo "$$language client: tested"; \
	  else echo "$$language client: not tested, its packages could not be installed, .cache/$$language.log says why"; fi; \
	done
	@if $(MAKE) .cache/duckdb/installed >.cache/duckdb.log 2>&1; then echo "DuckDB: tested"; else echo "DuckDB: not tested, it could not be installed, .cache/duckdb.log says why"; fi
	@if why=$$(deploy/llm/llm.sh fetch 2>&1); then echo "language model: tested"; else echo "$${why%%:*}: not tested,$${why#*:}"; fi
	@$(NEO4J) -tests $(MAKE) --no-print-directory -j2 test-module test-others test-race

.PHONY: sdk lint-sdk
sdk: ## Build the packages of the clients in Python and TypeScript into bin/sdk
	@mkdir -p bin/sdk
	python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir bin/sdk ./sdk/python
	npm pack --silent --pack-destination bin/sdk ./sdk/typescript
	@ls bin/sdk

# The declarations of the TypeScript client are made of its comments.
test-all: lint-sdk
lint-sdk: .cache/sdk/installed ## Check the types of these clients, and that the committed declarations are the current ones
	cd sdk/python && ../../.cache/sdk/bin/python -m mypy --cache-dir ../../.cache/mypy
	npm exec --yes --package=typescript@$(TYPESCRIPT) -- tsc --project sdk/typescript
	git diff --exit-code --stat -- sdk/typescript/types

# The parts of test, with one Neo4j for all packages. They run beside each other, because many tests wait, for Neo4j or for
# a time to pass. For the same reason one more package of the module is tested at a time than there are processors.
MODULE = $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN))))
.PHONY: test-module test-others test-race
test-module:
	@$(TEST) -p $(MODULE) -timeout 60m $(LONG) $$($(GO) list ./... $(if $(RACE),| grep -vxF "$$($(GO) list $(RACED_PACKAGES))"))
test-others: test-projection test-compose-file test-k8s
test-race:
ifeq ($(RACE),yes)
	@$(TEST) -short -run 'Unraced$$' -timeout 60m $(RACED_PACKAGES)
	@export CGO_ENABLED=1; $(TEST) $(RACED) -timeout 60m $(RACED_PACKAGES)
else
	@echo "no C compiler: the race detector did not run"
endif

.PHONY: test-all
test-all: test test-prometheus .cache/schemathesis/installed .cache/conformance/installed ## Also run tests that take minutes: the API against its own description, a cluster, Neo4j's current line, more under the race detector
ifeq ($(RACE),yes)
	@$(NEO4J) -tests env CGO_ENABLED=1 $(GO) test -count=1 -timeout 20m $(RACED) ./pkg/graph/... ./internal/httpapi/... ./internal/view/... ./internal/importer/... ./internal/service/...
endif
	@$(NEO4J) -tests env MNEME_TEST_ALL=1 $(GO) test -count=1 -timeout 60m -v ./test/... ./pkg/graph/... ./internal/erasure/... ./pkg/window/... ./internal/service/... ./internal/httpapi/... ./internal/intake/... ./cmd/mneme/...
	@$(NEO4J) -tests -line current $(GO) test -count=1 ./deploy/neo4j/... ./pkg/graph/neo4jstore/...

.PHONY: neo4j neo4j-current
neo4j: ## Fetch Neo4j's LTS line, 5.26; needs Java 17 or 21, and Maven
	$(GO) run ./deploy/neo4j/fetch lts

neo4j-current: ## Fetch Neo4j's current line; needs Java 21 or 25, and Maven
	$(GO) run ./deploy/neo4j/fetch current

.PHONY: llm
llm: ## Fetch the small language model of the tests, 220 MB; needs Python 3.10 or later
	deploy/llm/llm.sh fetch

.PHONY: tune
tune: ## Print how well the constants of the ranking do on recorded questions, others instead of them, and without each set; takes minutes
	$(GO) test -timeout 30m -v -run '^$$' -bench Constants -benchtime 1x ./pkg/recall

.PHONY: embeddings verify-embeddings
embeddings: ## Remake the table of the built-in embeddings: needs Debian, Maven and Python 3.11 or later, takes about fifteen minutes
	deploy/embeddings/embeddings.sh make

verify-embeddings: ## Compare the committed table with a fresh one
	deploy/embeddings/embeddings.sh verify

# The tests of docker-compose.yml, of deploy/k8s, of deploy/helm and of what monitors mneme are separate modules, because their
# dependencies are large. Where make vet runs, the tests need not vet all dependencies once more.
.PHONY: test-compose-file test-k8s test-helm test-prometheus test-modelsdk lint-compose lint-k8s lint-helm lint-prometheus lint-modelsdk
test-compose-file: # not from Go's test cache, because it reads files outside the module
	cd test/compose && $(GO) test -vet=off -count=1 ./...
test-k8s: ## Render deploy/k8s and compare it with the programs
	cd test/k8s && $(GO) test -vet=off -count=1 ./...

# Helm's engine takes minutes to compile, so this is part of test-all.
test-all: test-helm
test-helm: lint-helm ## Render the chart of deploy/helm by Helm's own code, and compare it with deploy/k8s
	cd test/helm && $(GO) test -count=1 ./...

# Prometheus's engine takes minutes to compile, so this is part of test-all.
test-prometheus: lint-prometheus ## Run the alerts of deploy/prometheus over sample series, and check the dashboard's metrics
	cd test/prometheus && $(GO) test -count=1 ./...

# The types of the model SDKs take a minute to compile, so this is part of test-all.
test-all: test-modelsdk
test-modelsdk: lint-modelsdk ## Read contexts in the formats of model APIs with the types of the official SDKs
	cd test/modelsdk && $(GO) test -count=1 ./...

.PHONY: test-projection
test-projection: ## Build and test examples/projection, a read model in a module of its own
	cd examples/projection && $(GO) build ./... && $(GO) test -vet=off . && $(GO) test -vet=off ./costs -rapid.checks=2

test-all: test-browser test-compose
.PHONY: test-browser
test-browser: .cache/browser/installed ## Look at every view of the inspector page in Chromium, and print how fast it is; needs Node, npm and chromium-headless-shell
	MNEME_TEST_BROWSER=required $(GO) test -count=1 -v -timeout 20m ./test/browser

.PHONY: test-compose
test-compose: ## Run docker-compose.yml: import, verify, scale, kill one, verify (an engine is started if none answers)
	test/compose/prepare.sh
	cd test/compose && MNEME_TEST_ALL=1 $(GO) test -count=1 -timeout 30m -v -run TestTheComposeFileRuns

# Staticcheck reads all that a module depends on, which takes long for these: test-all runs it.
vet: vet-compose vet-k8s vet-projection
test-all: lint-compose lint-k8s lint-projection
.PHONY: vet-compose vet-k8s vet-projection lint-projection
vet-compose vet-k8s: vet-%:
	cd test/$* && $(GO) vet ./... && $(GO) mod tidy -diff
vet-projection:
	cd examples/projection && $(GO) vet ./... && $(GO) mod tidy -diff
lint-compose lint-k8s lint-helm lint-prometheus lint-modelsdk: lint-%:
	cd test/$* && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) mod tidy -diff
lint-projection:
	cd examples/projection && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) mod tidy -diff

# Packages of other languages for the tests, from the registries configured for pip and npm
# on this machine.
.cache/python/installed: examples/python/requirements.txt
.cache/schemathesis/installed: test/openapi/requirements.txt
.cache/sdk/installed: sdk/python/tests/requirements.txt
.cache/duckdb/installed: test/duckdb/requirements.txt
.cache/python/installed .cache/schemathesis/installed .cache/sdk/installed .cache/duckdb/installed: | .cache/pip/installed
	python3 -m venv --clear --without-pip $(@D)
	$(PIP) -r $<
	touch $@

# One pip installs into all of these folders, because installing pip takes longer than most packages.
PIP = PYTHONPATH=$$(echo .cache/pip/lib/python*/site-packages) $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --timeout 15 --retries 2
.cache/pip/installed:
	python3 -m venv --clear $(@D)
	touch $@

.cache/javascript/installed: examples/javascript/package-lock.json examples/javascript/package.json
	rm -rf $(@D) && mkdir -p $(@D)
	cp examples/javascript/package.json examples/javascript/package-lock.json $(@D)
	cd $(@D) && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts --fetch-timeout=15000 --fetch-retries=1 --fetch-retry-mintimeout=1000
	touch $@

.cache/conformance/installed: test/mcp/requirements.txt test/mcp/package.json | .cache/pip/installed
	python3 -m venv --clear --without-pip $(@D)
	$(PIP) -r $<
	cp test/mcp/package.json $(@D)
	cd $(@D) && npm install --loglevel=error --no-audit --no-fund --ignore-scripts --no-save --fetch-timeout=15000 --fetch-retries=1 --fetch-retry-mintimeout=1000
	touch $@

.cache/browser/installed: test/browser/package-lock.json test/browser/package.json
	rm -rf $(@D) && mkdir -p $(@D)
	cp test/browser/package.json test/browser/package-lock.json $(@D)
	cd $(@D) && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts --fetch-timeout=15000 --fetch-retries=1 --fetch-retry-mintimeout=1000
	touch $@

# The full campaign writes docs/faults.md.
SEED ?= 1
.PHONY: faults
faults: ## Kill, freeze and cut off every program, and check that nothing is lost: SEED=1 FAULTS=300 EVENTS=1000000 takes an hour (fetches Neo4j)
	@mkdir -p .cache && $(GO) build -o .cache/faults ./test/faults
	@data="$${MNEME_TEST_DATA:-../shared/data}"; test ! -d "$$data" || export MNEME_TEST_DATA="$$data"; \
	.cache/faults run --seed $(SEED) $(if $(FAULTS),--faults $(FAULTS)) $(if $(EVENTS),--events $(EVENTS)) $(if $(DURATION),--duration $(DURATION)) \
	  $(if $(FAULTS)$(EVENTS),,--markdown docs/faults.md)

# The compiler and staticcheck take a fifth less time if the garbage collector runs less often. Staticcheck is apart, because it
# may run beside the tests: the rest compiles what they need, and writes the generated files.
.PHONY: lint vet staticcheck
lint: vet staticcheck ## Check format, vet, staticcheck, go.mod and generated files
vet staticcheck: export GOGC = 300
vet:
	@test -z "$$(gofmt -l */)" || { echo "not formatted:"; gofmt -l */; exit 1; } # .cache holds third-party Go code
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) generate ./... && git diff --exit-code --stat -- events/schemas docs deploy/nats internal/page/dist sdk
staticcheck:
	$(GO) run $(STATICCHECK) ./...

.PHONY: fuzz
fuzz: ## Fuzz everything that parses, FUZZTIME (30s) each
	@for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
	  done; \
	done

.PHONY: bench
bench: build ## Measure on transcripts: make bench TRANSCRIPTS="~/.claude/projects"
	@test -n "$(TRANSCRIPTS)" || { echo 'name transcripts: make bench TRANSCRIPTS="~/.claude/projects"'; exit 2; }
	@for what in ingest replay latency context; do echo "mneme bench $$what"; bin/mneme bench $$what $(TRANSCRIPTS) || exit 1; echo; done

# One Go for all releases, so that a commit gives the same bytes everywhere; Go fetches it.
RELEASE_GO := go1.26.10
.PHONY: release test-release
release test-release: export GOTOOLCHAIN = $(RELEASE_GO)
release: ## Build archives for Linux and macOS with systemd units, a list of modules (SBOM) and checksums into bin/release
	@$(GO) build -o .cache/vulncheck ./deploy/vulncheck && .cache/vulncheck -go
	@$(GO) run ./deploy/release

test-all: test-release
test-release: ## Build a release twice, in two folders, and compare the hashes
	MNEME_TEST_ALL=1 $(GO) test -count=1 -timeout 30m -v -run TestTwoBuilds ./deploy/release

VULNDB ?=
.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what mneme contains; VULNDB=latest asks the newest database
	@$(GO) build -o .cache/vulncheck ./deploy/vulncheck && .cache/vulncheck $(if $(VULNDB),-db $(VULNDB))

.PHONY: clean
clean: ## Remove build results; keeps the data in .mneme
	rm -rf bin
