"""What a command would read and write, told by the command itself before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from carrel.policy.rules import Access
from carrel.shell.context import NULL, STDIN


class Touch(NamedTuple):
    """One path that a command would use."""

    access: Access
    operand: str


def reads(operands: Iterable[str]) -> Iterator[Touch]:
    """It would read each of *operands*; `-` and `/dev/null` are no files."""
    return (Touch(Access.READ, operand) for operand in operands if operand not in (STDIN, NULL))


def looks_at(operands: Iterable[str]) -> Iterator[Touch]:
    """It would look at each of *operands*; `-` is a name like others."""
    return (Touch(Access.READ, operand if operand != "-" else "./-") for operand in operands)


def writes(operands: Iterable[str]) -> Iterator[Touch]:
    """It would change each of *operands*."""
    return (Touch(Access.WRITE, operand) for operand in operands)
