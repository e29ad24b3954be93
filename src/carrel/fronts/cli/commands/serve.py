"""`carrel serve`: serve sessions over HTTP, MCP and gRPC."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.errors import requires_extra
from carrel.fronts.cli.output import print_json

if TYPE_CHECKING:
    from carrel.fronts.server import ServerInfo


@click.command()
@click.option(
    "--host", metavar="ADDRESS", help="Address to listen on.  [default: serve.host, else 127.0.0.1]"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Port for HTTP and MCP; 0 picks a free one.  [default: serve.port, else 8080]",
)
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Port for gRPC; 0 picks a free one.  [default: serve.grpc_port, else 50051]",
)
@click.option(
    "--grpc/--no-grpc", default=None, help="Enable or disable gRPC.  [default: serve.grpc, else yes]"
)
@click.option(
    "--tls-cert",
    type=click.Path(),
    metavar="FILE",
    help="PEM file with the TLS certificate; HTTP and gRPC then accept TLS only. Reloaded on SIGHUP."
    "  [default: serve.tls_cert, else no TLS]",
)
@click.option(
    "--tls-key",
    type=click.Path(),
    metavar="FILE",
    help="PEM file with the unencrypted private key of the certificate.  [default: serve.tls_key]",
)
@click.option(
    "--auth/--no-auth",
    default=None,
    help="Require a key or the local token from callers on loopback. With --no-auth, which works on loopback"
    " only, every process that can connect is the operator.  [default: serve.require_key, else yes]",
)
@click.option("--access-log/--no-access-log", default=True, help="Log every request, or none.")
@click.option("--json", "as_json", is_flag=True, help="Print the addresses as one JSON document.")
@click.pass_obj
def serve(
    context: CliContext,
    host: str | None,
    port: int | None,
    grpc_port: int | None,
    grpc: bool | None,
    tls_cert: str | None,
    tls_key: str | None,
    auth: bool | None,
    access_log: bool,
    as_json: bool,
) -> None:
    """Serve sessions over HTTP, MCP and gRPC.

    Prints the addresses on standard error, then one line of JSON per request. Every caller must have a key;
    see `carrel key`. Clients of the same user on this machine find the local token themselves. On Ctrl-C or
    SIGTERM the service stops after running requests have finished, or when their grace period is over.
    """
    options = {
        "CARREL_SERVE_HOST": host,
        "CARREL_SERVE_PORT": port,
        "CARREL_SERVE_GRPC_PORT": grpc_port,
        "CARREL_SERVE_GRPC": None if grpc is None else int(grpc),
        "CARREL_SERVE_TLS_CERT": None if tls_cert is None else os.path.abspath(tls_cert),
        "CARREL_SERVE_TLS_KEY": None if tls_key is None else os.path.abspath(tls_key),
        "CARREL_SERVE_REQUIRE_KEY": None if auth is None else int(auth),
    }
    given = {name: str(value) for name, value in options.items() if value is not None}
    # Imported late: the server is slow to import, and its packages may not be installed.
    # gRPC's own messages about ports are replaced by ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    with requires_extra("serve"):
        from carrel.fronts.server import log_requests, run
    from carrel.config.network_kinds import is_loopback
    from carrel.remote import local_token
    from carrel.service.service import Service

    log_requests(enabled=access_log)
    # Without --verbose the service still logs refusals and failures: nobody else sees them.
    logger = context.logger() if context.verbose else None
    announce = _print_json_addresses if as_json else _print_addresses
    service = Service.from_env(os.environ | given, root=context.sessions_dir_option, logger=logger)
    if auth is False and not is_loopback(service.settings.serve.host):
        raise click.UsageError(
            "--no-auth works on loopback only: from any other address callers would be the operator."
        )
    run(service, announce, tokens=local_token.directory(os.environ))


def _print_json_addresses(served: ServerInfo) -> None:
    print_json({"http": served.http, "grpc": served.grpc, "has_callers": served.has_callers})
    sys.stdout.flush()


def _print_addresses(served: ServerInfo) -> None:
    grpc = "" if served.grpc is None else f" grpc {served.grpc}"
    click.echo(f"carrel: serving {served.http}{grpc}", err=True)
    if served.token_problem is not None:
        click.echo(f"carrel: the local token could not be stored: {served.token_problem}", err=True)
    if not served.has_callers:
        click.echo("carrel: every caller needs a key; create one with: carrel key create NAME", err=True)
