"""Kinds of values of network settings: hosts, addresses, origins, secrets."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address

from carrel.config.kind import ABSOLUTE, InvalidValueError, SettingKind, choice, many

SIGNATURES = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signature algorithms of tokens: asymmetric ones only, so that verifying needs no secret."""
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)
_ADDRESS = re.compile(r"(?:grpcs?://)?(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/?#@\s]+)):([0-9]{1,5})", re.ASCII)
_URL = re.compile(r"(https?)://(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/?#@\s]+))(?::([0-9]{1,5}))?(/\S*)?", re.ASCII)
_SECRET = re.compile(r"[!-~]{1,4096}", re.ASCII)


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether *host*, a name or an address, is reachable from this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host(value: object, home: str | None) -> str:
    if not isinstance(value, str) or not (_is_address(value) or _NAME.fullmatch(value)):
        raise InvalidValueError
    return value


HOST_NAME = SettingKind(says="the name or the address of a host", make=_host)


def _address(value: object, home: str | None) -> str:
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if match is None or not _is_endpoint(match[1], match[2], match[3]):
        raise InvalidValueError
    return match[0]


ADDRESS = SettingKind(says='a text like "host:port", or "grpcs://host:port" for TLS', make=_address)
"""The address of a service."""


def _origin(value: object, home: str | None) -> str:
    match = _URL.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[5] is not None or not _is_endpoint(match[2], match[3], match[4]):
        raise InvalidValueError
    return match[0].lower()


ORIGINS = many(
    SettingKind(says='a text like "https://host" or "https://host:port"', make=_origin), "a list of origins"
)
"""Web origins, as a browser sends them."""


def _document(value: object, home: str | None) -> str:
    match = _URL.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return str(ABSOLUTE.make(value, home))
    if not _is_endpoint(match[2], match[3], match[4]):
        raise InvalidValueError
    # Over plain HTTP, anyone on the network path could substitute keys.
    if match[1] == "http" and not is_loopback(match[2] or match[3]):
        raise InvalidValueError
    return match[0]


DOCUMENT = SettingKind(
    says="an https:// URL, an http:// URL of this machine, or an absolute path", make=_document
)

ALGORITHMS = many(choice(*SIGNATURES), "a list of " + ", ".join(f'"{name}"' for name in SIGNATURES))


def _secret(value: object, home: str | None) -> str:
    # The default message would contain the value.
    if not isinstance(value, str) or not _SECRET.fullmatch(value):
        raise InvalidValueError(f"must be {SECRET.says}")
    return value


SECRET = SettingKind(says="a text of printable ASCII without spaces", make=_secret)


def _is_endpoint(address: str | None, name: str | None, port: str | None) -> bool:
    if port is not None and not 0 < int(port) < 65_536:
        return False
    return _is_address(address) if address else bool(_NAME.fullmatch(name or ""))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
