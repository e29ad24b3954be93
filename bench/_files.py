"""The files that are written: what was found, the page about it, and its plots."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench import _fresh, _results
from bench._page import render
from bench._plots import draw, plots

PROJECT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Files:
    """All of them, beneath one directory."""

    top: Path = PROJECT

    @property
    def results(self) -> Path:
        return self.top / "bench" / "results.json"

    @property
    def page(self) -> Path:
        return self.top / "docs" / "benchmarks.md"

    @property
    def images(self) -> Path:
        return self.top / "docs" / "images"

    def made(self) -> dict[Path, bytes]:
        """The page and the plots, as the results give them."""
        results = _results.load(self.results)
        fresh = _fresh.load(self.top / "bench" / "fresh.json")
        drawn = {self.images / name: content for name, content in draw(plots(results)).items()}
        return {self.page: render(results, fresh).encode(), **drawn}

    def there(self) -> dict[Path, bytes]:
        """The page and the plots, as they are."""
        files = [self.page, *self.images.glob("bench-*.svg")]
        return {file: file.read_bytes() for file in files if file.exists()}

    def write(self) -> None:
        """Regenerate the page and the plots."""
        made = self.made()
        self.images.mkdir(parents=True, exist_ok=True)
        for file in self.there().keys() - made.keys():
            file.unlink()
        for file, content in made.items():
            file.write_bytes(content)
