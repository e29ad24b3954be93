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
@click.option("--host", metavar="ADDRESS", help="Where to listen.  [default: serve.host, else 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Of HTTP and MCP; 0 is any that is free.  [default: serve.port, else 8080]",
)
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Of gRPC; 0 is any that is free.  [default: serve.grpc_port, else 50051]",
)
@click.option(
    "--grpc/--no-grpc", default=None, help="Whether to speak gRPC as well.  [default: serve.grpc, else yes]"
)
@click.option(
    "--tls-cert",
    type=click.Path(),
    metavar="FILE",
    help="A PEM file with the certificate to show; HTTP and gRPC are spoken over TLS alone then, and it is"
    " read again on SIGHUP.  [default: serve.tls_cert, else no TLS]",
)
@click.option(
    "--tls-key",
    type=click.Path(),
    metavar="FILE",
    help="A PEM file with its private key, not encrypted.  [default: serve.tls_key]",
)
@click.option(
    "--auth/--no-auth",
    default=None,
    help="Whether callers on loopback need a key or the local token. Without, everybody who reaches loopback"
    " is the operator; for loopback only.  [default: serve.require_key, else yes]",
)
@click.option("--access-log/--no-access-log", default=True, help="Whether to log every request.")
@click.option("--json", "as_json", is_flag=True, help="Print where it listens as one JSON document.")
@click.pass_obj
def serve(
    place: CliContext,
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

    Where it listens is told on standard error, and then one line of JSON for each request. Every caller must
    have a key; see `carrel key`. Clients of the same user on this machine find the local token by themselves.
    It ends on Ctrl-C or SIGTERM, once what runs has ended or the time for that is over.
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
    # Late: what serves takes long to import, and its packages may not be installed.
    # What it has to say about a port, we say ourselves.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    with requires_extra("serve"):
        from carrel.fronts.server import log_requests, run
    from carrel.config.network_kinds import is_loopback
    from carrel.remote import local_token
    from carrel.service.service import Service

    log_requests(enabled=access_log)
    # What is refused and what fails is told in any case, as nobody else sees it here.
    logger = place.logger() if place.verbose else None
    tell = _tell_json if as_json else _tell
    service = Service.from_env(os.environ | given, root=place.given, logger=logger)
    if auth is False and not is_loopback(service.settings.serve.host):
        raise click.UsageError(
            "--no-auth is for a service on loopback: others could call it as the operator."
        )
    run(service, tell, tokens=local_token.directory(os.environ))


def _tell_json(served: ServerInfo) -> None:
    print_json({"http": served.http, "grpc": served.grpc, "has_callers": served.has_callers})
    sys.stdout.flush()


def _tell(served: ServerInfo) -> None:
    grpc = "" if served.grpc is None else f" grpc {served.grpc}"
    click.echo(f"carrel: serving {served.http}{grpc}", err=True)
    if served.token_problem is not None:
        click.echo(f"carrel: the local token could not be stored: {served.token_problem}", err=True)
    if not served.has_callers:
        click.echo("carrel: every caller needs a key, and there is none: carrel key create NAME", err=True)
