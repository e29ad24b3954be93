"""Show the rules for files, or change them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from carrel.errors import AccessError, CarrelError
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.shell.command.context import Context
from carrel.shell.command.errors import strerror
from carrel.shell.command.flags import UsageError

USAGE = "[status | rw | ro | allow PATH [ro|rw] | disable | enable]"
NOTES = """\
status         print whether the rules hold, and which there are
rw, ro         make the workspace writable, or only readable
allow PATH     let another directory of the host be used, only to be read unless rw follows
disable        let everything on the host be used
enable         let the rules hold again
Only an operator may change the rules; they last as long as the shell."""


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Print the rules, or change them if whoever types may."""
    order, arguments = (argv[0] if argv else "status"), list(argv[1:])
    if order == "status" and not arguments:
        _print(ctx)
        return 0
    policy, told = _changed(ctx.workspace.policy, order, arguments)
    if ctx.resources.operator is None:
        return _refuse(ctx, order)
    try:
        ctx.resources.change_rules(policy)
    except CarrelError as error:
        ctx.error(strerror(error))
        return 1
    ctx.write_line(told)
    return 0


def _print(ctx: Context) -> None:
    policy = ctx.workspace.policy
    mount = ctx.workspace.mount
    root = mount if ctx.resources.operator is None else f"{mount} ({policy.workspace_root} on the host)"
    ctx.write_line(f"Workspace sandbox: {'enabled' if policy.enabled else 'disabled'}")
    ctx.write_line(f"Root: {root}")
    ctx.write_line("Allowed paths:")
    for index, rule in enumerate(policy.allowed_paths):
        path, mark = (rule.root, "") if index else (mount, " (workspace)")
        ctx.write_line(f"  {path} [{rule.mode}]{mark}")


def _refuse(ctx: Context, order: str) -> int:
    error = AccessError(
        f"sandbox: 'workspace {order}' denied: only an operator may change the rules", path=order
    )
    ctx.workspace.gate.refused("workspace", error)
    ctx.write_error_line(error.message)
    return 1


def _changed(policy: SandboxPolicy, order: str, arguments: list[str]) -> tuple[SandboxPolicy, str]:
    """The rules as *order* wants them, and what to tell."""
    if order == "allow" and 1 <= len(arguments) <= 2:
        rule = _rule(policy, arguments)
        told = f"Allowed path added: {rule.root} [{rule.mode}]"
        return replace(policy, allowed_paths=(*policy.allowed_paths, rule)), told
    if arguments:
        raise UsageError(
            f"'{order}' does not take these arguments" if order != "allow" else "too many arguments"
        )
    if order in ("rw", "ro"):
        own = PathRule(policy.workspace_root, AccessMode(order))
        told = f"Workspace is now {'read-write' if order == 'rw' else 'read-only'}"
        return replace(policy, allowed_paths=(own, *policy.allowed_paths[1:])), told
    if order in ("enable", "disable"):
        return replace(policy, enabled=order == "enable"), f"Workspace sandbox: {order}d"
    if order == "allow":
        raise UsageError("allow: missing PATH")
    raise UsageError(f"unknown order '{order}'")


def _rule(policy: SandboxPolicy, arguments: list[str]) -> PathRule:
    path, mode = arguments[0], arguments[1] if len(arguments) > 1 else "ro"
    if mode not in ("ro", "rw"):
        raise UsageError(f"allow: the mode is ro or rw, not '{mode}'")
    if not os.path.isabs(path):
        raise UsageError(f"allow: PATH must be absolute: '{path}'")
    return PathRule(path, AccessMode(mode))
