"""gRPC, by the stubs that are made from the protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import grpc

from carrel.errors import CarrelError
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub, WorkspaceServiceStub
from carrel.remote.transport.grpc_channel import GrpcAddress, caller_metadata, open_channel, translate_error
from tests.conformance.answer import Answer
from tests.conformance.library import DEVELOPER
from tests.conformance.row import Row

SECONDS = 60


class Grpc:
    """One channel to a service."""

    name = "grpc"

    def __init__(self, address: str, key: str | None = None) -> None:
        self._address = GrpcAddress.parse(address)
        self.channel = open_channel(self._address)
        self.metadata = caller_metadata(key)
        self.workspace = WorkspaceServiceStub(self.channel)
        self.sandbox = SandboxServiceStub(self.channel)

    def operation(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        request = messages.CallRequest(
            session_id=session, operation=row.name, arguments_json=json.dumps(dict(arguments))
        )
        try:
            reply = self.workspace.Call(request, metadata=self.metadata, timeout=SECONDS)
        except grpc.RpcError as error:
            return Answer.of_error(self.error(error), session)
        return Answer.of(json.loads(reply.result_json), session)

    def tool(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        request = messages.CallToolRequest(
            session_id=session,
            context=messages.Context(role=row.role or DEVELOPER),
            name=row.name,
            profile=row.profile,
            arguments_json=json.dumps(dict(arguments)),
        )
        try:
            reply = self.sandbox.CallTool(request, metadata=self.metadata, timeout=SECONDS)
        except grpc.RpcError as error:
            return Answer.of_error(self.error(error), session)
        return Answer.of_tool(envelope(reply), session)

    def error(self, failure: grpc.RpcError) -> CarrelError:
        """What a failed call says."""
        return translate_error(failure, self._address, timeout_seconds=SECONDS)

    def close(self) -> None:
        self.channel.close()


def envelope(reply: messages.ToolAnswer) -> dict[str, Any]:
    """The envelope of a tool's answer, as it is without a wire between."""
    document: dict[str, Any] = {"success": reply.success}
    match reply.WhichOneof("payload"):
        case "output":
            document["output"] = reply.output
        case "output_json":
            document["output"] = json.loads(reply.output_json)
        case "data_json":
            document["data"] = json.loads(reply.data_json)
        case None if reply.success:
            document["output"] = None
    if reply.HasField("model_text"):
        document["model_text"] = reply.model_text
    if reply.images:
        document["images"] = [
            {field.name: getattr(image, field.name) for field in image.DESCRIPTOR.fields}
            for image in reply.images
        ]
    if reply.HasField("error"):
        document["error"] = reply.error
    document["metadata"] = json.loads(reply.metadata_json or "{}")
    return document
