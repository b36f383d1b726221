# The fixture says which Kubernetes it is, or it would call itself v0.0.0.
KUBERNETES_VERSION := v1.36.3
VERSION_PACKAGE := k8s.io/component-base/version
FIXTURE := tests/controlplane/bin/controlplane
PAIRED := benches/paired/bin/paired
# kubebuilder calls it IMG.
IMAGE ?= $(or $(IMG),cronjob-controller:latest)

# Which of manifests/ `make deploy` applies: default (batch/v1), tutorial, or tutorial-certmanager.
OVERLAY ?= default
PLATFORMS ?= linux/amd64,linux/arm64

.PHONY: all build run fmt vet generate manifests check test e2e fault-matrix soak bench bench-size
.PHONY: bench-burst bench-paired demo fixture ci
.PHONY: docker-build docker-push docker-buildx install uninstall deploy undeploy

all: check test

build:
	cargo build --release --locked

# What `make install` installed, against the cluster of the current context, without webhooks: no cluster reaches them here.
# RUN_ARGS are the controller's own flags.
RUN_CONTROLLERS ?= tutorial,apiexample
RUN_ARGS ?= --kubeconfig=$(or $(KUBECONFIG),$(HOME)/.kube/config) --controllers=$(RUN_CONTROLLERS) --webhook-port=0 \
	--leader-elect=false --secure-port=0
run:
	cargo run --release --locked -- $(RUN_ARGS)

fmt:
	cargo fmt

vet:
	cargo clippy --locked --all-targets -- -D warnings

# The CustomResourceDefinitions, from the Rust types; a test fails when they are stale. What kubebuilder generates of code,
# the compiler derives.
manifests generate:
	cargo run --quiet --locked -- crd --output-dir manifests/crd/bases

check:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items

# End-to-end tests are skipped, with a line that says so, until `make fixture` has been run.
test:
	cargo test --locked

e2e: fixture
	REQUIRE_FIXTURE=1 cargo test --locked --test e2e

# What breaks in the middle of the work, and what comes of it; a table. `FAULTS=etcd` runs the cases so called.
FAULTS ?=
fault-matrix: fixture
	cargo test --locked --test faults -- --matrix $(FAULTS)

# Thousands of minutely CronJobs for an hour, with kills: SOAK_MINUTES=60 SOAK_CRONJOBS=5000.
soak: fixture
	cargo test --locked --test faults -- --soak

# Would the tests notice? Deliberate defects, each applied to a copy of the sources and tested; a table.
PATCHES ?=
mutants:
	tests/mutants/run $(PATCHES)

bench: $(PAIRED)
	cargo bench --locked

# The README's table of cost against size, from 100 to 100,000 CronJobs; `SIZES=10000` measures one.
SIZES ?=
bench-size:
	cargo bench --locked --bench size --no-run
	cargo build --release --locked
	SIZE_CONTROLLER=target/release/cronjob-controller \
		$$(ls -t target/release/deps/size-* | grep -v '\.d$$' | head -n 1) --bench $(SIZES)

# How late thousands of Jobs are that are due at once: bare creation, the in-tree controller and this one, on a real
# control plane. `BURST_ARGS=--help` lists what else it can do.
BURST_ARGS ?= --standard
bench-burst: fixture
	cargo bench --locked --bench burst --no-run
	cargo build --release --locked
	$$(ls -t target/release/deps/burst-* | grep -v '\.d$$' | head -n 1) $(BURST_ARGS)

# Schedules and the queue beside robfig/cron and client-go, in one run.
bench-paired: $(PAIRED)
	cargo bench --locked --bench paired

$(PAIRED): benches/paired/main.go benches/paired/go.mod benches/paired/go.sum
	cd benches/paired && CGO_ENABLED=0 go build -trimpath -o bin/paired .

# The controller on a real control plane, on loopback: watch CronJobs fire. Ctrl-C ends it.
demo: fixture build
	tests/controlplane/demo

# etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one binary, from the Go module proxy.
# Some minutes the first time, seconds from then on.
fixture: $(FIXTURE)

$(FIXTURE): $(wildcard tests/controlplane/*.go) tests/controlplane/go.mod tests/controlplane/go.sum
	cd tests/controlplane && CGO_ENABLED=0 go build -trimpath -o bin/controlplane -ldflags "-s -w \
		-X $(VERSION_PACKAGE).gitVersion=$(KUBERNETES_VERSION) \
		-X $(VERSION_PACKAGE).gitMajor=1 \
		-X $(VERSION_PACKAGE).gitMinor=36" .

ci:
	.ci/run

docker-build:
	docker build -t $(IMAGE) .

docker-push:
	docker push $(IMAGE)

# For several architectures at once; the image has to go to a registry.
docker-buildx:
	docker buildx build --push --platform=$(PLATFORMS) -t $(IMAGE) .

# The CustomResourceDefinitions alone.
install:
	kubectl apply -k manifests/crd

uninstall:
	kubectl delete --ignore-not-found -k manifests/crd

deploy:
	kubectl kustomize manifests/$(OVERLAY) | sed 's|image: cronjob-controller:latest|image: $(IMAGE)|' | kubectl apply -f -

undeploy:
	kubectl delete --ignore-not-found -k manifests/$(OVERLAY)
