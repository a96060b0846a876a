# Two commands for everyone: `make run` and `make test`. `make help` lists the rest.

# The target folder; CARGO_TARGET_DIR wins, as it does for cargo itself.
CARGO_TARGET_DIR ?= target
export CARGO_TARGET_DIR
DATA_DIR ?= data
LISTEN ?= 127.0.0.1:8182
FICUS := $(CARGO_TARGET_DIR)/release/ficus

.PHONY: help tools run build test check unit release suite tidy docs clean-data

help:
	@echo "make run      build and start a server with the air-routes sample on $(LISTEN), data in ./$(DATA_DIR)"
	@echo "make test     everything CI runs: format, lints, documents, unit tests, release build, feature suite, drivers"
	@echo "make check    format and lints only"
	@echo "make unit     tests of the crates only"
	@echo "make suite    TinkerPop's feature suite and the official drivers against the release build"
	@echo "make build    the release binary, $(FICUS)"

run: tools build
	$(FICUS) serve --data-dir $(DATA_DIR) --listen $(LISTEN) --demo air-routes

build: tools
	cargo build --release --locked -p ficus-cli

test: tools
	@.ci/steps

check: tools
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

unit: tools
	cargo test --workspace --locked

docs: tools
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

tidy: tools
	cargo run --quiet --locked -p xtask -- tidy

suite: build
	FICUS_BIN=$(abspath $(FICUS)) FICUS_PROFILE=release tests/run.sh

tools:
	@.ci/tools

clean-data:
	rm -rf ./data
