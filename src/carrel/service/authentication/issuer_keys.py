"""The issuer's public keys (JWKS): fetched on first use, cached and refreshed."""

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
"""Maximum size of a key set."""
FETCH_SECONDS = 5
"""Timeout for each read from the issuer, and for the whole fetch."""
KEPT_SECONDS = 300
"""Age at which the keys are fetched again, so that a key withdrawn by the issuer stops being accepted."""
STALE_SECONDS = 3_600
"""Age up to which cached keys are used while the issuer does not answer."""
PAUSE_SECONDS = 30
"""Minimum interval between fetches, however many tokens name unknown keys and while the issuer is down."""
RSA_BITS = 2_048
"""Minimum size of an RSA key."""

PublicKey = RSAKey | ECKey | OKPKey
_KINDS: dict[str, type[PublicKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
"""Asymmetric keys only: with a shared secret, any verifier could also issue tokens."""


class IssuerKeys:
    """The keys published in a file or at a URL."""

    def __init__(
        self,
        source: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        logger: SandboxLogger | None = None,
    ) -> None:
        """Fetch the keys from *source*, a path or URL, on first use; failures are only logged."""
        self._source = source
        self._logger = SandboxLogger.of(logger)
        self._clock = clock
        self._keys: tuple[PublicKey, ...] = ()
        self._fetched: float | None = None
        """Time of the last successful fetch."""
        self._tried: float | None = None
        """Time of the last attempt."""
        self._lock = asyncio.Lock()
        # A separate thread: authentication must not wait for long-running work in the shared pool.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="carrel-issuer")

    async def find(self, kid: str | None) -> tuple[PublicKey, ...]:
        """Return the keys with the id *kid*, or all keys if that is `None`.

        Raises:
            UnreachableError: The issuer does not answer, and its keys are not cached or too old.
        """
        if self._age(self._fetched) >= KEPT_SECONDS:
            await self._refresh()
        if self._age(self._fetched) >= STALE_SECONDS:
            raise UnreachableError("the keys of the token issuer cannot be fetched now; try again later")
        if not self._cached(kid):
            await self._refresh()
        return self._cached(kid)

    def _cached(self, kid: str | None) -> tuple[PublicKey, ...]:
        return tuple(key for key in self._keys if kid is None or key.kid == kid)

    async def _refresh(self) -> None:
        """Fetch the keys, unless that was tried recently; on failure keep the old ones."""
        async with self._lock:
            if self._age(self._tried) < PAUSE_SECONDS:
                return
            self._tried = self._clock()
            try:
                loop = asyncio.get_running_loop()
                self._keys = await loop.run_in_executor(self._thread, _fetch, self._source)
            except (OSError, HTTPException, ValueError, RecursionError) as error:
                self._logger.log_failure("issuer.failed", error)
                return
            self._fetched = self._tried

    def _age(self, time_seconds: float | None) -> float:
        return float("inf") if time_seconds is None else self._clock() - time_seconds


def _fetch(source: str) -> tuple[PublicKey, ...]:
    return tuple(_parse(_read(source)))


def _read(source: str) -> bytes:
    if source.startswith("/"):
        with Path(source).open("rb") as file:
            return _require_small(file.read(DOCUMENT_BYTES + 1))
    request = Request(source, headers={"Accept": "application/json"})  # noqa: S310  # checked by its setting
    deadline = time.monotonic() + FETCH_SECONDS
    data = b""
    with build_opener(_NoRedirects).open(request, timeout=FETCH_SECONDS) as response:
        while chunk := response.read1(DOCUMENT_BYTES):
            data = _require_small(data + chunk)
            if time.monotonic() > deadline:
                raise TimeoutError("the issuer is too slow")
    return data


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: only the configured URL is trusted."""

    def redirect_request(self, *_: object) -> None:
        return None


def _require_small(data: bytes) -> bytes:
    if len(data) > DOCUMENT_BYTES:
        raise ValueError(f"the key set is larger than {DOCUMENT_BYTES} bytes")
    return data


def _parse(data: bytes) -> Iterator[PublicKey]:
    """Yield the usable signature keys of a JWKS document; skip all others.

    Raises:
        ValueError: The document is not a key set.
    """
    document = json.loads(data)
    rows = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise ValueError("not a key set: 'keys' is missing or not a list")
    for row in rows:
        if isinstance(row, dict) and row.get("use", "sig") == "sig" and not _is_weak(row):
            try:
                yield _KINDS[row["kty"]].import_key(row)
            except (JoseError, KeyError, TypeError, ValueError):
                continue


def _is_weak(row: dict[str, Any]) -> bool:  # Any: any JSON
    try:
        return row.get("kty") == "RSA" and base64_to_int(row["n"]).bit_length() < RSA_BITS
    except (KeyError, TypeError, ValueError):
        return True
