"""`carrel key`: create, list and revoke the keys of callers of the service."""

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


@click.group(cls=Group)
def key() -> None:
    """Give keys to those who call the service, and take them back."""


@key.command()
@click.argument("name")
@click.option(
    "--role",
    default=DEFAULT_ROLE,
    show_default=True,
    shell_complete=completers.roles,
    help="What its callers act as.",
)
@click.option(
    "--may-be",
    "roles",
    multiple=True,
    metavar="ROLE",
    shell_complete=completers.roles,
    help="Another role that a request may choose. May be repeated.",
)
@click.option("--tenant", help="Whose sessions its callers see.  [default: NAME in lower case]")
@click.option(
    "--session",
    metavar="ID",
    shell_complete=completers.sessions,
    help="The one session that they may use.  [default: any]",
)
@click.option(
    "--expires",
    callback=parse_finite_duration,
    metavar="TIME",
    help="How long it is in force: 90s, 15m, 24h, 30d.",
)
@click.option(
    "--rate",
    type=click.IntRange(1, MAX_RATE),
    metavar="N",
    help="Most requests in a minute.  [default: as configured]",
)
@json_option
@click.pass_obj
def create(
    place: CliContext,
    name: str,
    role: str,
    roles: tuple[str, ...],
    tenant: str | None,
    session: str | None,
    expires: OptionValue | None,
    rate: int | None,
    as_json: bool,
) -> None:
    """Make a key, and print it: this once, as it is not kept.

    A tenant has its own sessions, and cannot learn of those of others. Whoever has the key sends it as
    `Authorization: Bearer KEY`. A key with the role `metrics` reads /metrics, and can do nothing else.
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
    with closing(KeyStore(place.sessions_dir)) as keys:
        made, text = keys.create(new)
    if as_json:
        print_json({"key": text, **_document(made)})
        return
    click.echo(text)
    click.echo(f"carrel: keep it now; nobody can show the key {made.name!r} again", err=True)


@key.command("local")
@click.argument("url", default="http://127.0.0.1:8080")
def local_key(url: str) -> None:
    """Print the local token of a service of yours that runs on this machine at URL, for other programs.

    It is the operator's, and in force until the service ends. `carrel` and `connect()` find it by themselves.
    """
    from urllib.parse import urlsplit

    from carrel.errors import KeyMissingError
    from carrel.remote import local_token

    parts = urlsplit(url if "://" in url else f"//{url}")
    token = local_token.find(parts.hostname or "", parts.port or 0, os.environ)
    if token is None:
        raise KeyMissingError(
            "no service of yours has a local token there: start `carrel serve` as this user"
        )
    click.echo(token)


@key.command("list")
@json_option
@click.pass_obj
def list_keys(place: CliContext, as_json: bool) -> None:
    """List the keys, also those that are no longer in force."""
    from carrel.service.authentication.key_store import KeyStore

    found: list[ApiKey] = []
    if KeyStore.exists_in(place.sessions_dir):
        with closing(KeyStore(place.sessions_dir)) as keys:
            found = keys.list()
    if as_json:
        print_json({"keys": [_document(each) for each in found]})
        return
    for line in _lines(found):
        click.echo(line)
    if not found:
        hint("there is no key yet; make one: carrel key create NAME")


def _lines(found: list[ApiKey]) -> Iterator[str]:
    """A table for people; nothing at all if there is no key."""
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


def _document(each: ApiKey) -> dict[str, Any]:  # Any: whatever JSON can say
    return {**asdict(each), "state": _state(each)}


@key.command()
@click.argument("name", metavar="NAME|ID")
@json_option
@click.pass_obj
def revoke(place: CliContext, name: str, as_json: bool) -> None:
    """Put a key out of force for good.

    A service that is running knows it within a second. Its sessions stay, and belong to its tenant as before.
    """
    from carrel.errors import KeyMissingError
    from carrel.service.authentication.key_store import KeyStore

    if not KeyStore.exists_in(place.sessions_dir):
        raise KeyMissingError(f"no such key: {name[:80]!r}")
    with closing(KeyStore(place.sessions_dir)) as keys:
        revoked = keys.revoke(name)
    if as_json:
        print_json(_document(revoked))
    else:
        click.echo(f"revoked {revoked.name} ({revoked.id})")
