# The image holds one static binary and the licences of its parts: no shell, no libraries, no files to patch.
#
# The binary is static with glibc, not with musl, and not on a distroless base with glibc:
# - The program uses two parts of the C library that differ between glibc and musl: the allocator and getaddrinfo. All
#   measured figures are with glibc's allocator. musl's has one lock for all threads, and another allocator would be
#   one more dependency.
# - getaddrinfo is known to break in static glibc binaries, since it loads modules at run time. Since glibc 2.34,
#   `files` and `dns` are built in, and without /etc/nsswitch.conf only these two are used. `make image-test` runs the
#   binary in a root without that file, with names from /etc/hosts and from DNS.
# - A static binary cannot use the dynamic linker: random numbers are seeded from /dev/urandom, which every container
#   has.
# - The certificate authority of the API server comes with the service account or the kubeconfig, and the time zones
#   are in the binary. So the program would use nothing of a base image.
ARG BUILDER=docker.io/library/rust:1.95.0-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1

FROM ${BUILDER} AS build
WORKDIR /src
# .dockerignore admits what the build reads. The tests are not built, but cargo checks that the files in the manifest
# exist.
COPY . .
# The values of /version. All of them come from the commit, so that two builds of one commit give the same image.
ARG GIT_COMMIT=
ARG GIT_TREE_STATE=
ARG SOURCE_DATE_EPOCH=0
# The sources of the dependencies have the same path wherever cargo keeps them, so that this binary is reproducible
# elsewhere.
ENV RUSTFLAGS="--remap-path-prefix=/usr/local/cargo=/cargo"
# The cache mounts keep dependencies and compiled artifacts between builds, so the image's files have to be copied
# out. Builds for several platforms take turns; otherwise one would copy the other's binary.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,sharing=locked \
    BUILD_DATE="$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" make static \
 && cp --preserve=mode,timestamps target/image/root/* /

# `make image-offline` builds this stage alone, with a directory in place of the stage above.
FROM scratch
COPY --from=build /cronjob-controller /LICENSE /THIRD_PARTY_LICENSES /
LABEL org.opencontainers.image.title="cronjob-controller" \
      org.opencontainers.image.description="The Kubernetes CronJob controller, outside kube-controller-manager" \
      org.opencontainers.image.licenses="Apache-2.0"
# Numeric, so that runAsNonRoot can be checked without /etc/passwd.
USER 65532:65532
ENTRYPOINT ["/cronjob-controller"]
