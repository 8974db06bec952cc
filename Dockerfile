# A static spillgate in a small image, without rights of its own. docs/containers.md says how to use it.
FROM rust:1.95-bookworm AS build
# A release of Debian keeps one version of a package: there is none to pin.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends --yes musl-tools \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN target="$(uname -m)-unknown-linux-musl" \
    && rustup target add "$target" \
    && cargo build --profile dist --locked --package spillgate --target "$target" \
    && cp "target/$target/dist/spillgate" /spillgate

FROM alpine:3.22
# git reads the range of --repo, and the commit that a manifest names. Alpine drops old versions.
# hadolint ignore=DL3018
RUN apk add --no-cache git \
    && install -d -o 65532 -g 65532 /work
COPY --from=build /spillgate /usr/local/bin/spillgate
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["spillgate"]
CMD ["--help"]
