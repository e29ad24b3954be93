"""gRPC channels: the address of a service, the caller's metadata, and the end and the errors of calls."""

from __future__ import annotations

import asyncio
import json
import os
import re
from contextlib import suppress
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
"""Default port of a service."""
ERROR_METADATA = "carrel-error-bin"
"""Trailing metadata that holds the complete error as JSON."""
ROLE_METADATA = "carrel-role"
"""Metadata that selects a role if the request does not."""
USER_AGENT = "carrel-client"
"""Prefix of our user agent; the service sends us longer errors than other clients can receive."""
_LOCAL = ("127.", "localhost", "[::1]")
_ADDRESS = re.compile(r"(?:(grpcs?)://)?(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?/?", re.ASCII)
_METADATA_BYTES = 2**17
"""Maximum size of metadata; errors in it name a path, which may be long."""
Options = tuple[tuple[str, int | str], ...]
_OPTIONS: Options = (
    ("grpc.primary_user_agent", USER_AGENT),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", _METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", _METADATA_BYTES),
    # Reconnect quickly to a restarted service, and give up soon on a missing one.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # A machine that has crashed sends no notice.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcAddress:
    """The address of a service."""

    host: str
    port: int
    secure: bool = False
    """Whether the connection uses TLS."""
    ca: str | None = None
    """PEM certificates of the authorities to trust; `None` for those of the system."""

    @classmethod
    def parse(cls, text: str, *, ca: str | os.PathLike[str] | None = None) -> GrpcAddress:
        """Parse `host:port`, `grpc://host:port`, or `grpcs://host:port` for TLS.

        Raises:
            ConfigError: The address is invalid, or the file *ca* holds no certificates.
        """
        found = _ADDRESS.fullmatch(text)
        if found is None or not 0 < int(found[3] or PORT) < 2**16:
            # The address is not repeated: it may hold a password.
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
        """The channel options; a proxy is never used for this machine."""
        return (*_OPTIONS, ("grpc.enable_http_proxy", 0)) if self.host.startswith(_LOCAL) else _OPTIONS

    @property
    def credentials(self) -> grpc.ChannelCredentials:
        """The TLS credentials that verify the service."""
        return grpc.ssl_channel_credentials(None if self.ca is None else self.ca.encode())


def open_channel(address: GrpcAddress) -> grpc.Channel:
    """A channel to *address*, which connects on first use."""
    if address.secure:
        return grpc.secure_channel(str(address), address.credentials, options=address.options)
    return grpc.insecure_channel(str(address), options=address.options)


def open_async_channel(address: GrpcAddress) -> grpc.aio.Channel:
    """A channel to *address* for the running event loop."""
    if address.secure:
        return grpc.aio.secure_channel(str(address), address.credentials, options=address.options)
    return grpc.aio.insecure_channel(str(address), options=address.options)


async def wait_until_done(call: grpc.Future[Any]) -> None:  # Any: the response of any RPC
    """Wait on the event loop for the end of a call that threads of gRPC run."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def notify(_: object) -> None:
        # With a closed loop, no task is waiting any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set)

    call.add_done_callback(notify)
    await done.wait()


def caller_metadata(key: str | None = None, role: str | None = None) -> tuple[tuple[str, str], ...]:
    """The metadata that identifies the caller.

    Raises:
        ConfigError: The key or the role cannot be sent.
    """
    require_key(key)
    values = (("authorization", None if key is None else f"Bearer {key}"), (ROLE_METADATA, role))
    metadata = tuple((name, value) for name, value in values if value is not None)
    for name, value in metadata:
        if not (value.isascii() and value.isprintable()):
            # The value is not repeated: keys are secret.
            raise ConfigError(
                f"the {'role' if name == ROLE_METADATA else 'key'} holds a character that cannot be sent"
            )
    return metadata


class CallerMetadata:
    """The caller of a service, identified by a key or else by the local token."""

    def __init__(self, address: GrpcAddress, key: str | None, role: str | None = None) -> None:
        """Identify calls to *address* with *key*, acting as *role*.

        Raises:
            ConfigError: The key or the role cannot be sent.
        """
        self._address = address
        self._role = role
        self._given = caller_metadata(key, role)
        self._has_key = key is not None

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The current metadata: a restarted service has a new local token."""
        if self._has_key:
            return self._given
        token = local_token.find(self._address.host, self._address.port, os.environ)
        return caller_metadata(token, self._role)


def translate_error(
    error: grpc.RpcError, address: GrpcAddress, *, timeout_seconds: float | None = None
) -> CarrelError:
    """Translate a failed call into the service's own error, or into one about the connection."""
    call: Any = error  # an error of a call is a call as well, which its type does not say
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
                message=f"the service at {address} is overloaded, or the request was too large",
            )
        case grpc.StatusCode.UNIMPLEMENTED:
            return UnknownRequestError(f"the server at {address} does not support this call")
        case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
            return UnauthenticatedError(f"the server at {address} rejects this caller")
        case grpc.StatusCode.CANCELLED:
            return StoppingError(f"the call to the service at {address} was cancelled")
        case grpc.StatusCode.UNAVAILABLE:
            return unreachable_error(address, call.details() or "")
    return CarrelError(f"the service at {address} failed unexpectedly")


def timeout_error(address: GrpcAddress, timeout_seconds: float | None) -> LimitError:
    """The error for a service that did not answer in time."""
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
