"""The parts of a backend's results that tests compare."""

from __future__ import annotations

from deepagents.backends.protocol import GlobResult, GrepResult, LsResult

from carrel.adapters.deepagents import CarrelBackend


def paths(found: LsResult | GlobResult) -> list[str]:
    entries = found.entries if isinstance(found, LsResult) else found.matches
    assert entries is not None, found.error
    return [entry["path"] for entry in entries]


def lines(found: GrepResult) -> list[tuple[str, int, str]]:
    assert found.matches is not None, found.error
    return [(match["path"], match["line"], match["text"]) for match in found.matches]


def content(backend: CarrelBackend, path: str) -> str:
    data = backend.read(path).file_data
    assert data is not None
    return data["content"]
