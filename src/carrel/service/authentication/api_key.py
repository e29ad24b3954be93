"""`ApiKey`: what a key allows, and the format of its text."""

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
"""How every key begins, so that those who look for lost secrets find it."""
MAX_ROLES = 64
MAX_RATE_PER_MINUTE = 10**9
MAX_EXPIRES_NS = 2**63 - 1
OPERATOR_NAME = "local"
"""The name of the operator, which no key may have."""

_ID_BYTES, _SECRET_BYTES = 10, 32
_TEXT = re.compile(rf"{KEY_PREFIX}([a-z2-7]{{16}})_[a-z2-7]{{52}}", re.ASCII)

RandomBytes = Callable[[int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """What is kept about a key; its text is not."""

    id: str
    """The part of its text that is no secret."""
    name: str
    tenant: str
    """Whose sessions its callers see."""
    role: str
    """What they act as."""
    roles: tuple[str, ...]
    """The roles that a request may choose, its own among them."""
    session: str | None = None
    """The one session that they may use; `None` for any of the tenant's."""
    rate_per_minute: int | None = None
    """Most requests in a minute; `None` for as many as is configured."""
    created_ns: int
    expires_ns: int | None = None
    used_ns: int | None = None
    """The last use, to the minute."""
    revoked_ns: int | None = None

    def __post_init__(self) -> None:
        """Check the names.

        Raises:
            RequestError: One breaks the rule for ids of sessions, or a number is out of range.
        """
        _require_name("name of a key", self.name)
        if self.name.casefold() == OPERATOR_NAME:
            raise RequestError(f"no key can have the name {self.name!r}: that is the operator")
        _require_name("tenant", self.tenant)
        if self.tenant != self.tenant.lower():
            # Two that differ by case would be one where the names of directories do not.
            raise RequestError(f"invalid tenant {self.tenant!r}: it must be in lower case")
        if self.session is not None:
            _require_name("session id", self.session)
        if not 0 < len(self.roles) <= MAX_ROLES or self.role not in self.roles:
            raise RequestError(f"a key must have 1 to {MAX_ROLES} roles, its own among them")
        if self.rate_per_minute is not None and not 0 < self.rate_per_minute <= MAX_RATE_PER_MINUTE:
            raise RequestError(f"a rate must be from 1 to {MAX_RATE_PER_MINUTE} requests a minute")
        if self.expires_ns is not None and not 0 <= self.expires_ns <= MAX_EXPIRES_NS:
            raise RequestError("a key cannot be in force for so long")

    def is_in_force(self, now_ns: int) -> bool:
        """Whether it opens anything at that time."""
        return self.revoked_ns is None and (self.expires_ns is None or now_ns < self.expires_ns)

    def principal(self) -> Principal:
        """Who has the key."""
        return Principal(
            name=self.name,
            tenant=self.tenant,
            role=self.role,
            roles=self.roles,
            session=self.session,
            rate_per_minute=self.rate_per_minute,
        )


def _require_name(what: str, name: str) -> None:
    if problem := id_problem(name):
        raise RequestError(f"invalid {what} {name[:40]!r}: {problem}")


def generate_key(random: RandomBytes = secrets.token_bytes) -> str:
    """The text of a new key, of which 256 bits are random and secret."""
    return f"{KEY_PREFIX}{_base32(random(_ID_BYTES))}_{_base32(random(_SECRET_BYTES))}"


def parse_key_id(text: str) -> str | None:
    """The id in the *text* of a key; `None` if it is no such text."""
    match = _TEXT.fullmatch(text)
    return match and match[1]


def key_digest(text: str) -> bytes:
    """What is kept instead of the *text*: nobody can guess a text of 256 random bits to fit it."""
    return hashlib.sha256(text.encode("ascii")).digest()


def _base32(data: bytes) -> str:
    return b32encode(data).decode("ascii").rstrip("=").lower()
