"""The gRPC server: both services, health and reflection, with or without TLS."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from carrel.errors import UnavailableError
from carrel.fronts.certificate import Certificate
from carrel.fronts.grpc.dispatcher import Dispatcher
from carrel.fronts.grpc.introspection import Health, Reflection
from carrel.fronts.grpc.methods import METHODS
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service
from carrel.values import MIB

SERVICES = tuple(service.full_name for service in messages.DESCRIPTOR.services_by_name.values())


PENDING = 512
"""Most calls that wait for the event loop; beyond half of it some are refused, beyond it all."""
MESSAGE_BYTES = 4 * MIB
"""Most of one message, of which gRPC holds all; what is larger comes in a stream of them."""
CONNECTIONS = 128
"""Most connections at one time, of whomever."""
STREAMS = 128
"""Most calls at one time on one connection; a client lets others wait until one has ended."""


class GrpcServer:
    """A server that runs."""

    def __init__(
        self, server: grpc.aio.Server, door: Dispatcher, state: Health, host: str, port: int
    ) -> None:
        self._server = server
        self._door = door
        self._state = state
        self.host = host
        self.port = port
        """Where it listens, also if it was asked to choose."""

    @property
    def address(self) -> str:
        """What a client connects to."""
        return f"{self.host}:{self.port}"

    async def stop(self, grace: float | None = None) -> None:
        """Take no more calls, and end those that still run after *grace* seconds."""
        await self._state.enter_graceful_shutdown()
        await self._door.close(grace or 0)
        await self._server.stop(0)


async def serve_grpc(
    service: Service,
    callers: Authenticator,
    rates: RateLimiter,
    address: str,
    certificate: Certificate | None = None,
) -> GrpcServer:
    """Answer calls at *address*, `host:port`; the port 0 chooses one that is free.

    With a *certificate*, they are made over TLS alone.

    Raises:
        UnavailableError: It is not possible to listen there.
    """
    serve = service.settings.serve
    server = grpc.aio.server(
        maximum_concurrent_rpcs=serve.max_requests,
        options=(
            ("grpc.max_receive_message_length", min(serve.max_body_bytes, MESSAGE_BYTES)),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", STREAMS),
            ("grpc.max_allowed_incoming_connections", CONNECTIONS),
            ("grpc.server.max_pending_requests", PENDING // 2),
            ("grpc.server.max_pending_requests_hard_limit", PENDING),
            ("grpc.server_handshake_timeout_ms", 10_000),
            # Until a client has accepted ours, gRPC lets it send 16 MiB of metadata in a call.
            ("grpc.http2.settings_timeout", 10_000),
            # Otherwise the window of a stream grows with what a connection has sent, also of nobody we know.
            ("grpc.http2.bdp_probe", 0),
            # Otherwise a second service could listen at the same port and take half of the calls.
            ("grpc.so_reuseport", 0),
            # A client that is gone without saying so is noticed, and those who look after us are let be.
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ("grpc.max_connection_idle_ms", 600_000),
        ),
    )
    door = Dispatcher(service, callers, rates)
    for row in messages.DESCRIPTOR.services_by_name.values():
        handlers = {
            method.name: door.handler(method, METHODS[row.name][method.name]) for method in row.methods
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(row.full_name, handlers),))
    state = Health(door)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(health.SERVICE_NAME, state.handlers()),)
    )
    offered = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(Reflection(door, offered), server)
    try:
        if certificate is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, _credentials(certificate))
    except RuntimeError:
        raise UnavailableError(
            f"gRPC cannot listen at {address!r}: is it taken, or not of this machine?"
        ) from None
    for name in ("", *SERVICES):
        await state.set(name, health_pb2.HealthCheckResponse.SERVING)
    await server.start()
    return GrpcServer(server, door, state, address.rpartition(":")[0], port)


def _credentials(certificate: Certificate) -> grpc.ServerCredentials:
    shown = certificate.pem

    def newer() -> Any:  # Any: grpc takes `None` as well, which its types do not say
        """What to show from now on; asked in threads of gRPC, one after the other, for every connection."""
        nonlocal shown
        if certificate.pem is shown:
            return None
        shown = certificate.pem
        return grpc.ssl_server_certificate_configuration([shown])

    return grpc.dynamic_ssl_server_credentials(grpc.ssl_server_certificate_configuration([shown]), newer)
