"""`Authenticator`: identify the caller by an API key, a token (JWT), or as the local operator.

The operator has the local token, which only the user who runs the service can read. Where `serve.require_key`
is off, whoever comes with nothing, from this machine, to a service that listens nowhere else, is the operator
as well. A browser on this machine is not: it does what any web page tells it, so what it brings along
anonymously is refused, and so is what a proxy brings.

Not covered, where it is off: other users of this machine, and proxies on it that do not tell of themselves.
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
"""So often a caller that stays is looked at again."""
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
"""How the names of those headers begin that a proxy adds."""
_HOST = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*))(?::\d*)?", re.ASCII)
_BROWSERS = {"host", "origin", "sec-fetch-site"}
"""What tells for which page a browser asks."""
_OWN_PAGES = {"none", "same-origin"}
"""What a browser says of a request that no other web page made."""


class Authenticator:
    """Tells who calls."""

    def __init__(
        self,
        settings: Settings,
        keys: KeyStore,
        *,
        tokens: TokenVerifier | None = None,
        local_token: str | None = None,
        logger: SandboxLogger | None = None,
    ) -> None:
        """Know the callers that have one of *keys*, or a token of the issuer that is configured.

        Who has *local_token* is the operator.

        Raises:
            ConfigError: An issuer is configured in part.
        """
        self._serve = settings.serve
        self.needs_key = self._serve.require_key or not is_loopback(self._serve.host)
        """Whether also the operator must have one."""
        self._keys = keys
        self._local_token = None if local_token is None else local_token.encode("ascii")
        self._tokens = tokens or _tokens(settings, logger)
        self._logger = SandboxLogger.of(logger)
        # Of its own: where all others are at work for long, nobody else would be let in meanwhile.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="carrel-callers")

    def is_local(self, peer: str | None, headers: Iterable[tuple[str, str]]) -> bool:
        """Whether a request without a key may be the operator's; give the answer to `identify`.

        Args:
            peer: The address of the other side as the socket tells it, never as a header does; `None` if
                that is not known.
            headers: All headers of the request, or its metadata, each as often as it was sent.
        """
        if peer is None or not is_loopback(peer):
            return False
        told: dict[str, str] = {}
        for written, value in headers:
            name = written.lower()
            if name.startswith(_FORWARDED) or name in told:
                return False
            if name in _BROWSERS:
                told[name] = value.strip()
        host = told.get("host")
        # A page whose name was pointed to this machine tells that name.
        return (host is None or is_loopback(_host_without_port(host))) and self._is_no_other_page(told)

    def _is_no_other_page(self, told: Mapping[str, str]) -> bool:
        """Whether a browser that sends these headers does it for a page of ours, or one that is allowed."""
        origin = told.get("origin")
        if origin is None:
            return told.get("sec-fetch-site", "none") in _OWN_PAGES
        own = f"{self._serve.scheme}://{told.get('host')}"
        return origin.lower() == own.lower() or origin.lower() in self._serve.cors_origins

    @property
    def has_callers(self) -> bool:
        """Whether anybody can be known who reaches it: by a token, by a key, or as the operator."""
        has_operator = not self.needs_key or (self._local_token is not None and is_loopback(self._serve.host))
        return has_operator or self._tokens is not None or self._keys.are_some

    async def authenticate(self, *, authorization: str | None, peer_is_local: bool) -> Principal:
        """Who calls.

        Args:
            authorization: The header of that name; `None` if there was none.
            peer_is_local: What `is_local` said.

        Raises:
            UnauthenticatedError: Nobody that is known; whatever was wrong, the words are the same.
            UnavailableError: The keys cannot be read now.
            UnreachableError: The issuer of tokens does not answer.
        """
        caller = self.authenticate_cached(authorization=authorization, peer_is_local=peer_is_local)
        return await self._looked_up(authorization or "") if caller is None else caller

    def authenticate_cached(self, *, authorization: str | None, peer_is_local: bool) -> Principal | None:
        """Who calls, if that can be told without waiting; `None` if it must be looked up.

        Raises:
            UnauthenticatedError: Nobody that is known.
        """
        if authorization is None:
            if peer_is_local and not self.needs_key:
                return OPERATOR
            raise self._refused("nothing was shown")
        secret = self._bearer(authorization)
        if self._local_token is not None and hmac.compare_digest(secret.encode(), self._local_token):
            return OPERATOR
        key = self._keys.find_cached(secret)
        return None if key is None else key.principal()

    async def _looked_up(self, authorization: str) -> Principal:
        secret = self._bearer(authorization)
        if secret.startswith(KEY_PREFIX):
            loop = asyncio.get_running_loop()
            key = await loop.run_in_executor(self._threads, self._keys.find, secret)
            caller = None if key is None else key.principal()
        else:
            caller = None if self._tokens is None else await self._tokens.principal(secret)
        if caller is None:
            raise self._refused("no such key" if secret.startswith(KEY_PREFIX) else "no such token")
        return caller

    def _bearer(self, authorization: str) -> str:
        """The key or the token."""
        scheme, _, secret = authorization.strip().partition(" ")
        if scheme.lower() != "bearer":
            raise self._refused("that is no bearer's")
        return secret.strip()

    @asynccontextmanager
    async def revalidating(self, authorization: str | None) -> AsyncIterator[None]:
        """For what lasts long: go on while the caller is known by *authorization*; `None` always is.

        Raises:
            UnauthenticatedError: The key was revoked, or its time is over; the block was cancelled for that.
        """
        if authorization is None:
            yield
            return
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # for the type checker
        is_inside, is_ended = True, False

        def end(looking: asyncio.Task[UnauthenticatedError]) -> None:
            nonlocal is_ended
            if is_inside and not looking.cancelled():
                is_ended = task.cancel()

        looking = asyncio.create_task(self._look_again(authorization))
        looking.add_done_callback(end)
        try:
            yield
        except asyncio.CancelledError:
            # Somebody else may have cancelled it as well, and goes first.
            if not is_ended or task.uncancel() > 0:
                raise
            raise looking.result() from None
        finally:
            is_inside = False
            looking.cancel()

    async def _look_again(self, authorization: str) -> UnauthenticatedError:
        """Why the caller is not known any more, as soon as that is so."""
        while True:
            await asyncio.sleep(AGAIN_SECONDS)
            try:
                await self.authenticate(authorization=authorization, peer_is_local=False)
            except UnauthenticatedError as error:
                return error
            except CarrelError:
                # Nobody can tell just now, so it stays as it was.
                continue

    def _refused(self, reason: str) -> UnauthenticatedError:
        """The error; the reason is for the log, and holds nothing of what was shown."""
        self._logger.log_security_event("caller", reason=reason)
        return UnauthenticatedError(
            "a valid key is needed: send 'Authorization: Bearer KEY'; `carrel key local` prints one to the"
            " user who runs the service"
        )


def single_authorization(values: Sequence[str]) -> str | None:
    """What a caller shows; of two, a proxy may have looked at the other one, so that neither counts."""
    if not values:
        return None
    return values[0] if len(values) == 1 else ""


def _tokens(settings: Settings, logger: SandboxLogger | None) -> TokenVerifier | None:
    serve = settings.serve
    if not (serve.jwt_issuer or serve.jwt_audience or serve.jwt_jwks):
        return None
    from carrel.service.authentication.jwt import TokenVerifier

    return TokenVerifier(settings, logger=logger)


def _host_without_port(host: str) -> str:
    """The name or the address in a `Host` header, without its port; empty if it is no such header."""
    found = _HOST.fullmatch(host)
    return "" if found is None else found[1] or found[2]
