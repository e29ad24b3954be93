# The service in one image, with the guest compiled in: docker build -t carrel .
#
# PYTHON_IMAGE is any image with Python 3.11 or newer. All stages use the same one, since the environment built in
# the first stage runs in the last. To configure pip, for example with a private package index:
# docker build --secret id=pip,src=pip.conf -t carrel .

ARG PYTHON_IMAGE=python:3.11-slim

# --- build stage: carrel and its dependencies, in the tested versions

FROM ${PYTHON_IMAGE} AS environment
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
COPY docs/man docs/man
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python -m pip wheel --quiet --no-deps --wheel-dir /wheel . \
    && python -m venv /opt/carrel \
    && /opt/carrel/bin/python -m pip install --quiet --constraint constraints.txt \
        "$(echo /wheel/carrel-*.whl)[python,mcp,otel]" \
    && /opt/carrel/bin/python -m pip uninstall --quiet --yes pip setuptools

# --- runtime stage: no compiler, no pip, nothing owned by root

FROM ${PYTHON_IMAGE} AS service
# Numeric ids, so that a cluster can verify that the user is not root. The guest and the sessions must belong to
# the user of the service, and be inaccessible to others.
ARG USER_ID=10001
RUN mkdir -p /var/lib/carrel/cache /var/lib/carrel/sessions \
    && chmod 0700 /var/lib/carrel/cache /var/lib/carrel/sessions \
    && chown -R ${USER_ID}:${USER_ID} /var/lib/carrel
COPY --from=environment /opt/carrel /opt/carrel
ENV PATH=/opt/carrel/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    CARREL_CACHE=/var/lib/carrel/cache \
    CARREL_SESSIONS_DIR=/var/lib/carrel/sessions
USER ${USER_ID}:${USER_ID}
WORKDIR /var/lib/carrel
# Takes minutes of CPU time and 2.7 GB of memory, once. The machine code is for the CPU of the build machine; on a CPU
# that lacks its features the guest is compiled again, into a writable cache.
RUN carrel setup

VOLUME /var/lib/carrel/sessions
EXPOSE 8080 50051
STOPSIGNAL SIGTERM
# With a client that ignores proxies: an engine may configure one for every container.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import os, ssl, http.client as h; tls = {'context': ssl._create_unverified_context()} if os.environ.get('CARREL_SERVE_TLS_CERT') else {}; c = (h.HTTPSConnection if tls else h.HTTPConnection)('127.0.0.1', os.environ.get('CARREL_SERVE_PORT', '8080'), timeout=2, **tls); c.request('GET', '/healthz'); exit(c.getresponse().status != 200)"]
ENTRYPOINT ["carrel"]
CMD ["serve", "--host", "0.0.0.0"]
