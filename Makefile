# `make` lists the tasks. A task installs the tools that it needs. Tasks write only to this folder, to the caches of package managers, and
# to ~/.cache/laneway-interop.
CARGO ?= cargo
BINDINGS = --features laneway-object-store/object_store_0_13,laneway-object-store/http-connector,laneway-object-store/opendal-transport

.DEFAULT_GOAL := help
.PHONY: help demo picture test python jvm consumers soak fuzz lint prose platforms bench docs public-api interop judges

help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build the program and compare it with other methods, without an account or a network; writes laneway-report.html
	$(CARGO) run --release --locked -p laneway-cli -- demo

test: ## run every test
	$(CARGO) test --workspace $(BINDINGS) --locked
	.ci/python
	.ci/jvm

python: ## build the Python package as a wheel, into target/wheels
	.ci/wheel

jvm: ## build the JVM's modules with the release build of the library, and test them; the jars are in bindings/jvm/*/target
	LANEWAY_JVM_PROFILE=release .ci/jvm

consumers: ## test the crates with DataFusion, the JVM's modules with Spark, Hudi and Iceberg, and the Python package with pandas, pyarrow, Dask, DuckDB, Polars, zarr and PyTorch; run plans on Spark and Ray
	.ci/consumers

soak: ## run long tests: the dispatcher on 100000 random networks, transfers killed at 200 moments each, resumed downloads of a GiB, jobs of minutes, and three hours of mixed work
	LANEWAY_SOAK_SEEDS=100000 CARGO_PROFILE_RELEASE_LTO=off \
		$(CARGO) test --release -p laneway-lanes --locked --lib whatever_the_network_does
	LANEWAY_SOAK_DOWNLOAD_MIB=1024 CARGO_PROFILE_RELEASE_LTO=off \
		$(CARGO) test --release -p laneway-cli --locked --test resuming killed_ten_times
	LANEWAY_SOAK_KILLS=200 LANEWAY_SOAK_FAILINGS=1 CARGO_PROFILE_RELEASE_LTO=off \
		$(CARGO) test --release -p laneway-cli --locked --test crash_safety
	LANEWAY_SOAK_LONG_JOB_S=70 CARGO_PROFILE_RELEASE_LTO=off \
		$(CARGO) test --release -p laneway --locked --test moving long_jobs
	LANEWAY_SOAK_MINUTES=$${LANEWAY_SOAK_MINUTES:-60} CARGO_PROFILE_RELEASE_LTO=off \
		$(CARGO) test --release -p laneway-cli --locked --test soak -- --nocapture --test-threads 1

fuzz: ## fuzz every parser with libFuzzer for a minute (FUZZ_SECONDS)
	.ci/fuzz

lint: ## check formatting, prose, clippy, documentation, and the licences and duplicates of dependencies
	$(CARGO) fmt --all --check
	.ci/prose --count
	$(CARGO) clippy --workspace --all-targets $(BINDINGS) --locked -- -D warnings
	$(CARGO) clippy -p laneway-cli --no-default-features --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps $(BINDINGS) --locked
	command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked
	$(CARGO) deny --locked check bans licenses sources

prose: ## list long sentences, awkward openings and long names of tests
	.ci/prose

platforms: ## check the program for macOS, and test what replaces Linux's socket options elsewhere
	.ci/platforms

picture: ## run the demo and draw docs/demo.svg, the README's picture
	$(CARGO) run --release --locked -p laneway-cli -- --json demo --no-report >target/demo.jsonl
	docs/picture <target/demo.jsonl >docs/demo.svg

bench: ## compare Laneway with other methods on an embedded store; writes laneway-report.html
	$(CARGO) run --release --locked -p laneway-cli -- bench all

docs: ## build the documentation of the crates
	$(CARGO) doc --workspace --no-deps $(BINDINGS) --locked

public-api: ## update crates/laneway/public-api.txt, the list of the library's public items
	LANEWAY_WRITE_PUBLIC_API=1 $(CARGO) test -p laneway-testkit --locked --test public_api

interop: ## test with other projects' servers and clients: MinIO, moto, gcloud, boto3, rclone, ... (installs them)
	interop/run

judges: ## run other projects' tests: ceph/s3-tests, gcsfs, s3fs and unstorage against `laneway serve`, obstore's on the Python package, and the program against Google's testbench (clones them)
	interop/judges/run
