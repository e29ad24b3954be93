"""Show or change the path rules."""

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
status         print whether the rules are enforced, and list them
rw, ro         make the workspace read-write or read-only
allow PATH     allow access to another directory of the host, read-only unless rw follows
disable        allow access to everything on the host
enable         enforce the rules again
Only an operator may change the rules; changes last until the shell ends."""


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Print the rules, or change them if the caller is an operator."""
    action, arguments = (argv[0] if argv else "status"), list(argv[1:])
    if action == "status" and not arguments:
        _print(ctx)
        return 0
    policy, message = _apply(ctx.workspace.policy, action, arguments)
    if ctx.resources.operator is None:
        return _refuse(ctx, action)
    try:
        ctx.resources.change_rules(policy)
    except CarrelError as error:
        ctx.error(strerror(error))
        return 1
    ctx.write_line(message)
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


def _refuse(ctx: Context, action: str) -> int:
    error = AccessError(
        f"sandbox: 'workspace {action}' denied: only an operator may change the rules", path=action
    )
    ctx.workspace.gate.record_refusal("workspace", error)
    ctx.write_error_line(error.message)
    return 1


def _apply(policy: SandboxPolicy, action: str, arguments: list[str]) -> tuple[SandboxPolicy, str]:
    """Return the rules after *action*, and the message to print."""
    if action == "allow" and 1 <= len(arguments) <= 2:
        rule = _parse_rule(arguments)
        message = f"Allowed path added: {rule.root} [{rule.mode}]"
        return replace(policy, allowed_paths=(*policy.allowed_paths, rule)), message
    if arguments:
        raise UsageError(
            f"'{action}' does not take these arguments" if action != "allow" else "too many arguments"
        )
    if action in ("rw", "ro"):
        own = PathRule(policy.workspace_root, AccessMode(action))
        message = f"Workspace is now {'read-write' if action == 'rw' else 'read-only'}"
        return replace(policy, allowed_paths=(own, *policy.allowed_paths[1:])), message
    if action in ("enable", "disable"):
        return replace(policy, enabled=action == "enable"), f"Workspace sandbox: {action}d"
    if action == "allow":
        raise UsageError("allow: missing PATH")
    raise UsageError(f"unknown action '{action}'")


def _parse_rule(arguments: list[str]) -> PathRule:
    path, mode = arguments[0], arguments[1] if len(arguments) > 1 else "ro"
    if mode not in ("ro", "rw"):
        raise UsageError(f"allow: the mode must be ro or rw, not '{mode}'")
    if not os.path.isabs(path):
        raise UsageError(f"allow: PATH must be absolute: '{path}'")
    return PathRule(path, AccessMode(mode))
