# The tests are scripts/test; these are shortcuts.
#
# make test          everything that must pass before a change lands (scripts/test; make check, unit, … for its parts)
# make test-harness  real coding harnesses, from npm, each through a turn against the server
# make build         the binary, for this machine
# make fuzz          every fuzz target for FUZZTIME each
# make generate      the checked-in assembly, from its generators

export CGO_ENABLED := 0
GO ?= go
FUZZTIME ?= 30s

.PHONY: build test test-harness prepare check cross unit openapi purego arm64 race fuzz generate

build:
	$(GO) build -o baleen ./cmd/baleen

test:
	@scripts/test

prepare check cross unit openapi purego arm64 race:
	@scripts/test $@

test-harness:
	@scripts/test-harness

fuzz:
	@scripts/fuzz $(FUZZTIME)

generate:
	$(GO) generate ./...
