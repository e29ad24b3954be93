"""Translate errors of the Docker engine and its client into errors of carrel.

What the engine says in its own words may name paths of the host, so it is kept apart in `detail`, for the
operator alone.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from carrel.errors import CarrelError, ContainerError, EngineError
from carrel.fs.nonblocking import blocking

_UNSTARTED = {
    "too_long": ("argument list too long",),
    "missing": ("executable file", "no such file or directory"),
    "unrunnable": (
        "permission denied",
        "operation not permitted",
        "exec format error",
        "is a directory",
        "not a directory",
        "too many levels of symbolic links",
    ),
}
"""How the engine says why a program of an image could not be started."""


def start_failure_reason(told: str) -> str | None:
    """What was wrong with a program that did not start: `missing`, `unrunnable` or `too_long`.

    `None` if the engine speaks of something else, as of the container. It answers all of them with the same
    status, so this is the one place that goes by its words.
    """
    told = told.lower()
    return next((why for why, words in _UNSTARTED.items() if any(each in told for each in words)), None)


@contextmanager
def translate_docker_errors(doing: str) -> Iterator[None]:
    """Let what is *doing* raise errors of ours only: `EngineError` or `ContainerError`.

    Waiting for the engine counts as blocking.
    """
    try:
        with blocking():
            yield
        return
    except CarrelError:
        raise
    except Exception as error:  # the client raises its own, those of requests, urllib3 and the sockets
        problem = translate_docker_error(error, doing)
    raise problem


def translate_docker_error(error: Exception, doing: str) -> EngineError | ContainerError:
    """What *error* means for somebody who was *doing* something.

    Raises:
        Exception: The same error, if it is none of the engine or of its client.
    """
    import requests
    from docker import errors

    if isinstance(error, errors.APIError):
        return _answered(error, doing)
    if isinstance(error, requests.exceptions.Timeout | TimeoutError):
        return EngineError("slow", f"the Docker engine does not answer in time: {doing}", detail=str(error))
    behind = list(_chain(error))
    for each in behind:
        if isinstance(each, PermissionError):
            return EngineError("refused", "the Docker engine refuses this user", detail=str(error))
        if isinstance(each, TimeoutError):
            return EngineError(
                "slow", f"the Docker engine does not answer in time: {doing}", detail=str(error)
            )
        if isinstance(each, FileNotFoundError | ConnectionRefusedError):
            return EngineError("missing", "no Docker engine answers there; is it running?", detail=str(error))
    if isinstance(error, errors.DockerException | requests.exceptions.RequestException | OSError):
        return EngineError("failed", f"the Docker engine broke off: {doing}", detail=str(error))
    raise error


def _answered(error: object, doing: str) -> EngineError | ContainerError:
    """What the engine means by an answer that is an error."""
    from docker import errors

    assert isinstance(error, errors.APIError)  # noqa: S101  # for the type checker
    told = str(error.explanation or error)
    status = error.status_code
    if isinstance(error, errors.ImageNotFound):
        return ContainerError("image", f"the image is not on the engine: {doing}", detail=told)
    if status == 404:
        return ContainerError("missing", f"no such container: {doing}", detail=told)
    if status == 409:
        return ContainerError("conflict", f"the container is not in a state for that: {doing}", detail=told)
    if status in (401, 403):
        return EngineError("refused", "the Docker engine refuses this user", detail=told)
    return ContainerError("failed", f"the Docker engine could not do that: {doing}", detail=told)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and all behind it, also those that urllib3 and requests carry as arguments."""
    todo: list[object] = [error]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]
        number = getattr(each, "errno", None)
        if isinstance(each, OSError) and number == errno.ECONNREFUSED:
            yield ConnectionRefusedError()
