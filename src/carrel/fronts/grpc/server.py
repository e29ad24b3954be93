"""The gRPC server: both services, health and reflection."""

from __future__ import annotations

import socket
import ssl

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from carrel.fronts.grpc.dispatcher import Dispatcher
from carrel.fronts.grpc.introspection import Health, Reflection
from carrel.fronts.grpc.methods import METHODS
from carrel.fronts.grpc.relay import Relay
from carrel.fronts.listener import address_of
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service
from carrel.values import MIB

SERVICES = tuple(service.full_name for service in messages.DESCRIPTOR.services_by_name.values())

PENDING = 128
"""Most calls that wait for the event loop; each takes some 50 KB, authenticated or not."""
MESSAGE_BYTES = 4 * MIB
"""Largest message, which gRPC holds in memory as a whole; larger content is streamed."""
CONNECTIONS = 1024
"""Most connections at one time; `Relay` allows fewer of those that have not authenticated."""
STREAMS = 128
"""Most calls at one time on one connection; the client queues the others."""


class GrpcServer:
    """A running gRPC server."""

    def __init__(
        self, server: grpc.aio.Server, relay: Relay, dispatcher: Dispatcher, health: Health, address: str
    ) -> None:
        self._server = server
        self._relay = relay
        self._dispatcher = dispatcher
        self._health = health
        self.address = address
        """Host and port to connect to."""

    async def stop(self, grace: float | None = None) -> None:
        """Refuse new calls, and cancel those that still run after *grace* seconds."""
        await self._health.enter_graceful_shutdown()
        await self._dispatcher.close(grace or 0)
        await self._server.stop(0)
        await self._relay.close()


async def serve_grpc(
    service: Service,
    callers: Authenticator,
    rates: RateLimiter,
    listener: socket.socket,
    context: ssl.SSLContext | None = None,
) -> GrpcServer:
    """Serve clients that connect to *listener*, over TLS if there is a *context*."""
    serve = service.settings.serve
    server = grpc.aio.server(
        maximum_concurrent_rpcs=serve.max_requests,
        options=(
            ("grpc.max_receive_message_length", min(serve.max_body_bytes, MESSAGE_BYTES)),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", STREAMS),
            ("grpc.max_allowed_incoming_connections", CONNECTIONS),
            ("grpc.server.max_pending_requests", PENDING),
            ("grpc.server.max_pending_requests_hard_limit", PENDING),
            # Without this a stream's window grows with the connection's traffic, even for unknown callers.
            ("grpc.http2.bdp_probe", 0),
            # Detect clients that vanished without closing, and accept pings from clients that do the same.
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ("grpc.max_connection_idle_ms", 600_000),
        ),
    )
    relay = Relay()
    dispatcher = Dispatcher(service, callers, rates, relay)
    for row in messages.DESCRIPTOR.services_by_name.values():
        handlers = {
            method.name: dispatcher.handler(method, METHODS[row.name][method.name]) for method in row.methods
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(row.full_name, handlers),))
    state = Health(dispatcher)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(health.SERVICE_NAME, state.handlers()),)
    )
    offered = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(Reflection(dispatcher, offered), server)
    for name in ("", *SERVICES):
        await state.set(name, health_pb2.HealthCheckResponse.SERVING)
    await relay.start(server, listener, context)
    return GrpcServer(server, relay, dispatcher, state, address_of(listener))
