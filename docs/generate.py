"""Write the reference pages that follow from the code: `python -m docs.generate`.

A test fails when a page is not what this makes of it.
"""

from __future__ import annotations

from docs.reference_pages.pages import DOCS, PAGES


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())


if __name__ == "__main__":
    main()
