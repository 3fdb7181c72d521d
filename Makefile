# make alone lists the targets. Each is a plain go command, or a script in .ci
# where it takes more than one.

GO       ?= go
FUZZTIME ?= 10s
BENCH    ?=
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS  := -s -w $(if $(VERSION),-X main.version=$(VERSION))

.DEFAULT_GOAL := help
.PHONY: help build test test-net fuzz bench lint cross check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/zapcast, one static file
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/zapcast ./cmd/zapcast

test: ## all tests; installs the Debian packages they use where it may
	.ci/test

test-net: ## the tests in network namespaces alone (root); a missing right is a failure
	ZAPCAST_TEST_NET=1 $(GO) test -run Netns ./...

fuzz: ## every fuzz target for FUZZTIME (10s)
	.ci/fuzz $(FUZZTIME)

bench: build ## CPU, memory and losses against the floor, on loopback (root; BENCH='--cases all' for more)
	$(GO) build -o bin/bench ./bench
	bin/bench --peer zapcast=bin/zapcast --peer zapcast-sockets=bin/zapcast --peer zapcast-ring=bin/zapcast --own floor,floor-ring $(BENCH)

lint: ## format, vet, staticcheck, tidiness, known vulnerabilities
	.ci/lint

cross: ## build for every system that is promised
	.ci/cross

check: lint cross test ## everything that CI runs

clean: ## remove what the targets above made
	rm -rf bin dist
	$(GO) clean -testcache
