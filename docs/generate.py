"""Write the reference pages that are generated from the code: `python -m docs.generate`.

A test fails if a page is stale.
"""

from __future__ import annotations

from docs.reference_pages.pages import DOCS, PAGES


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())


if __name__ == "__main__":
    main()
