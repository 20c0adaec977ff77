# The commands for developers and CI. `make` lists them.

.DEFAULT_GOAL := help
LOADTEST = cargo run --release --quiet --package loadtest --
RESULTS = loadtest/results/$(or $(RUN),$(shell date +%F)-two-cores)

.PHONY: help demo demo-cluster demo-pictures check format lint test test-fast browser page-test page-pictures chart-test alerts-test dashboards-test dashboard-pictures image image-test image-reproducible install-test hpa-test e2e simulate fleet tenants mutations fuzz-schedules fuzz-advice fuzz parity audit bench bench-smoke loadtest burst soak replicas handovers takeovers endurance beside versions size compare at-rest idle figures quote workflows-test release-dry-run

help: ## Lists these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Runs cronwheel on its own real control plane, with one example CronJob, until Ctrl-C
	cargo run --quiet --package testbed -- demo

demo-cluster: ## Runs a control plane with three nodes and a Prometheus, to try the README's helm command, until Enter; needs root
	CRONWHEEL_INSTALL_DEMO=1 cargo test --test install demo:: -- --skip ::tests:: --nocapture

demo-pictures: ## Draws the dashboards of the last MINUTES=10 into target/dashboards; PROMETHEUS=URL, which demo-cluster prints
	$(if $(PROMETHEUS),,$(error PROMETHEUS=URL is missing))
	mkdir -p target/dashboards
	python3 tests/dashboard_results.py $(PROMETHEUS) $(or $(MINUTES),10) > target/dashboards/results.json
	python3 tests/dashboard_pictures.py target/dashboards/results.json target/dashboards

check: format lint test simulate bench-smoke image-test install-test ## Runs all checks of CI

format: ## Checks the formatting with rustfmt
	cargo fmt --all --check

lint: ## Runs clippy with warnings as errors, also with the features of the release image; checks that every mutation applies; tests the scripts of make versions and of a release
	cargo clippy --workspace --all-targets --quiet -- --deny warnings
	cargo clippy --no-default-features --quiet -- --deny warnings
	python3 tests/mutations.py apply
	python3 testbed/test_versions.py
	python3 release/test_release.py

test: browser ## All tests, including those on a real kube-apiserver and in a browser
	cargo test --workspace --quiet

test-fast: ## Tests that need neither Go nor Python
	cargo test --workspace --quiet --lib
	cargo test --quiet --test it -- --skip differential --skip dev::kubectl

browser: ## Installs Chromium and ChromeDriver for the tests of the page, on Debian as root
	@testbed/browser.sh

page-test: browser ## Tests the page of `cronwheel ui` in Chromium, on a real kube-apiserver; two minutes
	cargo test --quiet --test e2e -- page::

page-pictures: browser ## Draws the pictures of the page into docs/pictures
	cargo test --quiet --test e2e -- --ignored page::pictures

chart-test: ## Tests of the Helm chart and its dashboards; the first run builds helm and Prometheus in about six minutes
	cargo test --quiet --test chart

alerts-test: ## Tests that every alert fires, clears and stays silent, and that any changed expression fails a test; five minutes, and two to build promtool
	CRONWHEEL_ALL_CHANGED_ALERTS=1 cargo test --quiet --test chart alerts::

dashboards-test: ## Runs every query of dashboards and alerts on a real Prometheus, compares counts with the audit log, and makes every metric change; seven minutes
	cargo test --test e2e -- --ignored --nocapture dashboards::

dashboard-pictures: ## Runs dashboards-test, and draws the dashboards with its data into docs/dashboards
	CRONWHEEL_DASHBOARD_RESULTS=$(CURDIR)/target/dashboards.json $(MAKE) dashboards-test
	python3 tests/dashboard_pictures.py target/dashboards.json docs/dashboards

image: ## Builds the image as an OCI layout in target/image/oci, without a base image or a container engine
	python3 deploy/image/build.py

image-test: ## Runs the controller in the unpacked image, read-only and as its user, against the test bed; without root, checks only the layout
	python3 deploy/image/test.py

image-reproducible: ## Builds the image in two folders from scratch, and compares the digests; twenty minutes
	python3 deploy/image/reproduce.py

install-test: ## Installs, upgrades and removes the chart with helm on nodes of the test bed while CronJobs run; seven minutes; needs root
	CRONWHEEL_INSTALL_TEST=1 cargo test --test install -- cases:: page:: helm_test:: --nocapture

hpa-test: ## Tests the chart's autoscaler from one replica to five to two, with and without metrics, while CronJobs run; ten minutes; needs root
	CRONWHEEL_HPA_TEST=1 cargo test --test install autoscaling:: -- --skip ::tests:: --nocapture --test-threads=1

e2e: ## Tests the controller as a process on a real kube-apiserver; or CASE=firing
	cargo test --test e2e -- $(CASE)

simulate: ## Simulates the whole controller: SEEDS=25 from SEED=1, MINUTES=1440 each
	CRONWHEEL_SIM_SEEDS=$(or $(SEEDS),25) CRONWHEEL_SIM_SEED=$(or $(SEED),1) CRONWHEEL_SIM_MINUTES=$(or $(MINUTES),1440) \
		cargo test --profile simulate --quiet --test simulation sim::no_run -- --nocapture

fleet: ## Simulates fleets of replicas with random faults: SEEDS=50 from SEED=1
	CRONWHEEL_FLEET_SEEDS=$(or $(SEEDS),50) CRONWHEEL_FLEET_SEED=$(or $(SEED),1) \
		cargo test --profile sim --quiet --test it fleet::drawn -- --nocapture

tenants: ## Simulates misbehaving or failing tenants together with others, and compares the others' results with a run without them
	cargo test --quiet --test it tenants:: -- --nocapture

mutations: ## Breaks the controller in one place at a time, and expects the simulation or the fleets to fail within 20 seeds; or NAMES=fleet
	CARGO_TARGET_DIR=target/mutations python3 tests/mutations.py $(NAMES)

fuzz-schedules: ## Compares random schedules with the library that Kubernetes uses: SECONDS=600 or QUERIES=20000000, SEED=1
	CRONWHEEL_FUZZ_SECONDS=$(SECONDS) CRONWHEEL_FUZZ_QUERIES=$(QUERIES) CRONWHEEL_FUZZ_SEED=$(SEED) \
		cargo test --quiet --test it differential -- --nocapture

fuzz-advice: ## Passes random schedules of other tools, zones and manifests to next and explain --check, and checks every suggestion: SECONDS=600, SEED=1
	CRONWHEEL_FUZZ_SECONDS=$(or $(SECONDS),600) CRONWHEEL_FUZZ_SEED=$(SEED) cargo test --quiet --test it advice:: -- --nocapture

soak: ## Runs fifty years of schedules in every time zone, and a shard through ten years; 30 minutes; or YEARS=2016
	CRONWHEEL_SOAK=$(or $(YEARS),full) cargo test --quiet --test it soak -- --nocapture

fuzz: ## Runs a coverage-guided fuzz target, TARGET=schedule, event or explain, for SECONDS=600; needs cargo-fuzz and a nightly toolchain
	cargo +nightly fuzz run $(TARGET) -- -max_total_time=$(or $(SECONDS),600)

parity: ## Compares the built-in controller and cronwheel on the same objects at the same time; all worlds, or WORLD=name
	cargo test --test e2e -- --include-ignored parity::$(WORLD)

replicas: ## Replaces, kills, freezes and cuts off replicas on a real kube-apiserver, with two slots per case; or CASE=frozen
	CRONWHEEL_REPLICAS_SLOTS=2 cargo test --test e2e -- --include-ignored replicas::$(CASE)

versions: ## Runs the tests on a real API server with each Kubernetes from 1.30 to 1.37, and writes docs/reference/versions.md; hours; or VERSIONS="1.31.14"
	python3 testbed/versions.py $(VERSIONS)

audit: ## Checks licences, advisories and sources of all dependencies by deny.toml; needs cargo-deny and the network
	@cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	cargo deny --workspace check

bench: ## All benches in full
	cargo bench --benches

bench-smoke: ## Each bench once, at its smallest size
	cargo test --quiet --benches -- --test

loadtest: ## Runs 500 minutely CronJobs for three minutes, and checks the Jobs by the API server's audit log
	$(LOADTEST) minutely --cronjobs 500 --minutes 3

compare: ## Measures controllers in turn on the same load; 36 minutes, with QUICK=1 eight; SCENARIO=mixed; TARGET=server-defaults
	$(LOADTEST) compare $(if $(QUICK),--quick,--rounds $(or $(ROUNDS),3) --minutes 1) --scenario $(or $(SCENARIO),minutely) --target $(or $(TARGET),testbed) \
		$(if $(CRONJOBS),--cronjobs $(CRONJOBS)) $(if $(NAMESPACES),--namespaces $(NAMESPACES)) $(if $(CONTROLLERS),--controllers $(CONTROLLERS)) \
		--slo loadtest/slo$(if $(filter failing-namespaces slow-tenant,$(SCENARIO)),-$(SCENARIO)).yaml \
		--json $(or $(JSON),target/compare.json) --html $(or $(HTML),target/compare.html)

at-rest: ## Measures the memory of controllers with CRONJOBS=20000 CronJobs, none of which is due
	$(LOADTEST) compare --scenario at-rest --cronjobs $(or $(CRONJOBS),20000) --controllers built-in-unthrottled,cronwheel \
		--rounds $(or $(ROUNDS),1) --warm-up-minutes 0 --minutes 1 --json $(or $(JSON),target/at-rest.json)

idle: ## Measures the time from a slot to the arrival of the create on an idle API server, with ten CronJobs; twelve minutes
	$(LOADTEST) compare --cronjobs 10 --controllers cronwheel --rounds 1 --minutes 12 --json $(or $(JSON),target/idle.json)

burst: ## Measures bursts of CRONJOBS=1000 creates by cronwheel and by a bare client in turn, and their ratio
	$(LOADTEST) burst --cronjobs $(or $(CRONJOBS),1000) --bursts $(or $(BURSTS),6) $(if $(JSON),--json $(JSON))

figures: ## Measures all results that README and docs quote, into loadtest/results; two and a half hours; RUN=date-machine
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

quote: ## Regenerates the marked tables of README and docs from the files in loadtest/results
	$(LOADTEST) quote

handovers: ## Replaces and kills five replicas that share 2000 minutely CronJobs, beside FOREIGN_JOBS=0 Jobs of no CronJob, and measures how long shards have no leader
	$(LOADTEST) handovers --foreign-jobs $(or $(FOREIGN_JOBS),0)

takeovers: ## Kills, or with FREEZE=1 freezes, one of three replicas KILLS=20 times, with CRONJOBS=20000 CronJobs, JOBS=0 completed Jobs of each and CHANGES=0 changes per second; measures how long shards have no leader, and memory
	$(LOADTEST) takeovers --kills $(or $(KILLS),20) --cronjobs $(or $(CRONJOBS),20000) --jobs-per-cronjob $(or $(JOBS),0) --changes-per-second $(or $(CHANGES),0) $(if $(FREEZE),--freeze) $(if $(JSON),--json $(JSON))

endurance: ## Runs 500 minutely CronJobs with three replicas for MINUTES=60, replaces one every five minutes, and measures memory and open files
	$(LOADTEST) endurance --minutes $(or $(MINUTES),60)

beside: ## Runs cronwheel beside the built-in controller, which the admission policy keeps out of labelled namespaces; OUTAGES=10 MOVES=10 kills them and moves a namespace, MIXED=1 mixes policies, zones and durations, SHARED_IDENTITY=1 uses the user of kube-controller-manager, INSTALLATIONS=2 runs two installations
	$(LOADTEST) beside $(if $(CRONJOBS),--cronjobs $(CRONJOBS)) $(if $(MIXED),--mixed) $(if $(SHARED_IDENTITY),--shared-identity) --installations $(or $(INSTALLATIONS),1) --outages $(or $(OUTAGES),0) --moves $(or $(MOVES),0)

size: ## Lines and code tokens of the controller without tests, by folder; REVISION= for another commit
	python3 tests/size.py $(REVISION)

workflows-test: ## Checks the workflows in .github with actionlint, which Go builds the first time
	$$(python3 release/tools.py actionlint) -shellcheck= -pyflakes= .github/workflows/*.yml

release-dry-run: workflows-test ## Runs the steps of a release that need no identity, for this architecture, into target/release-dry-run; builds as long as make image
	python3 release/test_release.py
	python3 release/dry_run.py
