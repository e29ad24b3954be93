"""gRPC channels: the address of a service, the caller's metadata, and what failures mean."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from carrel.errors import (
    CarrelError,
    ConfigError,
    LimitError,
    StoppingError,
    UnauthenticatedError,
    UnknownRequestError,
)
from carrel.remote import local_token
from carrel.remote.json_codec import parse_error
from carrel.remote.transport.api import read_ca, require_key, unreachable_error, with_address

PORT = 50051
ERROR_METADATA = "carrel-error-bin"
"""The trailing metadata that hold all of an error, as JSON."""
ROLE_METADATA = "carrel-role"
"""The metadata that choose a role where the request does not."""
USER_AGENT = "carrel-client"
"""How the user agent of our channels begins; a service sends them longer errors than others can take."""
_LOCAL = ("127.", "localhost", "[::1]")
_ADDRESS = re.compile(r"(?:(grpcs?)://)?(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?/?", re.ASCII)
_METADATA_BYTES = 2**17
"""Errors name the path that they are about, which may be long."""
Options = tuple[tuple[str, int | str], ...]
_OPTIONS: Options = (
    ("grpc.primary_user_agent", USER_AGENT),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", _METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", _METADATA_BYTES),
    # A service that was started anew is found again at once, and one that is not there soon given up.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # A machine that is gone does not say so.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcAddress:
    """Where a service is."""

    host: str
    port: int
    secure: bool = False
    """Whether the connection is encrypted, by TLS."""
    ca: str | None = None
    """The authorities that may vouch for the service, in PEM; `None` for the usual ones."""

    @classmethod
    def parse(cls, text: str, *, ca: str | os.PathLike[str] | None = None) -> GrpcAddress:
        """The address that *text* says: `host:port`, `grpc://host:port`, or `grpcs://host:port` for TLS.

        Raises:
            ConfigError: It is no such address, or the file *ca* has no certificates of authorities.
        """
        found = _ADDRESS.fullmatch(text)
        if found is None or not 0 < int(found[3] or PORT) < 2**16:
            # What is wrong is not repeated: it may hold a password.
            raise ConfigError(
                "the address of a service must be host:port, grpc://host:port or grpcs://host:port"
            )
        secure = found[1] == "grpcs"
        return cls(
            host=found[2],
            port=int(found[3] or PORT),
            secure=secure,
            ca=read_ca(ca, is_encrypted=secure),
        )

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def options(self) -> Options:
        """How a channel there is set up."""
        # A proxy leads to other machines, so what is on this one is asked directly.
        return (*_OPTIONS, ("grpc.enable_http_proxy", 0)) if self.host.startswith(_LOCAL) else _OPTIONS

    @property
    def credentials(self) -> grpc.ChannelCredentials:
        """How a service that speaks TLS is known."""
        return grpc.ssl_channel_credentials(None if self.ca is None else self.ca.encode())


def open_channel(address: GrpcAddress) -> grpc.Channel:
    """A channel to *address*, which connects when it is first used."""
    if address.secure:
        return grpc.secure_channel(str(address), address.credentials, options=address.options)
    return grpc.insecure_channel(str(address), options=address.options)


def open_async_channel(address: GrpcAddress) -> grpc.aio.Channel:
    """The same as `open_channel` for the running event loop."""
    if address.secure:
        return grpc.aio.secure_channel(str(address), address.credentials, options=address.options)
    return grpc.aio.insecure_channel(str(address), options=address.options)


def caller_metadata(key: str | None = None, role: str | None = None) -> tuple[tuple[str, str], ...]:
    """What a call says about its caller.

    Raises:
        ConfigError: The key or the role cannot be sent.
    """
    require_key(key)
    said = (("authorization", None if key is None else f"Bearer {key}"), (ROLE_METADATA, role))
    metadata = tuple((name, value) for name, value in said if value is not None)
    for name, value in metadata:
        if not (value.isascii() and value.isprintable()):
            # Not what it is: nobody else may know a key.
            raise ConfigError(
                f"the {'role' if name == ROLE_METADATA else 'key'} holds a sign that cannot be sent"
            )
    return metadata


class CallerMetadata:
    """Who calls a service, by a key or else by its local token."""

    def __init__(self, address: GrpcAddress, key: str | None, role: str | None = None) -> None:
        """Call *address* with *key*, acting as *role*.

        Raises:
            ConfigError: The key or the role cannot be sent.
        """
        self._address = address
        self._role = role
        self._given = caller_metadata(key, role)
        self._has_key = key is not None

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What a call says now: a service that is started again has another local token."""
        if self._has_key:
            return self._given
        token = local_token.find(self._address.host, self._address.port, os.environ)
        return caller_metadata(token, self._role)


def translate_error(
    failure: grpc.RpcError, address: GrpcAddress, *, timeout_seconds: float | None = None
) -> CarrelError:
    """What a call that failed means: the service's own error, or why there is none."""
    call: Any = failure  # every failure of a call is one too, which no type says
    for name, value in call.trailing_metadata() or ():
        if name == ERROR_METADATA:
            return with_address(_parse_error_document(value), address)
    match call.code():
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return timeout_error(address, timeout_seconds)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return LimitError(
                "requests",
                limit=0,
                asked=None,
                message=f"the service at {address} has too much to do, or was sent too much at once",
            )
        case grpc.StatusCode.UNIMPLEMENTED:
            return UnknownRequestError(f"what answers at {address} does not know this call")
        case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
            return UnauthenticatedError(f"what answers at {address} refuses this caller")
        case grpc.StatusCode.CANCELLED:
            return StoppingError(f"the call to the service at {address} was ended")
        case grpc.StatusCode.UNAVAILABLE:
            return unreachable_error(address, call.details() or "")
    return CarrelError(f"the service at {address} failed unexpectedly")


def timeout_error(address: GrpcAddress, timeout_seconds: float | None) -> LimitError:
    """What is told of a service that was silent for too long."""
    return LimitError(
        "time",
        limit=int(timeout_seconds or 0),
        asked=None,
        message=f"the service at {address} did not answer in time",
    )


def _parse_error_document(document: bytes | str) -> CarrelError:
    try:
        return parse_error(json.loads(document))
    except ValueError:
        return parse_error(None)
