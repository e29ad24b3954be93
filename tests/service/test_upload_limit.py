"""What is held of archives on their way in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carrel.errors import LimitError
from carrel.service.upload_limit import UploadLimiter
from carrel.workspace.chunks import Announced
from tests.requirements import requirement

PIECE = bytes(10)


def held(
    uploads: UploadLimiter, archive: Announced, tenant: str | None = "ann", session_id: str = "s1"
) -> str:
    """What becomes of an archive that is read as a whole: the code of an error, or nothing."""
    with uploads.counted(tenant, session_id, archive) as counted:
        try:
            assert counted.size_bytes == archive.size_bytes
            assert list(counted) == list(archive.pieces)
        except LimitError as error:
            return error.code
    return ""


@requirement("Q-15")
def test_what_is_announced_is_counted_before_it_is_sent() -> None:
    uploads = UploadLimiter(200)
    with uploads.counted("ann", "s1", Announced([PIECE] * 10, 100)) as archive:
        assert next(iter(archive)) == PIECE
        assert held(uploads, Announced([PIECE], 10)) == "limit.uploads"
        assert held(uploads, Announced([PIECE], 10), session_id="s2") == ""
    assert held(uploads, Announced([PIECE], 10)) == ""


@requirement("Q-15")
def test_more_than_was_announced_is_counted_too() -> None:
    assert held(UploadLimiter(20), Announced([PIECE] * 2, 1)) == "limit.archive_bytes"


@requirement("Q-15")
def test_an_archive_is_counted_until_the_end_of_the_block_and_no_longer() -> None:
    uploads = UploadLimiter(20)
    for _ in range(3):
        with uploads.counted("ann", "s1", Announced([PIECE], None)) as archive:
            assert list(archive) == [PIECE]
            assert held(uploads, Announced([PIECE], None)) == "limit.uploads"
    assert not uploads._per_session
    assert not uploads._per_tenant


def test_a_refused_archive_keeps_nothing() -> None:
    uploads = UploadLimiter(20)

    def pieces() -> Iterator[bytes]:
        yield PIECE
        raise ConnectionResetError

    with (
        pytest.raises(ConnectionResetError),
        uploads.counted("ann", "s1", Announced(pieces(), None)) as archive,
    ):
        list(archive)
    assert held(uploads, Announced([PIECE] * 2, None)) == "limit.archive_bytes"
    assert held(uploads, Announced([PIECE], None)) == ""


def test_the_operator_is_not_limited() -> None:
    assert held(UploadLimiter(1), Announced([PIECE], 10), tenant=None) == ""
