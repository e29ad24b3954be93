"""The paths that a command declares it would read or write, for analysis before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from carrel.policy.rules import Access
from carrel.shell.command.context import NULL, STDIN


class PathAccess(NamedTuple):
    """One path that a command would use, and how."""

    access: Access
    operand: str


def reads(operands: Iterable[str]) -> Iterator[PathAccess]:
    """Declare that each of *operands* is read, except `-` and `/dev/null`."""
    return (PathAccess(Access.READ, operand) for operand in operands if operand not in (STDIN, NULL))


def inspects(operands: Iterable[str]) -> Iterator[PathAccess]:
    """Declare that each of *operands* is examined; `-` is a file name here."""
    return (PathAccess(Access.READ, operand if operand != "-" else "./-") for operand in operands)


def writes(operands: Iterable[str]) -> Iterator[PathAccess]:
    """Declare that each of *operands* is written."""
    return (PathAccess(Access.WRITE, operand) for operand in operands)
