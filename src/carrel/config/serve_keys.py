"""The settings of the service."""

from __future__ import annotations

from pathlib import Path

from carrel.config.key import Key
from carrel.config.kind import ABSOLUTE, SWITCH, TEXT, ceiling, number
from carrel.config.network_kinds import ALGORITHMS, DOCUMENT, HOST_NAME, ORIGINS

YEAR_SECONDS = 365 * 86_400

HOST = Key(
    name="serve.host",
    kind=HOST_NAME,
    default="127.0.0.1",
    meaning="The address that the service listens at.",
    variable="CARREL_SERVE_HOST",
)
PORT = Key(
    name="serve.port",
    kind=number(0, 65_535),
    default=8080,
    meaning="The port of HTTP and MCP; 0 is any that is free.",
    variable="CARREL_SERVE_PORT",
)
GRPC = Key(
    name="serve.grpc",
    kind=SWITCH,
    default=True,
    meaning="Whether the service speaks gRPC as well.",
    variable="CARREL_SERVE_GRPC",
)
GRPC_PORT = Key(
    name="serve.grpc_port",
    kind=number(0, 65_535),
    default=50_051,
    meaning="The port of gRPC; 0 is any that is free.",
    variable="CARREL_SERVE_GRPC_PORT",
)
TLS_CERT: Key[Path | None] = Key(
    name="serve.tls_cert",
    kind=ABSOLUTE,
    default=None,
    meaning="A PEM file with the certificate of the service and those between it and its authority; with it,"
    " HTTP and gRPC are spoken over TLS alone.",
    variable="CARREL_SERVE_TLS_CERT",
)
TLS_KEY: Key[Path | None] = Key(
    name="serve.tls_key",
    kind=ABSOLUTE,
    default=None,
    meaning="A PEM file with the private key of that certificate, which must not be encrypted.",
    variable="CARREL_SERVE_TLS_KEY",
)
REQUIRE_KEY = Key(
    name="serve.require_key",
    kind=SWITCH,
    default=True,
    meaning="Whether callers on loopback must have a key too; the local token is one. Elsewhere all must.",
    variable="CARREL_SERVE_REQUIRE_KEY",
)
ISOLATE_SESSIONS = Key(
    name="serve.isolate_sessions",
    kind=SWITCH,
    default=True,
    meaning="Whether each session runs guest Python in processes of its own; if not, each tenant does.",
    variable="CARREL_SERVE_ISOLATE_SESSIONS",
)
RATE_PER_MINUTE = Key(
    name="serve.rate_per_minute",
    kind=ceiling(1, 10**9),
    default=6_000,
    meaning="Most requests of one caller in a minute, unless its key says otherwise.",
    variable="CARREL_SERVE_RATE_PER_MINUTE",
)
MAX_BODY_MB = Key(
    name="serve.max_body_mb",
    kind=number(1, 10**6),
    default=128,
    meaning="Most MiB (2**20 bytes) that one request sends.",
    variable="CARREL_SERVE_MAX_BODY_MB",
)
UPLOADS_MB = Key(
    name="serve.uploads_mb",
    kind=number(1, 10**6),
    default=2_048,
    meaning="Most MiB of archives on their way in that are held on the disk at one time for one tenant, and"
    " half as many for one session.",
    variable="CARREL_SERVE_UPLOADS_MB",
)
MAX_REQUESTS = Key(
    name="serve.max_requests",
    kind=number(1, 10**6),
    default=1_024,
    meaning="Most requests at one time.",
    variable="CARREL_SERVE_MAX_REQUESTS",
)
EXECUTIONS = Key(
    name="serve.executions",
    kind=number(1, 10**4),
    default=32,
    meaning="Most commands and programs that run at one time.",
    variable="CARREL_SERVE_EXECUTIONS",
)
EXECUTIONS_PER_CALLER = Key(
    name="serve.executions_per_caller",
    kind=number(1, 10**4),
    default=8,
    meaning="Most of them that one caller has.",
    variable="CARREL_SERVE_EXECUTIONS_PER_CALLER",
)
TIMEOUT_SECONDS = Key(
    name="serve.timeout_seconds",
    kind=number(1, YEAR_SECONDS),
    default=300,
    meaning="Longest time of one request.",
    variable="CARREL_SERVE_TIMEOUT_SECONDS",
)
SHUTDOWN_SECONDS = Key(
    name="serve.shutdown_seconds",
    kind=number(0, 3_600),
    default=10,
    meaning="How long a service that is told to stop waits for what is still running.",
    variable="CARREL_SERVE_SHUTDOWN_SECONDS",
)
IDLE_SECONDS = Key(
    name="serve.idle_seconds",
    kind=number(1, YEAR_SECONDS),
    default=900,
    meaning="An open session that is not used for so long is closed; it stays as it is.",
    variable="CARREL_SERVE_IDLE_SECONDS",
)
OPEN_SESSIONS = Key(
    name="serve.open_sessions",
    kind=number(1, 10**6),
    default=256,
    meaning="Most sessions that are open at one time.",
    variable="CARREL_SERVE_OPEN_SESSIONS",
)
SWEEP_SECONDS = Key(
    name="serve.sweep_seconds",
    kind=number(1, YEAR_SECONDS),
    default=60,
    meaning="How often expired sessions are looked for and removed.",
    variable="CARREL_SERVE_SWEEP_SECONDS",
)
RESUME_SECONDS = Key(
    name="serve.resume_seconds",
    kind=number(0, 3_600),
    default=5,
    meaning="How long a command goes on while nobody reads its output, so that a reader can come back.",
    variable="CARREL_SERVE_RESUME_SECONDS",
)
CORS_ORIGINS = Key(
    name="serve.cors_origins",
    kind=ORIGINS,
    default=[],
    meaning="The web pages, as `https://host`, whose scripts may call the service.",
    variable="CARREL_SERVE_CORS_ORIGINS",
)
METRICS = Key(
    name="serve.metrics",
    kind=SWITCH,
    default=True,
    meaning="Whether `/metrics` is there.",
    variable="CARREL_SERVE_METRICS",
)
JWT_ISSUER: Key[str | None] = Key(
    name="serve.jwt_issuer",
    kind=TEXT,
    default=None,
    meaning="Who makes the tokens (JWT) that callers may have instead of a key.",
    variable="CARREL_SERVE_JWT_ISSUER",
)
JWT_AUDIENCE: Key[str | None] = Key(
    name="serve.jwt_audience",
    kind=TEXT,
    default=None,
    meaning="Whom those tokens must be meant for.",
    variable="CARREL_SERVE_JWT_AUDIENCE",
)
JWT_JWKS: Key[str | None] = Key(
    name="serve.jwt_jwks",
    kind=DOCUMENT,
    default=None,
    meaning="Where the keys are that those tokens are signed with.",
    variable="CARREL_SERVE_JWT_JWKS",
)
JWT_ALGORITHMS = Key(
    name="serve.jwt_algorithms",
    kind=ALGORITHMS,
    default=["RS256", "ES256", "EdDSA"],
    meaning="How those tokens may be signed.",
    variable="CARREL_SERVE_JWT_ALGORITHMS",
)
JWT_TENANT_CLAIM = Key(
    name="serve.jwt_tenant_claim",
    kind=TEXT,
    default="sub",
    meaning="What in such a token names the tenant, whose sessions the caller sees.",
    variable="CARREL_SERVE_JWT_TENANT_CLAIM",
)
JWT_ROLES_CLAIM = Key(
    name="serve.jwt_roles_claim",
    kind=TEXT,
    default="roles",
    meaning="What in such a token names the roles; the caller acts in the first that is configured.",
    variable="CARREL_SERVE_JWT_ROLES_CLAIM",
)
TRACES = Key(
    name="serve.traces",
    kind=SWITCH,
    default=False,
    meaning="Whether OpenTelemetry is told about every request.",
    variable="CARREL_SERVE_TRACES",
)

SERVE_KEYS: tuple[Key[object], ...] = (
    HOST,
    PORT,
    GRPC,
    GRPC_PORT,
    TLS_CERT,
    TLS_KEY,
    REQUIRE_KEY,
    ISOLATE_SESSIONS,
    RATE_PER_MINUTE,
    MAX_BODY_MB,
    UPLOADS_MB,
    MAX_REQUESTS,
    EXECUTIONS,
    EXECUTIONS_PER_CALLER,
    TIMEOUT_SECONDS,
    SHUTDOWN_SECONDS,
    IDLE_SECONDS,
    OPEN_SESSIONS,
    SWEEP_SECONDS,
    RESUME_SECONDS,
    CORS_ORIGINS,
    METRICS,
    JWT_ISSUER,
    JWT_AUDIENCE,
    JWT_JWKS,
    JWT_ALGORITHMS,
    JWT_TENANT_CLAIM,
    JWT_ROLES_CLAIM,
    TRACES,
)
"""In the order in which they are listed."""
