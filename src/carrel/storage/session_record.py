"""`SessionRecord`: the metadata of a session, checked once, and its form in a database row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from carrel.paths.session_id import require_session_id
from carrel.values import Limits

LABELS = 64
"""Maximum number of labels of a session."""
LABEL_BYTES = 1024
"""Maximum size of one label in bytes, name and text together."""
NAME_CHARACTERS = 256
"""Maximum length of a role or an owner in characters."""
TTL_SECONDS = 100 * 366 * 86_400
"""Maximum idle time in seconds: a hundred years."""

END_NS = 2**62
"""First time that is refused, in the year 2116; its sum with any idle time fits 64 bits."""

Column = str | int | float | None
"""A value of a database column."""


class CorruptRecordError(ValueError):
    """A stored row is not a valid record; the message is the reason that is reported."""


class Labels(Mapping[str, str]):
    """Immutable names with texts that a caller gave to a session."""

    __slots__ = ("_texts",)

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Copy *texts*.

        Raises:
            ValueError: There are too many, or one of them is too long, empty or not printable.
        """
        if not isinstance(texts, Mapping):
            raise ValueError(f"labels must be a mapping, not {type(texts).__name__}")
        self._texts = dict(texts)
        if len(self._texts) > LABELS:
            raise ValueError(f"at most {LABELS} labels are allowed, not {len(self._texts)}")
        for name, text in self._texts.items():
            _require_label(name, text)

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __hash__(self) -> int:
        return hash(frozenset(self._texts.items()))

    def __repr__(self) -> str:
        return repr(self._texts)


def _require_label(name: object, text: object) -> None:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ValueError(f"the label {_short(name)} must have a name of printable text")
    if not isinstance(text, str) or not text.isprintable():
        raise ValueError(f"the label {_short(name)} must be printable text")
    if len(name.encode()) + len(text.encode()) > LABEL_BYTES:
        raise ValueError(f"the label {_short(name)} is too long (max {LABEL_BYTES} bytes with its name)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """One session; times are nanoseconds since the epoch."""

    session_id: str
    created_ns: int
    used_ns: int
    """Time of the last use. One in the future (the clock was set back) counts as now."""
    ttl_seconds: float | None = None
    """How long the session may be idle; `None` means forever."""
    role: str | None = None
    limits: Limits | None = None
    """`None` means the configured ones."""
    labels: Mapping[str, str] = Labels({})
    owner: str | None = None
    epoch: int = 1
    """Incremented when another machine takes over the session."""

    def __post_init__(self) -> None:
        """Check all fields once.

        Raises:
            SessionIdError: The id is invalid.
            ValueError: Another value is invalid; the message names it.
        """
        object.__setattr__(self, "session_id", require_session_id(self.session_id))
        require_ns(self.created_ns, "created_ns")
        require_ns(self.used_ns, "used_ns")
        object.__setattr__(self, "ttl_seconds", require_ttl(self.ttl_seconds))
        _require_name(self.role, "role")
        _require_name(self.owner, "owner")
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise ValueError(f"limits must be Limits or None, not {type(self.limits).__name__}")
        object.__setattr__(self, "labels", Labels(self.labels))
        if type(self.epoch) is not int or not 1 <= self.epoch < 2**63:
            raise ValueError(f"epoch must be a whole number of at least 1, not {self.epoch!r}")

    @property
    def expires_ns(self) -> int | None:
        """The time at which the session expires; `None` means never."""
        return None if self.ttl_seconds is None else self.used_ns + int(self.ttl_seconds * 1e9)

    def is_expired(self, now_ns: int) -> bool:
        """Whether the session has been idle for too long; false if its last use is in the future."""
        return self.expires_ns is not None and self.expires_ns <= now_ns

    def render(self) -> dict[str, Column]:
        """Render the record as the columns of a row."""
        limits = None if self.limits is None else json.dumps(asdict(self.limits))
        return {
            "session_id": self.session_id,
            "created_ns": self.created_ns,
            "used_ns": self.used_ns,
            "ttl_seconds": self.ttl_seconds,
            "role": self.role,
            "limits": limits,
            "labels": json.dumps(dict(self.labels), ensure_ascii=False),
            "owner": self.owner,
            "epoch": self.epoch,
        }

    @classmethod
    def parse(cls, row: Mapping[str, object]) -> SessionRecord:
        """Parse a stored row.

        Raises:
            CorruptRecordError: It is invalid: `corrupted_timestamp` or `corrupted_metadata`.
        """
        try:
            return cls(**{name: _parse_column(name, row) for name in _COLUMNS})
        except ValueError:
            reason = "corrupted_metadata" if _has_valid_times(row) else "corrupted_timestamp"
        raise CorruptRecordError(reason)

    def with_valid_columns(self, row: Mapping[str, object]) -> SessionRecord:
        """Return this record with the columns of a corrupt *row* that are valid."""
        record = self
        for name in _COLUMNS[1:]:
            with suppress(ValueError):
                record = replace(record, **{name: _parse_column(name, row)})
        return record


_COLUMNS = tuple(field.name for field in fields(SessionRecord))
"""The names of the fields and of the columns, the session id first."""


def _has_valid_times(row: Mapping[str, object]) -> bool:
    try:
        require_ns(row["created_ns"])
        require_ns(row["used_ns"])
        require_ttl(row["ttl_seconds"])
    except ValueError:
        return False
    return True


def require_ns(value: object, name: str = "now_ns") -> int:
    """Return *value* if it is a valid time.

    Raises:
        ValueError: It is not a whole number of nanoseconds between 1970 and 2116.
    """
    if type(value) is not int or not 0 <= value < END_NS:
        raise ValueError(f"{name} must be whole nanoseconds since the epoch, not {_short(value)}")
    return value


def require_ttl(value: object) -> float | None:
    """Return *value* if it is a valid idle time, or `None` for no expiry.

    Raises:
        ValueError: It is not a number above 0 and up to a hundred years.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= TTL_SECONDS:
        raise ValueError(f"ttl_seconds must be above 0 and up to {TTL_SECONDS} or None, not {_short(value)}")
    return float(value)


def _require_name(value: object, name: str) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not value or not value.isprintable() or len(value) > NAME_CHARACTERS:
        raise ValueError(f"{name} must be printable text of 1 to {NAME_CHARACTERS} characters or None")


def _parse_column(name: str, row: Mapping[str, object]) -> Any:  # the record checks what it is given
    value = row[name]
    if name == "limits" and value is not None:
        return _parse_limits(value)
    return _parse_object(value) if name == "labels" else value


def _parse_limits(text: object) -> Limits:
    """Parse limits; an unknown one is refused, because it would not be enforced."""
    found = _parse_object(text)
    if unknown := found.keys() - {field.name for field in fields(Limits)}:
        raise ValueError(f"unknown limits: {sorted(unknown)}")
    return Limits(**found)


def _parse_object(text: object) -> dict[str, Any]:  # its users check what is inside
    if not isinstance(text, str):
        raise ValueError("not text")
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _short(value: object) -> str:
    text = ascii(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
