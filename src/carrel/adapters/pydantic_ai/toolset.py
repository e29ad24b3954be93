"""`CarrelToolset`: the tools of a role as a Pydantic AI toolset."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from threading import Lock
from typing import Any, TypeVar, Unpack

from pydantic_ai import BinaryImage, ModelRetry, RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from carrel.adapters.pydantic_ai.workspace import CarrelWorkspace
from carrel.policy.roles import Role
from carrel.tools.core.formats import Format
from carrel.tools.core.options import ToolOptions
from carrel.tools.core.spec import Profile
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolImage
from carrel.workspace.workspace import Workspace

Deps = TypeVar("Deps")

_ANY = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
"""Accepts any arguments: the toolbox validates them, with advice in its errors."""
_RETRY_CODES = frozenset({"tool.arguments", "tool.unknown"})
"""Error codes of invalid calls, which the model can correct."""


class CarrelToolset(AbstractToolset[Deps]):
    """The tools of one role on a workspace, as in `Toolbox`.

    >>> Agent(model, toolsets=[CarrelToolset(workspace, role="critic")])

    A call with invalid arguments makes the model retry; any other failure is reported to the model as a
    failed tool, with advice.
    """

    def __init__(
        self,
        workspace: CarrelWorkspace | Workspace,
        role: str | Role = "developer",
        *,
        profile: Profile | str = Profile.AGENT,
        id: str | None = None,
        max_retries: int | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        """Offer tools on *workspace*, which the caller has to close; nothing is opened yet.

        Args:
            workspace: The files; a `CarrelWorkspace` can also be the workspace of the run.
            role: Role of the caller; an unconfigured role has no tools.
            profile: Set of tool names.
            id: Distinguishes this toolset from others of the same agent.
            max_retries: How often the model may retry invalid calls; by default as set for the agent.
            options: Overrides of the configuration; see `ToolOptions`.
        """
        self._workspace = workspace
        self._role = role
        self._profile = Profile(profile)
        self._id = id
        self._max_retries = max_retries
        self._options = options
        self._lock = Lock()
        self._toolbox: Toolbox | None = None

    @property
    def id(self) -> str | None:
        """The id given on creation."""
        return self._id

    def close(self) -> None:
        """Stop running calls and close the toolset; the workspace stays open."""
        with self._lock:
            if self._toolbox is not None:
                self._toolbox.close()

    async def get_tools(self, ctx: RunContext[Deps]) -> dict[str, ToolsetTool[Deps]]:
        """The tool definitions of the role."""
        retries = ctx.max_retries if self._max_retries is None else self._max_retries
        toolbox = await self._open_toolbox()
        return {
            tool["name"]: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool["name"],
                    description=tool["description"],
                    parameters_json_schema=tool["input_schema"],
                ),
                max_retries=retries,
                args_validator=_ANY,
            )
            for tool in toolbox.schemas(Format.ANTHROPIC)
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],  # Any: JSON values
        ctx: RunContext[Deps],
        tool: ToolsetTool[Deps],
    ) -> str | list[str | BinaryImage]:
        """Call a tool and return its text for the model, with the images that belong to it.

        Raises:
            ModelRetry: The call is invalid.
            ToolFailed: The tool failed.
        """
        result = await (await self._open_toolbox()).acall(name, tool_args)
        if result.success and result.images:
            return [result.text(), *map(_binary_image, result.images)]
        if result.success:
            return result.text()
        raise ModelRetry(result.text()) if result.code in _RETRY_CODES else ToolFailed(result.text())

    async def _open_toolbox(self) -> Toolbox:
        if self._toolbox is not None:
            return self._toolbox
        return await asyncio.to_thread(self._open)

    def _open(self) -> Toolbox:
        given = self._workspace
        workspace = given if isinstance(given, Workspace) else given.open()
        with self._lock:
            if self._toolbox is None:
                # Always local, even if a service is configured: the files are local.
                self._toolbox = Toolbox(
                    workspace, self._role, profile=self._profile, here=True, **self._options
                )
            return self._toolbox


def _binary_image(image: ToolImage) -> BinaryImage:
    return BinaryImage(b64decode(image.data), media_type=image.media_type, identifier=image.path)
