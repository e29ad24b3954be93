"""`carrel key`: create, list and revoke API keys of the service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli.commands.session.command import json_option
from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.help import Group
from carrel.fronts.cli.option_types import DEFAULT_ROLE, OptionValue, parse_finite_duration, require_roles
from carrel.fronts.cli.output import hint, print_json, render_time

if TYPE_CHECKING:
    from carrel.service.authentication.api_key import ApiKey

MAX_RATE = 10**9
"""Largest `--rate`, in requests per minute."""


@click.group(cls=Group)
def key() -> None:
    """Manage API keys of the service."""


@key.command()
@click.argument("name")
@click.option(
    "--role",
    default=DEFAULT_ROLE,
    show_default=True,
    shell_complete=completers.roles,
    help="Role of requests with this key.",
)
@click.option(
    "--may-be",
    "roles",
    multiple=True,
    metavar="ROLE",
    shell_complete=completers.roles,
    help="Additional role that a request may choose. May be repeated.",
)
@click.option("--tenant", help="Tenant that owns the sessions of this key.  [default: NAME in lower case]")
@click.option(
    "--session",
    metavar="ID",
    shell_complete=completers.sessions,
    help="Restrict the key to this session.  [default: any]",
)
@click.option(
    "--expires",
    callback=parse_finite_duration,
    metavar="TIME",
    help="Lifetime of the key: 90s, 15m, 24h or 30d.  [default: unlimited]",
)
@click.option(
    "--rate",
    type=click.IntRange(1, MAX_RATE),
    metavar="N",
    help="Maximum number of requests per minute.  [default: as configured]",
)
@json_option
@click.pass_obj
def create(
    context: CliContext,
    name: str,
    role: str,
    roles: tuple[str, ...],
    tenant: str | None,
    session: str | None,
    expires: OptionValue | None,
    rate: int | None,
    as_json: bool,
) -> None:
    """Create a key and print it; it is not stored and cannot be shown again.

    Each tenant has its own sessions, and cannot see those of other tenants. Clients send the key as
    `Authorization: Bearer KEY`. A key with the role `metrics` can read /metrics and do nothing else.
    """
    from carrel.policy.roles import METRICS_ROLE
    from carrel.service.authentication.key_store import KeyStore, NewKey

    new = NewKey(
        name=name,
        role=role,
        roles=roles,
        tenant=tenant,
        session=session,
        rate_per_minute=rate,
        ttl_seconds=None if expires is None else expires.value,
    )
    new.require_valid()
    require_roles(*(each for each in (new.role, *new.roles) if each != METRICS_ROLE))
    with closing(KeyStore(context.sessions_dir)) as keys:
        created, text = keys.create(new)
    if as_json:
        print_json({"key": text, **_document(created)})
        return
    click.echo(text)
    click.echo(f"carrel: save the key {created.name!r} now; it cannot be shown again", err=True)


@key.command("local")
@click.argument("url", default="http://127.0.0.1:8080")
def local_key(url: str) -> None:
    """Print the local token of your own service at URL on this machine, for use by other programs.

    The token acts as the operator and is valid until the service stops. `carrel` and `connect()` find it
    themselves.
    """
    from urllib.parse import urlsplit

    from carrel.errors import KeyMissingError
    from carrel.remote import local_token

    parts = urlsplit(url if "://" in url else f"//{url}")
    token = local_token.find(parts.hostname or "", parts.port or 0, os.environ)
    if token is None:
        raise KeyMissingError(
            "no local token for a service at this address: start `carrel serve` as this user"
        )
    click.echo(token)


@key.command("list")
@json_option
@click.pass_obj
def list_keys(context: CliContext, as_json: bool) -> None:
    """List all keys, including expired and revoked ones."""
    from carrel.service.authentication.key_store import KeyStore

    found: list[ApiKey] = []
    if KeyStore.exists_in(context.sessions_dir):
        with closing(KeyStore(context.sessions_dir)) as keys:
            found = keys.list()
    if as_json:
        print_json({"keys": [_document(each) for each in found]})
        return
    for line in _lines(found):
        click.echo(line)
    if not found:
        hint("no keys yet; create one with: carrel key create NAME")


def _lines(found: list[ApiKey]) -> Iterator[str]:
    """The keys as a table; no lines without keys."""
    if not found:
        return
    rows: list[tuple[str, ...]] = [
        ("NAME", "ID", "TENANT", "ROLES", "SESSION", "CREATED", "LAST USED", "EXPIRES", "STATE")
    ]
    rows += [_cells(each) for each in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(each: ApiKey) -> tuple[str, ...]:
    return (
        each.name,
        each.id,
        each.tenant,
        ",".join(each.roles),
        each.session or "any",
        render_time(each.created_ns),
        "never" if each.used_ns is None else render_time(each.used_ns),
        "never" if each.expires_ns is None else render_time(each.expires_ns),
        _state(each),
    )


def _state(each: ApiKey) -> str:
    import time

    if each.revoked_ns is not None:
        return "revoked"
    return "in force" if each.is_valid(time.time_ns()) else "expired"


def _document(each: ApiKey) -> dict[str, Any]:  # Any: any JSON value
    return {**asdict(each), "state": _state(each)}


@key.command()
@click.argument("name", metavar="NAME|ID")
@json_option
@click.pass_obj
def revoke(context: CliContext, name: str, as_json: bool) -> None:
    """Revoke a key permanently.

    A running service applies this within a second. The sessions of the tenant are kept.
    """
    from carrel.errors import KeyMissingError
    from carrel.service.authentication.key_store import KeyStore

    if not KeyStore.exists_in(context.sessions_dir):
        raise KeyMissingError(f"no such key: {name[:80]!r}")
    with closing(KeyStore(context.sessions_dir)) as keys:
        revoked = keys.revoke(name)
    if as_json:
        print_json(_document(revoked))
    else:
        click.echo(f"revoked {revoked.name} ({revoked.id})")
