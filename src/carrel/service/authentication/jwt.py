"""Verify tokens (JWT) of a trusted issuer, and map their claims to a caller.

Only the configured algorithms are accepted, all of them asymmetric; the header of a token can only choose
among these and the issuer's keys. A token must have an issuer, an audience and an expiry time.

If the tenant claim is a plain lower-case name, the tenant is `jwt.` and that name. The prefix keeps tokens
away from the sessions of API keys; a key shares the sessions of tokens if it is created with such a tenant.
Any other claim, like `auth0|5f7c` or an email address, is hashed, so that it can neither end up in the path
of a directory nor collide with another one that differs only in case.

Not covered: a token cannot be revoked before it expires, unless the issuer withdraws its signing key.
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
"""Maximum length of a token."""
LEEWAY_SECONDS = 30
"""Allowed difference between the issuer's clock and ours."""
PLAIN, HASHED = "jwt.", "jwt-"
"""Prefixes of tenants: from a claim that is a plain name, and from any other claim."""

_MAX_KEYS = 8
"""Maximum number of keys tried for a token that names none."""
_NAME_CHARACTERS = 128
"""Maximum length of a subject that is shown as it is."""
_TYPES = {None, "jwt", "at+jwt", "application/jwt", "application/at+jwt"}
_PLAIN = re.compile(r"[a-z0-9_.-]+", re.ASCII)


class TokenVerifier:
    """Verifies the tokens of one issuer."""

    def __init__(
        self,
        settings: Settings,
        *,
        keys: IssuerKeys | None = None,
        clock: Callable[[], float] = time.time,
        logger: SandboxLogger | None = None,
    ) -> None:
        """Trust the configured issuer.

        Raises:
            ConfigError: The issuer, its audience, its keys or the algorithms are not configured.
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
        """Return the caller of the token *text*, or `None` if it is invalid, expired or grants no role.

        Raises:
            UnreachableError: The issuer's keys cannot be fetched now.
        """
        if len(text) > TOKEN_CHARACTERS or text.count(".") != 2 or not text.isascii():
            return None
        try:
            header = jws.extract_compact(text.encode("ascii"), registry=self._registry).headers()
            self._require_valid_header(header)
            keys = await self._keys.find(header.get("kid"))
            claims = self._decode(text, keys[:_MAX_KEYS]).claims
            self._claims.validate(claims)
        except (JoseError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
            return None
        return self._caller(claims)

    def _require_valid_header(self, header: Mapping[str, Any]) -> None:  # Any: any JSON
        kid, kind = header.get("kid"), header.get("typ")
        self._registry.get_alg(header.get("alg"))
        if not isinstance(kid, str | None) or "crit" in header:
            raise ValueError("unsupported header")
        if (kind.lower() if isinstance(kind, str) else kind) not in _TYPES:
            raise ValueError("unsupported token type")

    def _decode(self, text: str, keys: tuple[PublicKey, ...]) -> Token:
        for key in keys:
            try:
                return decode(text, key, registry=self._registry)
            except JoseError:
                continue
        raise ValueError("no key of the issuer verifies the signature")

    def _caller(self, claims: Mapping[str, Any]) -> Principal | None:  # Any: any JSON
        tenant = _claim(claims, self._tenant_claim)
        roles = tuple(dict.fromkeys(self._configured_roles(_claim(claims, self._roles_claim))))
        if not isinstance(tenant, str) or not tenant or not roles:
            return None
        subject = claims.get("sub", tenant)
        if not isinstance(subject, str) or not subject.isprintable() or len(subject) > _NAME_CHARACTERS:
            subject = self._hash(str(subject))
        return Principal(name=f"jwt:{subject}", tenant=self._tenant(tenant), role=roles[0], roles=roles)

    def _configured_roles(self, claim: object) -> Iterator[str]:
        """Yield the configured roles in a claim: a list, or a text with names separated by spaces."""
        for name in claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else ():
            if isinstance(name, str) and name in self._roles:
                yield name

    def _tenant(self, claim: str) -> str:
        plain = PLAIN + claim
        return plain if _PLAIN.fullmatch(claim) and id_problem(plain) is None else self._hash(claim)

    def _hash(self, claim: str) -> str:
        text = f"{self._issuer}\0{claim}".encode("utf-8", "surrogatepass")
        return HASHED + hashlib.sha256(text).hexdigest()[:40]


class _Registry(JWSRegistry):
    """Accepts the configured algorithms only, without the library's warnings about deprecated ones."""

    max_header_length = 8_192
    max_payload_length = TOKEN_CHARACTERS

    def get_alg(self, name: object) -> JWSAlgModel:
        if not isinstance(name, str) or name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError("the algorithm is not allowed")
        return self.algorithms[name]


def _claim(claims: Mapping[str, Any], name: str) -> object:  # Any: any JSON
    """Return the claim *name*; if there is none, dots in the name separate keys of nested objects."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
