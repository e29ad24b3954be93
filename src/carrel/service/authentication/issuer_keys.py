"""The issuer's public keys (JWKS): fetched on first use, cached, and refreshed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import HTTPRedirectHandler, Request, build_opener

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.util import base64_to_int

from carrel.audit.logger import SandboxLogger
from carrel.errors import UnreachableError

DOCUMENT_BYTES = 2**18
FETCH_SECONDS = 5
"""Longest wait for the issuer to send anything, and longest time of it all."""
KEPT_SECONDS = 300
"""After so long the keys are fetched anew, so that one which the issuer has withdrawn is forgotten."""
STALE_SECONDS = 3_600
"""For so long they are used where the issuer does not answer."""
PAUSE_SECONDS = 30
"""Between two fetches: tokens that name unknown keys, and an issuer that is down, bring no more than this."""
RSA_BITS = 2_048

PublicKey = RSAKey | ECKey | OKPKey
_KINDS: dict[str, type[PublicKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
"""Public keys only: with a secret one, whoever checks a token could also make it."""


class IssuerKeys:
    """The keys that stand in a file, or at a URL."""

    def __init__(
        self,
        where: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        logger: SandboxLogger | None = None,
    ) -> None:
        """Fetch them from *where* when they are first asked for; only the log is told why that failed."""
        self._where = where
        self._logger = SandboxLogger.of(logger)
        self._clock = clock
        self._keys: tuple[PublicKey, ...] = ()
        self._fetched: float | None = None
        """When they were fetched; `None` if they never were."""
        self._tried: float | None = None
        """When that was last tried."""
        self._lock = asyncio.Lock()
        # Of its own: all others may be at work for long.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="carrel-issuer")

    async def named(self, kid: str | None) -> tuple[PublicKey, ...]:
        """The keys of that name; without one, all.

        Raises:
            UnreachableError: The issuer does not answer, and its keys are not known, or too old.
        """
        if self._age(self._fetched) >= KEPT_SECONDS:
            await self._refresh()
        if self._age(self._fetched) >= STALE_SECONDS:
            raise UnreachableError("the keys of the issuer of tokens cannot be had now; try again later")
        if not self._find(kid):
            await self._refresh()
        return self._find(kid)

    def _find(self, kid: str | None) -> tuple[PublicKey, ...]:
        return tuple(key for key in self._keys if kid is None or key.kid == kid)

    async def _refresh(self) -> None:
        """Fetch the keys, unless that was tried just now; the old ones stay where it fails."""
        async with self._lock:
            if self._age(self._tried) < PAUSE_SECONDS:
                return
            self._tried = self._clock()
            try:
                loop = asyncio.get_running_loop()
                self._keys = await loop.run_in_executor(self._thread, _fetched, self._where)
            except (OSError, HTTPException, ValueError, RecursionError) as error:
                self._logger.log_failure("issuer.failed", error)
                return
            self._fetched = self._tried

    def _age(self, moment: float | None) -> float:
        return float("inf") if moment is None else self._clock() - moment


def _fetched(where: str) -> tuple[PublicKey, ...]:
    return tuple(_parse(_read(where)))


def _read(where: str) -> bytes:
    if where.startswith("/"):
        with Path(where).open("rb") as file:
            return _bounded(file.read(DOCUMENT_BYTES + 1))
    request = Request(where, headers={"Accept": "application/json"})  # noqa: S310  # checked by its setting
    deadline = time.monotonic() + FETCH_SECONDS
    data = b""
    with build_opener(_Stay).open(request, timeout=FETCH_SECONDS) as answer:
        while chunk := answer.read1(DOCUMENT_BYTES):
            data = _bounded(data + chunk)
            if time.monotonic() > deadline:
                raise TimeoutError("the issuer is too slow")
    return data


class _Stay(HTTPRedirectHandler):
    """Goes nowhere else: the place that is configured is the one that is trusted."""

    def redirect_request(self, *_: object) -> None:
        return None


def _bounded(data: bytes) -> bytes:
    if len(data) > DOCUMENT_BYTES:
        raise ValueError(f"the keys take more than {DOCUMENT_BYTES} bytes")
    return data


def _parse(data: bytes) -> Iterator[PublicKey]:
    """The keys for signatures that we can use; others are left out.

    Raises:
        ValueError: It is no set of keys.
    """
    document = json.loads(data)
    rows = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise ValueError("no set of keys")
    for row in rows:
        if isinstance(row, dict) and row.get("use", "sig") == "sig" and not _is_weak(row):
            try:
                yield _KINDS[row["kty"]].import_key(row)
            except (JoseError, KeyError, TypeError, ValueError):
                continue


def _is_weak(row: dict[str, Any]) -> bool:  # Any: whatever JSON says
    try:
        return row.get("kty") == "RSA" and base64_to_int(row["n"]).bit_length() < RSA_BITS
    except (KeyError, TypeError, ValueError):
        return True
