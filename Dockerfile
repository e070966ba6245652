# The program alone: docker build -t laneway . && docker run --rm laneway --version
# (with --build-arg LANEWAY_COMMIT=$(git rev-parse HEAD) it names its commit).
FROM rust:1-bookworm AS build
ARG LANEWAY_COMMIT
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p laneway-cli --no-default-features --features parquet-inventory

# The platform's certificates, glibc and nothing else.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/laneway /usr/local/bin/laneway
ENTRYPOINT ["laneway"]
