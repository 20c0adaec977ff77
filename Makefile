# Every command that a person or CI runs. `make` lists them.

.DEFAULT_GOAL := help
.PHONY: help demo check format lint test test-fast audit bench bench-smoke loadtest

help: ## Lists these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Runs cronwheel on a real control plane of its own, with one example CronJob, until Ctrl-C
	cargo run --quiet --package testbed -- demo

check: format lint test bench-smoke ## What CI runs

format: ## Fails where the formatting is not rustfmt's
	cargo fmt --all --check

lint: ## clippy with warnings as errors
	cargo clippy --workspace --all-targets --quiet -- --deny warnings

test: ## All tests, those on a real kube-apiserver included
	cargo test --workspace --quiet

test-fast: ## Tests that need neither network nor processes
	cargo test --workspace --quiet --lib
	cargo test --quiet --test it -- --skip cluster

audit: ## Licences, advisories and sources of all dependencies, by deny.toml; needs cargo-deny and the network
	@cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	cargo deny --workspace check

bench: ## All benches in full
	cargo bench --benches

bench-smoke: ## Each bench once, at its smallest size
	cargo test --quiet --benches -- --test

loadtest: ## 500 minutely CronJobs for three minutes, judged by the API server's audit log
	cargo run --release --quiet --package loadtest -- minutely --cronjobs 500 --minutes 3
