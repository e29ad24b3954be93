"""`list_directory_with_sizes`: the names in a directory and the sizes of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.profiles.mcp.listing import render_size
from carrel.tools.toolbox import Toolbox
from tests.tools.calls import refused, said


def names(answer: str) -> list[str]:
    """The marked names in the order in which they came."""
    return [" ".join(line.split()[:2]) for line in answer.partition("\n\n")[0].split("\n")]


def test_sizes_come_in_columns_with_the_totals(mcp: Toolbox, directory: Path) -> None:
    tree(directory, f"a.txt = {'x' * 1536}", "b.txt = xy", "d/f")
    assert said(mcp, "list_directory_with_sizes", path=".").split("\n") == [
        f"[FILE] {'a.txt':<30} {'1.50 KB':>10}",
        f"[FILE] {'b.txt':<30} {'2 B':>10}",
        "[DIR] d",
        "",
        "Total: 2 files, 1 directories",
        "Combined size: 1.50 KB",
    ]


@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        ({}, ["[FILE] a", "[FILE] b", "[DIR] c"]),
        ({"sortBy": "name"}, ["[FILE] a", "[FILE] b", "[DIR] c"]),
        ({"sortBy": "size"}, ["[FILE] b", "[FILE] a", "[DIR] c"]),
    ],
)
def test_they_come_by_name_or_the_largest_first(
    mcp: Toolbox, directory: Path, arguments: dict[str, str], order: list[str]
) -> None:
    tree(directory, "a = 1", "b = 333", "c/")
    assert names(said(mcp, "list_directory_with_sizes", path=".", **arguments)) == order


def test_another_order_is_refused(mcp: Toolbox) -> None:
    told = refused(mcp, "list_directory_with_sizes", "tool.arguments", path=".", sortBy="date")
    assert "'sortBy' must be one of name, size" in told


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KB"),
        (5 * 2**20, "5.00 MB"),
        (2**30, "1.00 GB"),
        (2**40, "1.00 TB"),
        (2**50, "1024.00 TB"),
    ],
)
def test_a_size_can_be_read(size_bytes: int, text: str) -> None:
    assert render_size(size_bytes) == text
