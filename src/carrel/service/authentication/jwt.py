"""Verify tokens (JWT) of a trusted issuer, and map their claims to a caller.

The algorithms are those that are configured, all of them with public keys; what a token says about its own
algorithm or key chooses among these and no further. A token must say who made it, for whom, and until when.

The tenant of a token is `jwt.` and what its claim says, if that is a plain name in lower case. So nobody gets
at the sessions of a key by a claim that has its name; a key shares those of a token if it is given this
tenant. Any other text, as `auth0|5f7c` or a mail address, is hashed: many issuers give such names, and none
of them may end up in the path of a directory, or be one with another that differs only in case.

Not covered: a token cannot be revoked before it expires, unless the issuer withdraws the key that it is
signed with.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jws import JWSRegistry
from joserfc.jwt import JWTClaimsRegistry, Token, decode

from carrel.audit.logger import SandboxLogger
from carrel.config.settings import Settings
from carrel.errors import ConfigError
from carrel.paths.session_id import id_problem
from carrel.service.authentication.issuer_keys import IssuerKeys, PublicKey
from carrel.service.principal import Principal

TOKEN_CHARACTERS = 16_384
LEEWAY_SECONDS = 30
"""How far our clock and the issuer's may differ."""
PLAIN, HASHED = "jwt.", "jwt-"
"""How a tenant begins whose claim is a plain name, and one whose claim is none."""

_MAX_KEYS = 8
"""How many keys a token is tried with that names none."""
_NAME_CHARACTERS = 128
_TYPES = {None, "jwt", "at+jwt", "application/jwt", "application/at+jwt"}
_PLAIN = re.compile(r"[a-z0-9_.-]+", re.ASCII)


class TokenVerifier:
    """The tokens of one issuer."""

    def __init__(
        self,
        settings: Settings,
        *,
        keys: IssuerKeys | None = None,
        clock: Callable[[], float] = time.time,
        logger: SandboxLogger | None = None,
    ) -> None:
        """Trust the issuer that is configured.

        Raises:
            ConfigError: Issuer, audience and keys are not all named, or no algorithm is.
        """
        serve = settings.serve
        if not (serve.jwt_issuer and serve.jwt_audience and serve.jwt_jwks and serve.jwt_algorithms):
            names = "serve.jwt_issuer, serve.jwt_audience, serve.jwt_jwks and serve.jwt_algorithms"
            raise ConfigError(f"{names} must all be set, or none of the first three")
        self._keys = keys or IssuerKeys(serve.jwt_jwks, logger=logger)
        self._issuer = serve.jwt_issuer
        self._registry = _Registry(algorithms=serve.jwt_algorithms, strict_check_header=False)
        self._claims = JWTClaimsRegistry(
            now=lambda: int(clock()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": serve.jwt_issuer},
            aud={"essential": True, "value": serve.jwt_audience},
            exp={"essential": True},
        )
        self._tenant_claim = serve.jwt_tenant_claim
        self._roles_claim = serve.jwt_roles_claim
        self._roles = frozenset(settings.roles)

    async def principal(self, text: str) -> Principal | None:
        """Who has the token *text*; `None` if it is no token of ours, or not now, or gives no role.

        Raises:
            UnreachableError: The issuer's keys cannot be had now, so nobody can tell.
        """
        if len(text) > TOKEN_CHARACTERS or text.count(".") != 2 or not text.isascii():
            return None
        try:
            header = jws.extract_compact(text.encode("ascii"), registry=self._registry).headers()
            self._require_header(header)
            keys = await self._keys.named(header.get("kid"))
            claims = self._read(text, keys[:_MAX_KEYS]).claims
            self._claims.validate(claims)
        except (JoseError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
            return None
        return self._caller(claims)

    def _require_header(self, header: Mapping[str, Any]) -> None:  # Any: whatever JSON says
        kid, kind = header.get("kid"), header.get("typ")
        self._registry.get_alg(header.get("alg"))
        if not isinstance(kid, str | None) or "crit" in header:
            raise ValueError("a header that is not understood")
        if (kind.lower() if isinstance(kind, str) else kind) not in _TYPES:
            raise ValueError("a token for another purpose")

    def _read(self, text: str, keys: tuple[PublicKey, ...]) -> Token:
        for key in keys:
            try:
                return decode(text, key, registry=self._registry)
            except JoseError:
                continue
        raise ValueError("signed by nobody we know")

    def _caller(self, claims: Mapping[str, Any]) -> Principal | None:  # Any: whatever JSON says
        tenant = _claim(claims, self._tenant_claim)
        roles = tuple(dict.fromkeys(self._named_roles(_claim(claims, self._roles_claim))))
        if not isinstance(tenant, str) or not tenant or not roles:
            return None
        subject = claims.get("sub", tenant)
        if not isinstance(subject, str) or not subject.isprintable() or len(subject) > _NAME_CHARACTERS:
            subject = self._hashed(str(subject))
        return Principal(name=f"jwt:{subject}", tenant=self._tenant(tenant), role=roles[0], roles=roles)

    def _named_roles(self, said: object) -> Iterator[str]:
        """Those that are configured, from a list or from a text with spaces."""
        for name in said.split() if isinstance(said, str) else said if isinstance(said, list) else ():
            if isinstance(name, str) and name in self._roles:
                yield name

    def _tenant(self, said: str) -> str:
        plain = PLAIN + said
        return plain if _PLAIN.fullmatch(said) and id_problem(plain) is None else self._hashed(said)

    def _hashed(self, said: str) -> str:
        text = f"{self._issuer}\0{said}".encode("utf-8", "surrogatepass")
        return HASHED + hashlib.sha256(text).hexdigest()[:40]


class _Registry(JWSRegistry):
    """The algorithms that are configured, and no word about which of them are old."""

    max_header_length = 8_192
    max_payload_length = TOKEN_CHARACTERS

    def get_alg(self, name: object) -> JWSAlgModel:
        if not isinstance(name, str) or name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError("that algorithm is not allowed")
        return self.algorithms[name]


def _claim(claims: Mapping[str, Any], name: str) -> object:  # Any: whatever JSON says
    """The claim of that name; where there is none, dots in it lead into tables."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
