"""`make audit` finds pins that the index yanked or knows as vulnerable."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "audit.py"
GOOD, BAD = "a" * 64, "b" * 64
LOCK = (
    f"good==1.0 \\\n    --hash=sha256:{GOOD}\nbad==2.0 ; python_version < '4' \\\n    --hash=sha256:{BAD}\n"
)


@dataclass
class Index:
    """A package index on a real socket."""

    pages: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Media type and text, by path."""
    url: str = ""

    def audit(self, place: Path, lock: str = LOCK) -> subprocess.CompletedProcess[str]:
        (place / "constraints.txt").write_text(lock)
        environment = {"PIP_INDEX_URL": f"{self.url}/simple"}
        return subprocess.run(
            [sys.executable, SCRIPT], cwd=place, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def index() -> Iterator[Index]:
    found = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, text = found.pages.get(self.path, ("", ""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *words: object) -> None:
            """Nothing on standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        found.url = f"http://127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()


def html(digest: str, attribute: str = "") -> tuple[str, str]:
    return "text/html", f'<a href="x.whl#sha256={digest}"{attribute}>x.whl</a>'


def release(*known: dict[str, object]) -> tuple[str, str]:
    return "application/json", json.dumps({"vulnerabilities": known})


def test_pins_without_a_finding_pass(index: Index, tmp_path: Path) -> None:
    index.pages = {
        "/simple/good/": html(GOOD),
        "/simple/bad/": html("c" * 64, ' data-yanked="another file"'),
        "/pypi/good/1.0/json": release(),
        "/pypi/bad/2.0/json": release({"id": "X-1", "summary": "", "withdrawn": "2026-01-01"}),
    }
    done = index.audit(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("checked for 2 of 2 pins\n") == 2


def test_a_yanked_or_vulnerable_pin_fails_and_is_named(index: Index, tmp_path: Path) -> None:
    files = [{"hashes": {"sha256": GOOD}, "yanked": False}, {"hashes": {"sha256": BAD}, "yanked": "broken"}]
    index.pages = {
        "/simple/good/": html(GOOD, ' data-yanked="on html"'),
        "/simple/bad/": ("application/vnd.pypi.simple.v1+json", json.dumps({"files": files})),
        "/pypi/good/1.0/json": release(),
        "/pypi/bad/2.0/json": release({"id": "X-1", "summary": "a hole"}),
    }
    done = index.audit(tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "audit: good 1.0 yanked: on html",
        "audit: bad 2.0 yanked: broken",
        "audit: bad 2.0 X-1: a hole",
    ]


def test_what_the_index_does_not_answer_is_reported_and_does_not_fail(index: Index, tmp_path: Path) -> None:
    index.pages = {"/simple/good/": html(GOOD), "/pypi/good/1.0/json": ("text/html", "<p>no JSON</p>")}
    done = index.audit(tmp_path)
    assert done.returncode == 0
    assert "yanked files: checked for 1 of 2 pins, NOT CHECKED for 1: " in done.stdout
    assert "vulnerabilities: checked for 0 of 2 pins, NOT CHECKED for 2: " in done.stdout


def test_a_lock_file_without_hashes_is_refused(index: Index, tmp_path: Path) -> None:
    done = index.audit(tmp_path, lock="good==1.0\n")
    assert done.returncode == 1
    assert "make lock" in done.stderr
