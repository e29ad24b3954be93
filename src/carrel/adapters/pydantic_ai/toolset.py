"""`CarrelToolset`: the tools of a role as a Pydantic AI toolset."""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import Any, TypeVar, Unpack

from pydantic_ai import ModelRetry, RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from carrel.adapters.pydantic_ai.workspace import CarrelWorkspace
from carrel.policy.roles import Role
from carrel.tools.core.formats import Format
from carrel.tools.core.options import ToolOptions
from carrel.tools.core.spec import Profile
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace

Deps = TypeVar("Deps")

_ANY = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
"""Whether arguments fit is judged by the toolbox, which says what to do about those that do not."""
_TRY_AGAIN = frozenset({"tool.arguments", "tool.unknown"})
"""What the model did wrong in the call itself."""


class CarrelToolset(AbstractToolset[Deps]):
    """The tools that one role has on a workspace, as `Toolbox` has them.

    >>> Agent(model, toolsets=[CarrelToolset(workspace, role="critic")])

    A call with wrong arguments is asked for again, which counts as a retry; any other failure is told to the
    model as a failed tool, with what to do next.
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
        """Offer tools on *workspace*, which stays the caller's to close; nothing is opened yet.

        Args:
            workspace: The files; of a `CarrelWorkspace`, those that its run works on too.
            role: Who calls; one that is not configured has no tools.
            profile: Under which names the tools are offered.
            id: Tells this toolset from others of the same agent.
            max_retries: How often a call may have wrong arguments; as the agent says by default.
            options: What is different from the configuration; see `ToolOptions`.
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
        """What was given to tell it from others."""
        return self._id

    def close(self) -> None:
        """Stop what runs, and end all use; the workspace stays open."""
        with self._lock:
            if self._toolbox is not None:
                self._toolbox.close()

    async def get_tools(self, ctx: RunContext[Deps]) -> dict[str, ToolsetTool[Deps]]:
        """The tools of the role, as the model is told of them."""
        retries = ctx.max_retries if self._max_retries is None else self._max_retries
        toolbox = await self._opened()
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
        tool_args: dict[str, Any],  # Any: whatever JSON can say
        ctx: RunContext[Deps],
        tool: ToolsetTool[Deps],
    ) -> str:
        """Call a tool; what it says is for the model.

        Raises:
            ModelRetry: The arguments are wrong.
            ToolFailed: It could not be done.
        """
        result = await (await self._opened()).acall(name, tool_args)
        if result.success:
            return result.text()
        raise ModelRetry(result.text()) if result.code in _TRY_AGAIN else ToolFailed(result.text())

    async def _opened(self) -> Toolbox:
        if self._toolbox is not None:
            return self._toolbox
        return await asyncio.to_thread(self._open)

    def _open(self) -> Toolbox:
        files = self._workspace
        opened = files if isinstance(files, Workspace) else files.open()
        with self._lock:
            if self._toolbox is None:
                # Here, whatever is configured: the files are.
                self._toolbox = Toolbox(opened, self._role, profile=self._profile, here=True, **self._options)
            return self._toolbox
