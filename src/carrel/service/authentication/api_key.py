"""`ApiKey`: the permissions of a key, and the format of its text."""

from __future__ import annotations

import hashlib
import re
import secrets
from base64 import b32encode
from collections.abc import Callable
from dataclasses import dataclass

from carrel.errors import RequestError
from carrel.paths.session_id import id_problem
from carrel.service.principal import Principal

KEY_PREFIX = "carrel_"
"""Prefix of every key, by which secret scanners recognize it."""
MAX_ROLES = 64
MAX_RATE_PER_MINUTE = 10**9
MAX_EXPIRES_NS = 2**63 - 1
OPERATOR_NAME = "local"
"""Name of the operator; reserved, so no key can have it."""

_ID_BYTES, _SECRET_BYTES = 10, 32
_TEXT = re.compile(rf"{KEY_PREFIX}([a-z2-7]{{16}})_[a-z2-7]{{52}}", re.ASCII)

RandomBytes = Callable[[int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key, without its secret text."""

    id: str
    """The public part of the text."""
    name: str
    tenant: str
    """The tenant whose sessions the key gives access to."""
    role: str
    """The default role of its callers."""
    roles: tuple[str, ...]
    """The roles that a request may choose, including the default one."""
    session: str | None = None
    """The only session that the key gives access to; `None` for all sessions of the tenant."""
    rate_per_minute: int | None = None
    """Maximum number of requests per minute; `None` for the configured rate."""
    created_ns: int
    expires_ns: int | None = None
    used_ns: int | None = None
    """Time of the last use, to the minute."""
    revoked_ns: int | None = None

    def __post_init__(self) -> None:
        """Validate names and numbers.

        Raises:
            RequestError: A name breaks the rule for session ids, or a number is out of range.
        """
        _require_valid_name("key name", self.name)
        if self.name.casefold() == OPERATOR_NAME:
            raise RequestError(f"no key can have the name {self.name!r}: it is reserved for the operator")
        _require_valid_name("tenant", self.tenant)
        if self.tenant != self.tenant.lower():
            # A case-insensitive file system would map two such tenants to one directory.
            raise RequestError(f"invalid tenant {self.tenant!r}: it must be in lower case")
        if self.session is not None:
            _require_valid_name("session id", self.session)
        if not 0 < len(self.roles) <= MAX_ROLES or self.role not in self.roles:
            raise RequestError(f"a key must have 1 to {MAX_ROLES} roles, including its default role")
        if self.rate_per_minute is not None and not 0 < self.rate_per_minute <= MAX_RATE_PER_MINUTE:
            raise RequestError(f"a rate must be from 1 to {MAX_RATE_PER_MINUTE} requests per minute")
        if self.expires_ns is not None and not 0 <= self.expires_ns <= MAX_EXPIRES_NS:
            raise RequestError("the expiry time of a key is out of range; choose a shorter lifetime")

    def is_valid(self, now_ns: int) -> bool:
        """Whether the key is neither revoked nor expired at the time *now_ns*."""
        return self.revoked_ns is None and (self.expires_ns is None or now_ns < self.expires_ns)

    def principal(self) -> Principal:
        """Return the caller that presents the key."""
        return Principal(
            name=self.name,
            tenant=self.tenant,
            role=self.role,
            roles=self.roles,
            session=self.session,
            rate_per_minute=self.rate_per_minute,
        )


def _require_valid_name(kind: str, name: str) -> None:
    if problem := id_problem(name):
        raise RequestError(f"invalid {kind} {name[:40]!r}: {problem}")


def generate_key(random: RandomBytes = secrets.token_bytes) -> str:
    """Return the text of a new key, with 256 secret random bits."""
    return f"{KEY_PREFIX}{_base32(random(_ID_BYTES))}_{_base32(random(_SECRET_BYTES))}"


def parse_key_id(text: str) -> str | None:
    """Return the id in the *text* of a key, or `None` if the text is not a key."""
    match = _TEXT.fullmatch(text)
    return match and match[1]


def key_digest(text: str) -> bytes:
    """Return the digest stored instead of the *text*; 256 random bits need no salt or slow hash."""
    return hashlib.sha256(text.encode("ascii")).digest()


def _base32(data: bytes) -> str:
    return b32encode(data).decode("ascii").rstrip("=").lower()
