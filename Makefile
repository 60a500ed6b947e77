# make test          everything that must pass before a change lands; fetches what it needs, with checksums
# make test-harness  real coding harnesses, from npm, each through a turn against the server
# make build         the binary, for this machine
# make cross         the binary for every supported system and processor, to see that it builds
# make check         formatting and static analysis only
# make fuzz          every fuzz target for FUZZTIME each
# make generate      the checked-in assembly, from its generators

export CGO_ENABLED := 0
GO ?= go
TOOL = $(GO) tool -modfile=tools/go.mod
FUZZTIME ?= 30s
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: build test test-harness check cross models sdks test-openapi unit purego arm64 race fuzz generate

build:
	$(GO) build -o baleen ./cmd/baleen

test: check cross models sdks unit test-openapi purego arm64 race

check:
	@out=$$($(TOOL) gofumpt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	  if [ -n "$$out" ]; then echo "not formatted (run: go tool -modfile=tools/go.mod gofumpt -w FILE):"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(TOOL) staticcheck ./...

cross:
	@for p in $(PLATFORMS); do echo "build $$p"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o /dev/null ./cmd/baleen || exit 1; done

# The real models that end-to-end tests run: the default model and a smaller one.
models:
	$(GO) run ./cmd/baleen pull smollm2-135m qwen2.5-coder-0.5b gemma3-270m

# The official client libraries that run against the server.
sdks:
	scripts/get-sdks .cache/sdk

test-harness: export BALEEN_TEST_HARNESSES = $(CURDIR)/.cache/harnesses
test-harness:
	scripts/get-harnesses $(BALEEN_TEST_HARNESSES)
	$(GO) test -timeout 30m -count 1 ./internal/server/servertest/harness

unit: export BALEEN_TEST_MODELS = 1
unit: export BALEEN_TEST_PYTHON = $(CURDIR)/.cache/sdk/python/bin/python
unit: export BALEEN_TEST_NODE = $(CURDIR)/.cache/sdk/node
unit:
	$(GO) test -timeout 20m ./...

# The OpenAPI document against a server with a scripted model, by schemathesis.
test-openapi:
	scripts/check-openapi .cache/openapi

# The plain Go definitions alone, as on processors that have no kernels of their own.
purego:
	$(GO) test -short -tags purego -timeout 20m ./internal/backend/... ./internal/quant/...

# The arm64 kernels against their plain Go definitions, under user-mode emulation where this is not arm64.
arm64:
	@scripts/test-arm64

race:
	CGO_ENABLED=1 $(GO) test -race -timeout 20m ./internal/engine/... ./internal/kv/... ./internal/fetch/... ./internal/store/... ./internal/pool/...
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m ./internal/server/...
	CGO_ENABLED=1 $(GO) test -race -run '^TestPool|^TestAttend' ./internal/backend/cpu ./internal/backend/cpu/vec

fuzz:
	@scripts/fuzz $(FUZZTIME)

generate:
	$(GO) generate ./...
