"""Ordered path rules: the first rule whose root contains a path decides about it.

This module only decides. `fs` ensures that an allowed path cannot lead out of the root of its rule, which is
an open directory there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath

from carrel.errors import AccessError, OutsideError

_OUTSIDE = "outside workspace"


class Access(StrEnum):
    """The access that an operation needs to a path."""

    READ = "read"
    """read, list, stat, search, set the working directory, the source of a copy"""
    WRITE = "write"
    """write, remove, mkdir, the target of a copy, both ends of a move"""


class AccessMode(StrEnum):
    """The access that a rule allows."""

    READ_ONLY = "ro"
    READ_WRITE = "rw"

    @classmethod
    def parse(cls, text: str) -> AccessMode:
        """Parse a configured mode; any text other than a spelling of read-write is read-only."""
        writable = text.strip().lower() in ("rw", "readwrite", "read-write")
        return cls.READ_WRITE if writable else cls.READ_ONLY

    def allows(self, access: Access) -> bool:
        """Whether this mode allows *access*."""
        return access is Access.READ or self is AccessMode.READ_WRITE


@dataclass(frozen=True, slots=True)
class PathRule:
    """A directory and the access allowed beneath it."""

    root: str
    """Absolute path of the directory on the host."""
    mode: AccessMode = AccessMode.READ_ONLY

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", _absolute(self.root))
        object.__setattr__(self, "mode", AccessMode(self.mode))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names in the path of the directory."""
        return PurePosixPath(self.root).parts[1:]


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """The rules of one workspace; an empty list allows nothing."""

    workspace_root: str
    """Base of relative paths."""
    allowed_paths: tuple[PathRule, ...] = ()
    """The rules; the first match decides, and rule 0 is the workspace itself."""
    enabled: bool = True
    """Whether the rules are enforced; only an operator may switch them off."""
    most: AccessMode = AccessMode.READ_WRITE
    """The maximum access anywhere, even where the rules are switched off."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "workspace_root", _absolute(self.workspace_root))
        object.__setattr__(self, "allowed_paths", tuple(self.allowed_paths))
        if self.allowed_paths and self.allowed_paths[0].root != self.workspace_root:
            raise ValueError(
                "the first rule must be the workspace itself:"
                f" {self.allowed_paths[0].root!r} is not {self.workspace_root!r}"
            )

    @classmethod
    def for_workspace(
        cls,
        root: str | os.PathLike[str],
        mode: AccessMode = AccessMode.READ_WRITE,
        allow: Iterable[PathRule] = (),
    ) -> SandboxPolicy:
        """Create the usual policy: the workspace first, then the paths in *allow*."""
        return cls(os.fspath(root), (PathRule(os.fspath(root), mode), *allow))

    def read_only(self) -> SandboxPolicy:
        """Return the same rules without write access, even where the rules are switched off."""
        rules = tuple(PathRule(rule.root, AccessMode.READ_ONLY) for rule in self.allowed_paths)
        return replace(self, allowed_paths=rules, most=AccessMode.READ_ONLY)

    def switched_on(self) -> SandboxPolicy:
        """Return the same rules, enforced; a policy without rules then allows the workspace alone."""
        if self.enabled:
            return self
        rules = self.allowed_paths or (PathRule(self.workspace_root, self.most),)
        return replace(self, allowed_paths=rules, enabled=True)

    def explain(self, path: str, access: Access | str) -> Decision:
        """Decide about *path* as text, absolute or relative to the workspace, without following links."""
        access = Access(access)
        parts = PurePosixPath(os.path.normpath(os.path.join(self.workspace_root, path))).parts[1:]
        for index, rule in enumerate(self.allowed_paths):
            if parts[: len(rule.parts)] == rule.parts:
                return self.decide(path, access, index)
        return self.decide(path, access, None)

    def allowed(self, index: int) -> frozenset[Access]:
        """Return the access that the rule *index* allows; none if there is no such rule."""
        known = index if index < len(self.allowed_paths) else None
        return frozenset(access for access in Access if self.decide("", access, known).allowed)

    def decide(self, path: str, access: Access, index: int | None) -> Decision:
        """Decide about *path* by the rule *index*, which is `None` if no rule covers the path."""
        rule = None if index is None else self.allowed_paths[index]
        reason = None
        if self.enabled and rule is None:
            reason = _OUTSIDE
        elif not self._mode(rule).allows(access):
            reason = "read-only workspace" if index == 0 else "read-only path"
        return Decision(path=path, access=access, index=index, rule=rule, reason=reason)

    def _mode(self, rule: PathRule | None) -> AccessMode:
        """Return the mode that applies where *rule* decides; *rule* is `None` where none does."""
        if rule is None or not self.enabled or not self.most.allows(Access.WRITE):
            return self.most
        return rule.mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision about one access, and the rule behind it."""

    path: str
    access: Access
    index: int | None
    """Number of the deciding rule, 0 for the workspace; `None` if no rule covers the path."""
    rule: PathRule | None
    reason: str | None
    """Why the access is denied; `None` if it is allowed."""

    @property
    def allowed(self) -> bool:
        """Whether the access is allowed."""
        return self.reason is None

    def require(self) -> None:
        """Require that the access is allowed.

        Raises:
            OutsideError: No rule covers the path.
            AccessError: Its rule does not allow this access.
        """
        if self.reason is None:
            return
        message = f"sandbox: {self.access} access denied for {self.path!r}: {self.reason}"
        kind = OutsideError if self.reason == _OUTSIDE else AccessError
        raise kind(message, path=self.path)


def _absolute(path: str | os.PathLike[str]) -> str:
    """Return the absolute path without `.` and `..`."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a rule's root must be str, not {type(text).__name__}")
    return os.path.abspath(text)
