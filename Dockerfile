# syntax=docker/dockerfile:1

FROM rust:1.95-bookworm AS build
WORKDIR /src
# .dockerignore lets in what the build reads. The tests are not built, but cargo wants to see what the manifest names.
COPY . .
# Dependencies and what was compiled of them outlive this build in the cache mounts; the binary has to be copied out.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin cronjob-controller \
 && cp target/release/cronjob-controller /cronjob-controller

# glibc of the same Debian, and CA certificates; no shell, no package manager. The time zones are in the binary.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /cronjob-controller /cronjob-controller
# Numeric, so that runAsNonRoot can be judged without reading /etc/passwd.
USER 65532:65532
ENTRYPOINT ["/cronjob-controller"]
