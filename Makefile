# Every command that a person or CI runs. `make` lists them.

.DEFAULT_GOAL := help
LOADTEST = cargo run --release --quiet --package loadtest --
RESULTS = loadtest/results/$(or $(RUN),$(shell date +%F)-two-cores)

.PHONY: help demo demo-cluster demo-pictures check format lint test test-fast chart-test alerts-test dashboards-test dashboard-pictures image image-test image-reproducible install-test hpa-test e2e simulate fleet strangers mutations fuzz-schedules fuzz parity audit bench bench-smoke loadtest burst soak replicas selection handovers takeovers versions size compare at-rest idle figures quote

help: ## Lists these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Runs cronwheel on a real control plane of its own, with one example CronJob, until Ctrl-C
	cargo run --quiet --package testbed -- demo

demo-cluster: ## A control plane with three nodes and a Prometheus, to try README's helm command on, until Enter; needs root
	CRONWHEEL_INSTALL_DEMO=1 cargo test --test install demo:: -- --skip ::tests:: --nocapture

demo-pictures: ## Draws the dashboards of the last MINUTES=10 into target/dashboards; PROMETHEUS=URL, which demo-cluster prints
	$(if $(PROMETHEUS),,$(error PROMETHEUS=URL is missing))
	mkdir -p target/dashboards
	python3 tests/dashboard_results.py $(PROMETHEUS) $(or $(MINUTES),10) > target/dashboards/results.json
	python3 tests/dashboard_pictures.py target/dashboards/results.json target/dashboards

check: format lint test simulate bench-smoke image-test install-test ## What CI runs

format: ## Fails where the formatting is not rustfmt's
	cargo fmt --all --check

lint: ## clippy with warnings as errors, also on what a release image is built from; every mutation still applies
	cargo clippy --workspace --all-targets --quiet -- --deny warnings
	cargo clippy --no-default-features --quiet -- --deny warnings
	python3 tests/mutations.py apply

test: ## All tests, those on a real kube-apiserver included
	cargo test --workspace --quiet

test-fast: ## Tests that need neither Go nor Python
	cargo test --workspace --quiet --lib
	cargo test --quiet --test it -- --skip differential --skip dev::kubectl

chart-test: ## What the Helm chart renders and what its dashboards show; helm and Prometheus are built on first use, some six minutes
	cargo test --quiet --test chart

alerts-test: ## Every alert fires, clears and stays silent, and any changed expression makes a test fail; some five minutes, and two to build promtool
	CRONWHEEL_ALL_CHANGED_ALERTS=1 cargo test --quiet --test chart alerts::

dashboards-test: ## Every query of dashboards and alerts on a real Prometheus, its counts against the audit log, and every metric moves, some seven minutes
	cargo test --test e2e -- --ignored --nocapture dashboards::

dashboard-pictures: ## The same, and draws the dashboards with what they showed into docs/dashboards
	CRONWHEEL_DASHBOARD_RESULTS=$(CURDIR)/target/dashboards.json $(MAKE) dashboards-test
	python3 tests/dashboard_pictures.py target/dashboards.json docs/dashboards

image: ## The image as an OCI layout in target/image/oci, without a base image or a container engine
	python3 deploy/image/build.py

image-test: ## The image, unpacked, runs the controller read-only as its user against the test bed; without root, its layout alone
	python3 deploy/image/test.py

image-reproducible: ## Builds the image in two folders, each from nothing, and demands one digest; some twenty minutes
	python3 deploy/image/reproduce.py

install-test: ## helm installs, upgrades and removes the chart on nodes of the test bed while CronJobs run, some seven minutes; needs root
	CRONWHEEL_INSTALL_TEST=1 cargo test --test install cases:: -- --nocapture

hpa-test: ## The chart's autoscaler from one replica to five to two, with and without metrics, while CronJobs run, some ten minutes; needs root
	CRONWHEEL_HPA_TEST=1 cargo test --test install autoscaling:: -- --skip ::tests:: --nocapture --test-threads=1

e2e: ## The controller as a process on a real kube-apiserver; or CASE=firing
	cargo test --test e2e -- $(CASE)

simulate: ## The whole controller, simulated: SEEDS=50 from SEED=1, of MINUTES=1440 each
	CRONWHEEL_SIM_SEEDS=$(or $(SEEDS),50) CRONWHEEL_SIM_SEED=$(or $(SEED),1) CRONWHEEL_SIM_MINUTES=$(or $(MINUTES),1440) \
		cargo test --profile simulate --quiet --test simulation sim::no_run -- --nocapture

fleet: ## Fleets of replicas, simulated: SEEDS=50 from SEED=1, with whatever can happen to them
	CRONWHEEL_FLEET_SEEDS=$(or $(SEEDS),50) CRONWHEEL_FLEET_SEED=$(or $(SEED),1) \
		cargo test --profile sim --quiet --test it fleet::drawn -- --nocapture

strangers: ## Tenants that offend, or are refused something, beside innocent ones; played with and without them and compared
	cargo test --quiet --test it strangers:: -- --nocapture

mutations: ## Breaks the controller in one place at a time and expects the simulation, or the fleets, to be red within 20 seeds; or NAMES=fleet
	CARGO_TARGET_DIR=target/mutations python3 tests/mutations.py $(NAMES)

fuzz-schedules: ## Random schedules against the library that Kubernetes uses: SECONDS=600 or QUERIES=20000000, SEED=1
	CRONWHEEL_FUZZ_SECONDS=$(SECONDS) CRONWHEEL_FUZZ_QUERIES=$(QUERIES) CRONWHEEL_FUZZ_SEED=$(SEED) \
		cargo test --quiet --test it differential -- --nocapture

soak: ## Fifty years of schedules under every zone name, and a shard through ten of them, some 30 minutes; or YEARS=2016
	CRONWHEEL_SOAK=$(or $(YEARS),full) cargo test --quiet --test it soak -- --nocapture

fuzz: ## One coverage-guided fuzz target, TARGET=schedule, event or explain, for SECONDS=600; needs cargo-fuzz and a nightly toolchain
	cargo +nightly fuzz run $(TARGET) -- -max_total_time=$(or $(SECONDS),600)

parity: ## The built-in controller and cronwheel on the same objects at the same time, compared; all worlds, or WORLD=name
	cargo test --test e2e -- --include-ignored parity::$(WORLD)

replicas: ## Several replicas on a real kube-apiserver, replaced, killed, frozen and cut off, each case through two slots; or CASE=frozen
	CRONWHEEL_REPLICAS_SLOTS=2 cargo test --test e2e -- --include-ignored replicas::$(CASE)

selection: ## What a replica saves where the API server selects CronJobs by shard, on CRONJOBS=20000 of them
	$(LOADTEST) selection --cronjobs $(or $(CRONJOBS),20000) $(if $(JSON),--json $(JSON))

versions: ## The tests on a real API server, against the oldest and the newest Kubernetes; or VERSIONS="1.31.14"
	python3 testbed/versions.py $(or $(VERSIONS),1.30.14 1.37.2)

audit: ## Licences, advisories and sources of all dependencies, by deny.toml; needs cargo-deny and the network
	@cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	cargo deny --workspace check

bench: ## All benches in full
	cargo bench --benches

bench-smoke: ## Each bench once, at its smallest size
	cargo test --quiet --benches -- --test

loadtest: ## 500 minutely CronJobs for three minutes, judged by the API server's audit log
	$(LOADTEST) minutely --cronjobs 500 --minutes 3

compare: ## Controllers in turn on the same load, 36 minutes; QUICK=1 for eight; SCENARIO=mixed; TARGET=server-defaults
	$(LOADTEST) compare $(if $(QUICK),--quick,--rounds $(or $(ROUNDS),3) --minutes 1) --scenario $(or $(SCENARIO),minutely) --target $(or $(TARGET),testbed) \
		$(if $(CRONJOBS),--cronjobs $(CRONJOBS)) $(if $(NAMESPACES),--namespaces $(NAMESPACES)) $(if $(CONTROLLERS),--controllers $(CONTROLLERS)) \
		--slo loadtest/slo$(if $(filter failing-namespaces slow-tenant,$(SCENARIO)),-$(SCENARIO)).yaml \
		--json $(or $(JSON),target/compare.json) --html $(or $(HTML),target/compare.html)

at-rest: ## Memory of controllers that know CRONJOBS=20000 CronJobs, of which none is due
	$(LOADTEST) compare --scenario at-rest --cronjobs $(or $(CRONJOBS),20000) --controllers built-in-unthrottled,cronwheel \
		--rounds $(or $(ROUNDS),1) --warm-up-minutes 0 --minutes 1 --json $(or $(JSON),target/at-rest.json)

idle: ## Slot to arrival of the create on an idle API server: ten CronJobs, twelve minutes
	$(LOADTEST) compare --cronjobs 10 --controllers cronwheel --rounds 1 --minutes 12 --json $(or $(JSON),target/idle.json)

burst: ## Bursts of CRONJOBS=1000 creates, by cronwheel and by a bare client in turn, and their ratio
	$(LOADTEST) burst --cronjobs $(or $(CRONJOBS),1000) --bursts $(or $(BURSTS),6) $(if $(JSON),--json $(JSON))

figures: ## All results that README and docs quote, into loadtest/results, some two and a half hours; RUN=date-machine
	-$(MAKE) compare JSON=$(RESULTS).json HTML=target/compare.html
	$(MAKE) idle JSON=$(RESULTS)-idle.json
	$(MAKE) burst JSON=$(RESULTS)-burst-1000.json
	$(MAKE) at-rest CRONJOBS=2000 JSON=$(RESULTS)-at-rest-2000.json
	$(MAKE) at-rest JSON=$(RESULTS)-at-rest-20000.json
	$(MAKE) burst CRONJOBS=2000 BURSTS=4 JSON=$(RESULTS)-burst-2000.json
	-$(MAKE) compare TARGET=server-defaults ROUNDS=1 JSON=$(RESULTS)-server-defaults.json HTML=target/server-defaults.html
	$(MAKE) burst CRONJOBS=5000 BURSTS=3 JSON=$(RESULTS)-burst-5000.json
	-$(MAKE) compare SCENARIO=failing-namespaces CRONJOBS=11000 NAMESPACES=11 CONTROLLERS=cronwheel ROUNDS=1 JSON=$(RESULTS)-failing-namespaces.json HTML=target/failing-namespaces.html
	-$(MAKE) compare SCENARIO=slow-tenant CRONJOBS=1500 CONTROLLERS=cronwheel ROUNDS=3 JSON=$(RESULTS)-slow-tenant.json HTML=target/slow-tenant.html
	-$(MAKE) compare SCENARIO=slow-tenant CRONJOBS=1500 CONTROLLERS=cronwheel ROUNDS=3 TARGET=server-defaults JSON=$(RESULTS)-slow-tenant-server-defaults.json HTML=target/slow-tenant-server-defaults.html
	$(MAKE) quote

quote: ## Writes the marked tables of README and docs anew from the files in loadtest/results
	$(LOADTEST) quote

handovers: ## Five replicas that share 2000 minutely CronJobs, replaced and killed: the table of how long shards have no leader
	$(LOADTEST) handovers

takeovers: ## 20 kills of one of three replicas that know CRONJOBS=20000 CronJobs, of which CHANGES=0 change in a second: how long its shards have no leader, and memory
	$(LOADTEST) takeovers --cronjobs $(or $(CRONJOBS),20000) --changes-per-second $(or $(CHANGES),0) $(if $(JSON),--json $(JSON))

size: ## Lines and code tokens of the controller without tests, by folder; REVISION= for another commit
	python3 tests/size.py $(REVISION)
