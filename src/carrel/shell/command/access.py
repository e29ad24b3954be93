"""The paths that a command declares it would read or write, for analysis before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from carrel.policy.rules import Access
from carrel.shell.command.context import NULL, STDIN


class PathAccess(NamedTuple):
    """One path that a command would use."""

    access: Access
    operand: str


def reads(operands: Iterable[str]) -> Iterator[PathAccess]:
    """It would read each of *operands*; `-` and `/dev/null` are no files."""
    return (PathAccess(Access.READ, operand) for operand in operands if operand not in (STDIN, NULL))


def inspects(operands: Iterable[str]) -> Iterator[PathAccess]:
    """It would look at each of *operands*; `-` is a name like others."""
    return (PathAccess(Access.READ, operand if operand != "-" else "./-") for operand in operands)


def writes(operands: Iterable[str]) -> Iterator[PathAccess]:
    """It would change each of *operands*."""
    return (PathAccess(Access.WRITE, operand) for operand in operands)
