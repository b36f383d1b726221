# The image is one static binary and the licences of what is in it: no shell, no libraries, no files to patch.
#
# Static with glibc, and neither with musl nor on a distroless base with glibc:
# - The program uses two things of the C library that differ between the two: the allocator, which all measured figures
#   are with, and getaddrinfo. musl's allocator has one lock for all threads; another one would be one more dependency.
# - getaddrinfo is what is said to break in a static glibc binary, since it loads modules at run time. Since glibc 2.34
#   `files` and `dns` are built in, and without /etc/nsswitch.conf these two are what is asked. `make image-test` runs the
#   binary in a root that has no such file, with names from /etc/hosts and from DNS.
# - What a static binary cannot ask the dynamic linker for, it does without: random numbers are seeded from /dev/urandom,
#   which every container has.
# - The certificate authority of the API server comes with the service account or the kubeconfig, and the time zones are
#   in the binary, so nothing of a base image would be used.
ARG BUILDER=docker.io/library/rust:1.95.0-bookworm

FROM ${BUILDER} AS build
WORKDIR /src
# .dockerignore lets in what the build reads. The tests are not built, but cargo wants to see what the manifest names.
COPY . .
# What /version says. All of it comes from the commit, so that two builds of one commit give one image.
ARG GIT_COMMIT=
ARG GIT_TREE_STATE=
ARG SOURCE_DATE_EPOCH=0
# The sources of the dependencies have one name wherever cargo keeps them, so that this binary can be built elsewhere, too.
ENV RUSTFLAGS="--remap-path-prefix=/usr/local/cargo=/cargo"
# Dependencies and what was compiled of them outlive this build in the cache mounts; what the image holds has to be copied out.
# Builds for several platforms take turns, or one would copy the other's binary.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,sharing=locked \
    BUILD_DATE="$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" make static \
 && cp --preserve=mode,timestamps target/image/root/* /

# `make image-offline` builds this stage alone, with a directory in the place of the stage above.
FROM scratch
COPY --from=build /cronjob-controller /LICENSE /THIRD_PARTY_LICENSES /
LABEL org.opencontainers.image.title="cronjob-controller" \
      org.opencontainers.image.description="The Kubernetes CronJob controller, outside kube-controller-manager" \
      org.opencontainers.image.licenses="Apache-2.0"
# Numeric, so that runAsNonRoot can be judged without reading /etc/passwd.
USER 65532:65532
ENTRYPOINT ["/cronjob-controller"]
