# pgheadroom with its embedded servers: docker build -t pgheadroom . && docker run --rm pgheadroom demo
#
# The core is built in the first stage; the second has no compiler.
FROM rust:1.95.0-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev make python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python3 -m venv /build \
 && /build/bin/pip wheel --quiet --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
COPY --from=build /wheels /wheels
COPY requirements.lock /wheels/
# The pinned versions with their hashes, what is for developers left out by what the wheel asks for.
RUN sed -E '/^[[:space:]]|^#/d; s/ \\$//' /wheels/requirements.lock >/wheels/constraints.txt \
 && pip install --quiet --no-cache-dir --constraint /wheels/constraints.txt /wheels/*.whl \
 && rm -r /wheels \
 && useradd --create-home --uid 1000 headroom
# PostgreSQL refuses to run as root.
USER 1000
WORKDIR /home/headroom
ENTRYPOINT ["pgheadroom"]
CMD ["--help"]
