"""A directory of sessions, and sandboxes on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from carrel.audit.logger import SandboxLogger
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.result import SandboxResult
from carrel.sandbox.factory import create_session_sandbox, get_session_sandbox
from carrel.sandbox.sandbox import BaseSandbox
from carrel.values import Limits


class House:
    """Makes sandboxes on sessions in a directory of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def new(
        self,
        session_id: str | None = None,
        *,
        limits: Limits | None = None,
        stateful: bool = False,
        logger: SandboxLogger | None = None,
        **policy: Any,  # the fields of a policy are of many types
    ) -> BaseSandbox:
        """A sandbox on a new session, with a policy of these fields."""
        return create_session_sandbox(
            policy=ExecutionPolicy(**policy),
            workspace_root=self.root,
            logger=logger,
            session_id=session_id,
            limits=limits,
            stateful=stateful,
        )[1]

    def get(
        self, session_id: str | None, *, stateful: bool = False, logger: SandboxLogger | None = None
    ) -> BaseSandbox:
        """Another sandbox on a session that may be there."""
        assert session_id is not None
        return get_session_sandbox(session_id, workspace_root=self.root, logger=logger, stateful=stateful)

    def files(self, sandbox: BaseSandbox) -> Path:
        """Where the host has the files of *sandbox*."""
        assert sandbox.session_id is not None
        return self.root / sandbox.session_id


@contextmanager
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Both ends of a pipe, for reading and for writing without delay."""
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", 0) as sink:
        yield source, sink


def said(result: SandboxResult) -> str:
    """The output of a script that succeeded and did not complain."""
    assert (result.stderr, result.success, result.exit_code) == ("", True, 0), result.stderr
    return result.stdout


def error_name(result: SandboxResult) -> str:
    """The name of the exception that a script ended with."""
    assert (result.success, result.exit_code) == (False, 1), (result.stdout, result.stderr)
    last = [line for line in result.stderr.splitlines() if not line.startswith("carrel: ")][-1]
    return last.partition(":")[0]
