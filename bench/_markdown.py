"""Tables and images, as Markdown has them."""

from __future__ import annotations

from collections.abc import Sequence


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows below the names of their columns."""
    shown = [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in shown)


def image(text: str, file: str) -> str:
    """A picture, and what it shows."""
    return f"![{text}]({file})"
