# The tests are scripts/test; these are shortcuts.
#
# make test          everything that must pass before a change lands (scripts/test; make check, unit, … for its parts)
# make test-harness  real coding harnesses, from npm, each through a turn against the server
# make build         the binary, for this machine
# make man           the manual pages, into build/man; make completions: the shells' completions, into build/completions
# make packages      deb and rpm, into build/packages, and a look at all that Baleen is installed by (packaging/check)
# make fuzz          every fuzz target for FUZZTIME each
# make generate      the checked-in assembly, from its generators

export CGO_ENABLED := 0
GO ?= go
FUZZTIME ?= 30s

.PHONY: build test test-harness prepare check cross unit openapi purego arm64 race man completions packages fuzz generate

build:
	$(GO) build -o baleen ./cmd/baleen

test:
	@scripts/test

prepare check cross unit openapi purego arm64 race:
	@scripts/test $@

test-harness:
	@scripts/test-harness

man:
	$(GO) run ./packaging/man build/man

completions:
	@mkdir -p build/completions
	$(GO) run ./cmd/baleen completion bash > build/completions/baleen.bash
	$(GO) run ./cmd/baleen completion zsh > build/completions/_baleen
	$(GO) run ./cmd/baleen completion fish > build/completions/baleen.fish

packages:
	@packaging/check

fuzz:
	@scripts/fuzz $(FUZZTIME)

generate:
	$(GO) generate ./...
