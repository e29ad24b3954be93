"""The settings of the service."""

from __future__ import annotations

from pathlib import Path

from carrel.config.key import Key
from carrel.config.kind import ABSOLUTE, SWITCH, TEXT, number, number_or_none
from carrel.config.network_kinds import ALGORITHMS, DOCUMENT, HOST_NAME, ORIGINS

YEAR_SECONDS = 365 * 86_400

HOST = Key(
    name="serve.host",
    kind=HOST_NAME,
    default="127.0.0.1",
    meaning="Address on which the service listens.",
    variable="CARREL_SERVE_HOST",
)
PORT = Key(
    name="serve.port",
    kind=number(0, 65_535),
    default=8080,
    meaning="Port of HTTP and MCP; 0 chooses a free one.",
    variable="CARREL_SERVE_PORT",
)
GRPC = Key(
    name="serve.grpc",
    kind=SWITCH,
    default=True,
    meaning="Whether the service also offers gRPC.",
    variable="CARREL_SERVE_GRPC",
)
GRPC_PORT = Key(
    name="serve.grpc_port",
    kind=number(0, 65_535),
    default=50_051,
    meaning="Port of gRPC; 0 chooses a free one.",
    variable="CARREL_SERVE_GRPC_PORT",
)
TLS_CERT: Key[Path | None] = Key(
    name="serve.tls_cert",
    kind=ABSOLUTE,
    default=None,
    meaning="PEM file with the certificate chain of the service; if set, HTTP and gRPC are available over TLS"
    " only.",
    variable="CARREL_SERVE_TLS_CERT",
)
TLS_KEY: Key[Path | None] = Key(
    name="serve.tls_key",
    kind=ABSOLUTE,
    default=None,
    meaning="PEM file with the unencrypted private key of that certificate.",
    variable="CARREL_SERVE_TLS_KEY",
)
REQUIRE_KEY = Key(
    name="serve.require_key",
    kind=SWITCH,
    default=True,
    meaning="Whether callers on loopback need a key, such as the local token. Others always need one.",
    variable="CARREL_SERVE_REQUIRE_KEY",
)
ISOLATE_SESSIONS = Key(
    name="serve.isolate_sessions",
    kind=SWITCH,
    default=True,
    meaning="Whether each session runs guest Python in its own processes; otherwise each tenant does.",
    variable="CARREL_SERVE_ISOLATE_SESSIONS",
)
RATE_PER_MINUTE = Key(
    name="serve.rate_per_minute",
    kind=number_or_none(1, 10**9),
    default=6_000,
    meaning="Maximum number of requests per caller and minute; a key may set another rate.",
    variable="CARREL_SERVE_RATE_PER_MINUTE",
)
MAX_BODY_MB = Key(
    name="serve.max_body_mb",
    kind=number(1, 10**6),
    default=128,
    meaning="Maximum body size of one request, in MiB (2**20 bytes).",
    variable="CARREL_SERVE_MAX_BODY_MB",
)
UPLOADS_MB = Key(
    name="serve.uploads_mb",
    kind=number(1, 10**6),
    default=2_048,
    meaning="Maximum size in MiB of a tenant's archive uploads on disk at the same time; half as much for one"
    " session.",
    variable="CARREL_SERVE_UPLOADS_MB",
)
MAX_REQUESTS = Key(
    name="serve.max_requests",
    kind=number(1, 10**6),
    default=1_024,
    meaning="Maximum number of concurrent requests.",
    variable="CARREL_SERVE_MAX_REQUESTS",
)
EXECUTIONS = Key(
    name="serve.executions",
    kind=number(1, 10**4),
    default=32,
    meaning="Maximum number of commands and programs that run at the same time.",
    variable="CARREL_SERVE_EXECUTIONS",
)
EXECUTIONS_PER_CALLER = Key(
    name="serve.executions_per_caller",
    kind=number(1, 10**4),
    default=8,
    meaning="Maximum number of them per caller.",
    variable="CARREL_SERVE_EXECUTIONS_PER_CALLER",
)
TIMEOUT_SECONDS = Key(
    name="serve.timeout_seconds",
    kind=number(1, YEAR_SECONDS),
    default=300,
    meaning="Timeout of one request, in seconds.",
    variable="CARREL_SERVE_TIMEOUT_SECONDS",
)
SHUTDOWN_SECONDS = Key(
    name="serve.shutdown_seconds",
    kind=number(0, 3_600),
    default=10,
    meaning="How long the service waits for running requests on shutdown, in seconds.",
    variable="CARREL_SERVE_SHUTDOWN_SECONDS",
)
IDLE_SECONDS = Key(
    name="serve.idle_seconds",
    kind=number(1, YEAR_SECONDS),
    default=900,
    meaning="Idle time in seconds after which the service closes an open session without deleting it.",
    variable="CARREL_SERVE_IDLE_SECONDS",
)
OPEN_SESSIONS = Key(
    name="serve.open_sessions",
    kind=number(1, 10**6),
    default=256,
    meaning="Maximum number of sessions open at the same time.",
    variable="CARREL_SERVE_OPEN_SESSIONS",
)
SWEEP_SECONDS = Key(
    name="serve.sweep_seconds",
    kind=number(1, YEAR_SECONDS),
    default=60,
    meaning="Interval in seconds at which expired sessions are removed.",
    variable="CARREL_SERVE_SWEEP_SECONDS",
)
RESUME_SECONDS = Key(
    name="serve.resume_seconds",
    kind=number(0, 3_600),
    default=5,
    meaning="Time in seconds that a command keeps running after its reader disconnects, so it can reconnect.",
    variable="CARREL_SERVE_RESUME_SECONDS",
)
CORS_ORIGINS = Key(
    name="serve.cors_origins",
    kind=ORIGINS,
    default=[],
    meaning="Web origins, as `https://host`, whose scripts may call the service.",
    variable="CARREL_SERVE_CORS_ORIGINS",
)
METRICS = Key(
    name="serve.metrics",
    kind=SWITCH,
    default=True,
    meaning="Whether `/metrics` is available.",
    variable="CARREL_SERVE_METRICS",
)
JWT_ISSUER: Key[str | None] = Key(
    name="serve.jwt_issuer",
    kind=TEXT,
    default=None,
    meaning="Issuer (`iss`) of the JWTs that callers may present instead of a key.",
    variable="CARREL_SERVE_JWT_ISSUER",
)
JWT_AUDIENCE: Key[str | None] = Key(
    name="serve.jwt_audience",
    kind=TEXT,
    default=None,
    meaning="Audience (`aud`) that those tokens must have.",
    variable="CARREL_SERVE_JWT_AUDIENCE",
)
JWT_JWKS: Key[str | None] = Key(
    name="serve.jwt_jwks",
    kind=DOCUMENT,
    default=None,
    meaning="URL or file of the key set (JWKS) that those tokens are verified with.",
    variable="CARREL_SERVE_JWT_JWKS",
)
JWT_ALGORITHMS = Key(
    name="serve.jwt_algorithms",
    kind=ALGORITHMS,
    default=["RS256", "ES256", "EdDSA"],
    meaning="Signature algorithms accepted for those tokens.",
    variable="CARREL_SERVE_JWT_ALGORITHMS",
)
JWT_TENANT_CLAIM = Key(
    name="serve.jwt_tenant_claim",
    kind=TEXT,
    default="sub",
    meaning="Claim that names the tenant, whose sessions the caller sees.",
    variable="CARREL_SERVE_JWT_TENANT_CLAIM",
)
JWT_ROLES_CLAIM = Key(
    name="serve.jwt_roles_claim",
    kind=TEXT,
    default="roles",
    meaning="Claim that names the roles; the first configured one applies.",
    variable="CARREL_SERVE_JWT_ROLES_CLAIM",
)
TRACES = Key(
    name="serve.traces",
    kind=SWITCH,
    default=False,
    meaning="Whether every request is traced with OpenTelemetry.",
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
"""All settings of the service, in the order in which they are listed."""
