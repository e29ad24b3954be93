"""`Authenticator`: authenticate a caller by an API key, by a JWT, or as the local operator.

The operator presents the local token, which only the user who runs the service can read. With
`serve.require_key` off, and only while the service listens on a loopback address, a request from this machine
without credentials is the operator's too. Browsers and proxies on this machine are excluded: a browser sends
requests for any web page, and a proxy forwards them for anyone, so their requests need credentials.

Not covered with `serve.require_key` off: other users of this machine, and local proxies that add no header.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from carrel.audit.logger import SandboxLogger
from carrel.config.network_kinds import is_loopback
from carrel.config.settings import Settings
from carrel.errors import CarrelError, UnauthenticatedError
from carrel.service.authentication.api_key import KEY_PREFIX, OPERATOR_NAME
from carrel.service.authentication.key_store import KeyStore
from carrel.service.principal import Principal

if TYPE_CHECKING:
    from carrel.service.authentication.jwt import TokenVerifier

OPERATOR = Principal(name=OPERATOR_NAME)

AGAIN_SECONDS = 5.0
"""Seconds between two checks of the credentials of a long-running request."""
_THREADS = 2
_FORWARDED = (
    "cf-connecting-ip",
    "client-ip",
    "fastly-client-ip",
    "forwarded",
    "proxy-",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-",
    "x-forwarded-",
    "x-original-",
    "x-real-ip",
)
"""Prefixes of the names of headers that proxies add."""
_HOST = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*))(?::\d*)?", re.ASCII)
_BROWSER_HEADERS = {"host", "origin", "sec-fetch-site"}
"""Headers that say for which web page a browser sends a request."""
_OWN_SITES = {"none", "same-origin"}
"""Values of `Sec-Fetch-Site` for requests that no foreign web page made."""


class Authenticator:
    """Authenticates callers."""

    def __init__(
        self,
        settings: Settings,
        keys: KeyStore,
        *,
        tokens: TokenVerifier | None = None,
        local_token: str | None = None,
        logger: SandboxLogger | None = None,
    ) -> None:
        """Accept *keys* and the tokens of the configured issuer; *local_token* is the operator's.

        Raises:
            ConfigError: The settings of the issuer are incomplete.
        """
        self._serve = settings.serve
        self.needs_key = self._serve.require_key or not is_loopback(self._serve.host)
        """Whether the operator needs credentials too."""
        self._keys = keys
        self._local_token = None if local_token is None else local_token.encode("ascii")
        self._tokens = tokens or _token_verifier(settings, logger)
        self._logger = SandboxLogger.of(logger)
        # A separate pool: authentication must not wait for long-running work in the shared one.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="carrel-callers")

    def is_local(self, peer: str | None, headers: Iterable[tuple[str, str]]) -> bool:
        """Whether a request without credentials may be the operator's; pass the result to `authenticate`.

        Args:
            peer: The address of the client as the socket reports it, never from a header; `None` if unknown.
            headers: All headers or metadata of the request, including repeated ones.
        """
        if peer is None or not is_loopback(peer):
            return False
        seen: dict[str, str] = {}
        for header, value in headers:
            name = header.lower()
            if name.startswith(_FORWARDED) or name in seen:
                return False
            if name in _BROWSER_HEADERS:
                seen[name] = value.strip()
        host = seen.get("host")
        # After DNS rebinding, a page of another site sends the name of that site.
        return (host is None or is_loopback(_host_without_port(host))) and self._is_own_site(seen)

    def _is_own_site(self, headers: Mapping[str, str]) -> bool:
        """Whether no browser sent the request, or one for a page of this service or an allowed origin."""
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in _OWN_SITES
        own = f"{self._serve.scheme}://{headers.get('host')}"
        return origin.lower() == own.lower() or origin.lower() in self._serve.cors_origins

    @property
    def has_callers(self) -> bool:
        """Whether any caller can authenticate: by a token, by a key, or as the operator."""
        has_operator = not self.needs_key or (self._local_token is not None and is_loopback(self._serve.host))
        return has_operator or self._tokens is not None or self._keys.has_keys

    async def authenticate(self, *, authorization: str | None, peer_is_local: bool) -> Principal:
        """Authenticate the caller.

        Args:
            authorization: The `Authorization` header; `None` if the request has none.
            peer_is_local: The result of `is_local`.

        Raises:
            UnauthenticatedError: The credentials are missing or wrong; the message is the same for both.
            UnavailableError: The keys cannot be read now.
            UnreachableError: The token issuer does not answer.
        """
        caller = self.authenticate_cached(authorization=authorization, peer_is_local=peer_is_local)
        return await self._look_up(authorization or "") if caller is None else caller

    def authenticate_cached(self, *, authorization: str | None, peer_is_local: bool) -> Principal | None:
        """Authenticate the caller without waiting, or return `None` if the credentials must be looked up.

        Raises:
            UnauthenticatedError: The credentials are missing or malformed.
        """
        if authorization is None:
            if peer_is_local and not self.needs_key:
                return OPERATOR
            raise self._reject("no credentials")
        secret = self._bearer(authorization)
        if self._local_token is not None and hmac.compare_digest(secret.encode(), self._local_token):
            return OPERATOR
        key = self._keys.find_cached(secret)
        return None if key is None else key.principal()

    async def _look_up(self, authorization: str) -> Principal:
        secret = self._bearer(authorization)
        if secret.startswith(KEY_PREFIX):
            loop = asyncio.get_running_loop()
            key = await loop.run_in_executor(self._threads, self._keys.find, secret)
            caller = None if key is None else key.principal()
        else:
            caller = None if self._tokens is None else await self._tokens.principal(secret)
        if caller is None:
            raise self._reject("unknown key" if secret.startswith(KEY_PREFIX) else "invalid token")
        return caller

    def _bearer(self, authorization: str) -> str:
        """Return the key or token of a `Bearer` header."""
        scheme, _, secret = authorization.strip().partition(" ")
        if scheme.lower() != "bearer":
            raise self._reject("not a Bearer header")
        return secret.strip()

    @asynccontextmanager
    async def revalidating(self, authorization: str | None) -> AsyncIterator[None]:
        """Cancel the block when *authorization* is no longer valid; `None` stays valid.

        For requests that last long.

        Raises:
            UnauthenticatedError: The key or token was revoked or has expired, so the block was cancelled.
        """
        if authorization is None:
            yield
            return
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # for the type checker
        is_inside, is_cancelled = True, False

        def cancel(checking: asyncio.Task[UnauthenticatedError]) -> None:
            nonlocal is_cancelled
            if is_inside and not checking.cancelled():
                is_cancelled = task.cancel()

        checking = asyncio.create_task(self._wait_until_invalid(authorization))
        checking.add_done_callback(cancel)
        try:
            yield
        except asyncio.CancelledError:
            # A cancellation from elsewhere takes precedence.
            if not is_cancelled or task.uncancel() > 0:
                raise
            raise checking.result() from None
        finally:
            is_inside = False
            checking.cancel()

    async def _wait_until_invalid(self, authorization: str) -> UnauthenticatedError:
        """Wait until the credentials are no longer valid, and return the error."""
        while True:
            await asyncio.sleep(AGAIN_SECONDS)
            try:
                await self.authenticate(authorization=authorization, peer_is_local=False)
            except UnauthenticatedError as error:
                return error
            except CarrelError:
                # The check itself failed; keep the last result.
                continue

    def _reject(self, reason: str) -> UnauthenticatedError:
        """Log the *reason*, which never contains credentials, and return the error for the caller."""
        self._logger.counts.add(UnauthenticatedError.code)
        self._logger.log_security_event("caller", reason=reason)
        return UnauthenticatedError(
            "a valid key is needed: send 'Authorization: Bearer KEY'; `carrel key local` prints one to the"
            " user who runs the service"
        )


def single_authorization(values: Sequence[str]) -> str | None:
    """Return the only `Authorization` value; of several, a proxy may have checked another, so none counts."""
    if not values:
        return None
    return values[0] if len(values) == 1 else ""


def _token_verifier(settings: Settings, logger: SandboxLogger | None) -> TokenVerifier | None:
    serve = settings.serve
    if not (serve.jwt_issuer or serve.jwt_audience or serve.jwt_jwks):
        return None
    from carrel.service.authentication.jwt import TokenVerifier

    return TokenVerifier(settings, logger=logger)


def _host_without_port(host: str) -> str:
    """Return the name or address of a `Host` header without its port, or an empty text if it is malformed."""
    found = _HOST.fullmatch(host)
    return "" if found is None else found[1] or found[2]
