"""`MemoryRegistry`: session records in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from threading import Lock

from carrel.paths.session_id import require_session_id
from carrel.storage import registry_rules as rules
from carrel.storage.api import Problems, Records
from carrel.storage.session_record import SessionRecord, require_ns, require_ttl
from carrel.values import UNSET, Limits, Unset


class MemoryRegistry:
    """The session records of one process."""

    def __init__(self) -> None:
        self._records: dict[str, SessionRecord] | None = {}
        self._lock = Lock()

    def add(self, record: SessionRecord, *, max_sessions: int | None = None) -> None:
        rules.require_max_sessions(max_sessions)
        with self._open() as records:
            rules.require_free(record.session_id, records)
            if max_sessions is not None and len(records) >= max_sessions:
                raise rules.too_many_sessions(max_sessions)
            records[record.session_id] = record

    def adopt(self, session_id: str, now_ns: int, *, ttl_seconds: float | None = None) -> SessionRecord:
        fresh = rules.adopted_record(session_id, now_ns, ttl_seconds)
        with self._open() as records:
            if session_id not in records:
                rules.require_free(session_id, records)
            return records.setdefault(session_id, fresh)

    def get(self, session_id: str) -> SessionRecord | None:
        require_session_id(session_id)
        with self._open() as records:
            return records.get(session_id)

    def touch(self, session_id: str, now_ns: int) -> None:
        require_session_id(session_id)
        require_ns(now_ns)
        with self._open() as records:
            record = records.get(session_id)
            if record is not None and record.used_ns < now_ns:
                records[session_id] = replace(record, used_ns=now_ns)

    def extend(self, session_id: str, ttl_seconds: float | None) -> SessionRecord:
        return self._change(session_id, {"ttl_seconds": require_ttl(ttl_seconds)})

    def update(
        self,
        session_id: str,
        *,
        limits: Limits | Unset | None = UNSET,
        labels: Mapping[str, str] | Unset = UNSET,
        role: str | Unset | None = UNSET,
    ) -> SessionRecord:
        return self._change(session_id, {"limits": limits, "labels": labels, "role": role})

    def rewind(self, now_ns: int) -> int:
        require_ns(now_ns)
        with self._open() as records:
            future = [record for record in records.values() if record.used_ns > now_ns]
            for record in future:
                records[record.session_id] = replace(record, used_ns=now_ns)
            return len(future)

    def remove(
        self, session_id: str, *, if_unused_since: int | None = None, if_expired_at: int | None = None
    ) -> bool:
        rules.require_removal(session_id, if_unused_since, if_expired_at)
        with self._open() as records:
            record = records.get(session_id)
            if record is None or (if_unused_since is not None and record.used_ns > if_unused_since):
                return False
            if if_expired_at is not None and not record.is_expired(if_expired_at):
                return False
            del records[session_id]
            return True

    def list(self, after: str | None = None, count: int = 100) -> Records:
        start = rules.require_page(after, count)
        with self._open() as records:
            following = (records[key] for key in sorted(records) if key > start)
            return [*islice(following, count)]

    def count(self) -> int:
        with self._open() as records:
            return len(records)

    def expired(self, now_ns: int, count: int = 100, after: SessionRecord | None = None) -> Records:
        require_ns(now_ns)
        rules.require_page(None, count)
        start = rules.expiry_key(after)
        with self._open() as records:
            found = [record for record in records.values() if record.is_expired(now_ns)]
        found = [record for record in found if rules.expiry_key(record) > start]
        return sorted(found, key=rules.expiry_key)[:count]

    def ids(self) -> set[str]:
        with self._open() as records:
            return set(records)

    def corrupt(self) -> Problems:
        with self._open():
            return []

    def close(self) -> None:
        with self._lock:
            self._records = None

    def _change(self, session_id: str, changes: rules.RecordChanges) -> SessionRecord:
        require_session_id(session_id)
        with self._open() as records:
            record = records[session_id] = rules.with_changes(session_id, records.get(session_id), changes)
            return record

    @contextmanager
    def _open(self) -> Iterator[dict[str, SessionRecord]]:
        with self._lock:
            if self._records is None:
                raise rules.registry_closed()
            yield self._records
