"""Where a service is that speaks HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from carrel.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """The URL beneath which a service answers."""

    url: str

    @classmethod
    def parse(cls, text: str) -> HttpAddress:
        """The address that *text* says: `http://host:port` or `https://host:port`, maybe with a path.

        Raises:
            ConfigError: It is no such address.
        """
        parts = _split(text)
        if (
            parts is None
            or parts.scheme not in ("http", "https")
            or not parts.hostname
            or "@" in parts.netloc
            or parts.query
            or parts.fragment
        ):
            # What is wrong is not repeated: it may hold a password.
            raise ConfigError(
                "the address of a service must be http://host:port, https://host:port, grpc://host:port or"
                " grpcs://host:port; a key is given as key=, not in the address"
            )
        return cls(url=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}")

    def __str__(self) -> str:
        return self.url


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts
