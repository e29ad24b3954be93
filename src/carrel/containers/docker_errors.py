"""Translate errors of the Docker engine and its client into errors of carrel.

The engine's own message may contain host paths, so it is kept in `detail`, for the operator only.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from carrel.errors import CarrelError, ContainerError, EngineError
from carrel.fs.nonblocking import blocking

_START_FAILURES = {
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
"""Docker's wording for why a program could not be started."""


def start_failure_reason(message: str) -> str | None:
    """Return why a program could not be started: `missing`, `unrunnable` or `too_long`.

    `None` if the message is about something else, such as the container. Docker reports all of these with the
    same status, so this is the one place that parses its messages.
    """
    message = message.lower()
    return next(
        (why for why, words in _START_FAILURES.items() if any(each in message for each in words)), None
    )


@contextmanager
def translate_docker_errors(doing: str) -> Iterator[None]:
    """Raise only `EngineError` or `ContainerError`; *doing* describes the operation in their messages.

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
    """Return the error of carrel for *error*; *doing* describes the operation.

    Raises:
        Exception: *error* itself, if it comes neither from the engine nor from its client.
    """
    import requests
    from docker import errors

    if isinstance(error, errors.APIError):
        return _response_error(error, doing)
    if isinstance(error, requests.exceptions.Timeout | TimeoutError):
        return EngineError("slow", f"the Docker engine does not answer in time: {doing}", detail=str(error))
    behind = list(_causes(error))
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
        return EngineError(
            "failed", f"the connection to the Docker engine failed: {doing}", detail=str(error)
        )
    raise error


def _response_error(error: object, doing: str) -> EngineError | ContainerError:
    """Translate an error response of the engine."""
    from docker import errors

    assert isinstance(error, errors.APIError)  # noqa: S101  # for the type checker
    message = str(error.explanation or error)
    status = error.status_code
    if isinstance(error, errors.ImageNotFound):
        return ContainerError("image", f"the image is not on the engine: {doing}", detail=message)
    if status == 404:
        return ContainerError("missing", f"no such container: {doing}", detail=message)
    if status == 409:
        return ContainerError("conflict", f"the container is in the wrong state: {doing}", detail=message)
    if status in (401, 403):
        return EngineError("refused", "the Docker engine refuses this user", detail=message)
    return ContainerError("failed", f"the Docker engine failed: {doing}", detail=message)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, including those that urllib3 and requests keep as arguments."""
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
