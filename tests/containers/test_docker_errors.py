"""What the words of an engine mean, where it says no more than words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from carrel.containers.docker_errors import start_failure_reason, translate_docker_errors
from carrel.fs.nonblocking import releasing

START = "OCI runtime exec failed: exec failed: "


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (
            'starting container process caused: exec: "x": executable file not found in $PATH',
            "missing",
        ),
        (
            'unable to start container process: exec: "/x": stat /x: no such file or directory: unknown',
            "missing",
        ),
        ("executable file `x` not found in $PATH: No such file or directory", "missing"),
        ('exec: "/etc": permission denied: unknown', "unrunnable"),
        ("exec /x: exec format error", "unrunnable"),
        ('exec: "/etc": is a directory: unknown', "unrunnable"),
        ("fork/exec /proc/self/exe: argument list too long", "too_long"),
        ("cannot exec in a stopped state: unknown", None),
        ("cannot exec in a container that has stopped", None),
        ("write init-p: broken pipe", None),
        ("task 0123 not found: unknown", None),
        ("", None),
    ],
)
def test_a_program_that_cannot_be_started_is_told_from_a_container_that_cannot(
    told: str, why: str | None
) -> None:
    assert start_failure_reason(START + told) == why


def test_a_wait_for_the_engine_is_marked_as_blocking() -> None:
    is_blocked = False

    @contextmanager
    def release() -> Iterator[None]:
        nonlocal is_blocked
        is_blocked = True
        yield
        is_blocked = False

    with releasing(release):
        with translate_docker_errors("trying"):
            assert is_blocked
        assert not is_blocked
