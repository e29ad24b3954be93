"""Ask the package index whether a pin of constraints.txt was yanked or has a known vulnerability.

The index is the one pip uses. What it does not offer, or cannot be reached, is reported and not a failure;
a finding is, with exit status 1.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from pip._internal.models.index import PyPI

LOCK = Path("constraints.txt")
SECONDS = 30
"""Timeout of one request."""
REQUESTS = 8
"""Requests at the same time."""
PIN = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)[^\n]*(?P<hashes>(?:\n +--hash=[^\n]+)*)", re.MULTILINE
)
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"


@dataclass(frozen=True, slots=True)
class Pin:
    """One package at one version, with the SHA-256 digests of the files that may be installed."""

    name: str
    version: str
    digests: frozenset[str]


class Links(HTMLParser):
    """The files of an HTML index page: digest and reason for yanking, by PEP 503 and PEP 592."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.yanked: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and "data-yanked" in given:
            digest = (given.get("href") or "").rpartition("#sha256=")[2]
            self.yanked[digest] = given["data-yanked"] or "no reason given"


def parse(lock: str) -> list[Pin]:
    """Parse the text of a lock file made by `make lock`."""
    return [
        Pin(found["name"], found["version"], frozenset(re.findall(r"sha256:(\w+)", found["hashes"])))
        for found in PIN.finditer(lock)
    ]


def fetch(url: str) -> tuple[str, str]:
    """Fetch a page: its media type and its text."""
    request = urllib.request.Request(url, headers={"Accept": ACCEPT})  # noqa: S310  # the index pip uses
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
        return answer.headers.get_content_type(), answer.read().decode()


def yanked(pin: Pin, index: str) -> list[str]:
    """Reasons for which locked files of *pin* were yanked."""
    kind, page = fetch(f"{index}/{pin.name}/")
    if kind == "text/html":
        reasons = Links(page).yanked
    else:
        files: list[dict[str, Any]] = json.loads(page)["files"]  # Any: JSON
        reasons = {file["hashes"]["sha256"]: str(file["yanked"]) for file in files if file.get("yanked")}
    return sorted({f"yanked: {reasons[digest]}" for digest in pin.digests & reasons.keys()})


def vulnerabilities(pin: Pin, index: str) -> list[str]:
    """Known vulnerabilities of *pin*, withdrawn ones left out."""
    _, page = fetch(f"{index.removesuffix('/simple')}/pypi/{pin.name}/{pin.version}/json")
    known: list[dict[str, Any]] = json.loads(page)["vulnerabilities"]  # Any: JSON
    return [f"{one['id']}: {one.get('summary')}" for one in known if not one.get("withdrawn")]


def check(subject: str, question: Callable[[Pin, str], list[str]], pins: list[Pin], index: str) -> list[str]:
    """Ask the index about every pin; print how many answers it gave, return the findings."""

    def ask(pin: Pin) -> list[str] | Exception:
        try:
            return [f"{pin.name} {pin.version} {finding}" for finding in question(pin, index)]
        except (OSError, ValueError, KeyError) as error:  # no answer, or one in another form
            return error

    with ThreadPoolExecutor(REQUESTS) as pool:
        answers = list(pool.map(ask, pins))
    failures = [answer for answer in answers if isinstance(answer, Exception)]
    unknown = f", NOT CHECKED for {len(failures)}: {failures[0]!r}" if failures else ""
    print(f"audit: {subject}: checked for {len(pins) - len(failures)} of {len(pins)} pins{unknown}")
    return [finding for answer in answers if not isinstance(answer, Exception) for finding in answer]


def main() -> int:
    """Audit the lock file; the exit status is 1 if anything was found."""
    pins = parse(LOCK.read_text("utf-8"))
    if not pins or not all(pin.digests for pin in pins):
        sys.exit(f"audit: {LOCK} has no pins with hashes: run make lock")
    index = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
    findings = check("yanked files", yanked, pins, index)
    findings += check("vulnerabilities", vulnerabilities, pins, index)
    for finding in findings:
        print(f"audit: {finding}", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
