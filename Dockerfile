# An image with only the program: docker build -t laneway . && docker run --rm laneway --version. With --build-arg LANEWAY_COMMIT=$(git
# rev-parse HEAD), `--version` also prints the commit.
FROM rust:1-bookworm AS build
ARG LANEWAY_COMMIT
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p laneway-cli --no-default-features --features parquet-inventory

# The base image contains only CA certificates and glibc.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/laneway /usr/local/bin/laneway
ENTRYPOINT ["laneway"]
