# A static binary on a distroless base: no shell, no package manager, nobody is root.
#   docker build --tag podautoscaler:0.1.0 .
#   docker build --build-arg PROGRAM=replica-fixer --tag replica-fixer:0.1.0 .
ARG PROGRAM=podautoscaler

FROM docker.io/library/rust:1-alpine AS build
ARG PROGRAM
# the C compiler builds what zstd and ring have in C
RUN apk add --no-cache build-base
WORKDIR /src
COPY . .
# on Alpine the target is musl, and its binaries are static; without `embedded` there is no simulated API server in it
RUN cargo build --locked --release --package "$PROGRAM" --no-default-features

FROM gcr.io/distroless/static-debian12:nonroot
ARG PROGRAM
COPY --from=build /src/target/release/${PROGRAM} /controller
USER 65532:65532
ENTRYPOINT ["/controller"]
