"""What `carrel doctor` looks at where containers are configured: client, engine and image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from carrel.config.settings import ContainerSettings
from carrel.errors import ContainerError, EngineError

ContainerFacts = dict[str, Any]  # Any: whatever JSON can say

_LOCKS = ("network", "read_only", "capabilities", "seccomp", "new_privileges")
"""The settings that lock a container down."""
_REMEDIES: Mapping[str, str] = {
    "engine.missing": "start it, or name another one by CARREL_CONTAINER_ENGINE",
    "engine.address": "mend CARREL_CONTAINER_ENGINE, containers.address or DOCKER_HOST",
    "engine.refused": "let this user use its socket, or name another by CARREL_CONTAINER_ENGINE",
    "engine.slow": "look what keeps it busy, or raise containers.timeout_seconds",
    "engine.version": "install Docker 20.10 or a newer one",
}
_LOOK = "look into the log of the engine"


def collect_container_facts(settings: ContainerSettings) -> ContainerFacts:
    """Whether containers can be used; nothing is asked unless an image or an engine is configured.

    What the engine says in its own words is told too: this is for the operator.
    """
    found: ContainerFacts = {
        "image": settings.image,
        "tools": settings.tools,
        "engine": None,
        "has_image": None,
        "loosened": list(_loosened(settings)),
        "limits_missing": [],
        "problem": None,
    }
    if settings.image is None and settings.address is None:
        return found
    try:
        return found | _engine_facts(settings)
    except (EngineError, ContainerError) as error:
        return found | {"problem": _told(error)}


def _engine_facts(settings: ContainerSettings) -> ContainerFacts:
    from carrel.containers.engine import Engine

    with Engine.connect(settings.address, timeout_seconds=settings.timeout_seconds) as engine:
        facts = {"address": engine.address, **engine.facts()}
        has_image = None if settings.image is None else engine.has_image(settings.image)
    return {
        "engine": facts,
        "has_image": has_image,
        "limits_missing": list(_limits_missing(facts)),
        "problem": _image_problem(settings, has_image),
    }


def _image_problem(settings: ContainerSettings, has_image: bool | None) -> ContainerFacts | None:
    if has_image is not False or settings.pull:
        return None
    return _problem(
        f"the engine does not have the image {settings.image!r}",
        f"docker pull {settings.image}, or containers.pull = true",
    )


def _limits_missing(facts: ContainerFacts) -> Iterator[str]:
    """What the engine or its kernel cannot hold."""
    for name, what in (
        ("memory_limit", "the memory"),
        ("pids_limit", "the number of processes"),
        ("cpu_quota", "the share of processors"),
    ):
        if not facts[name]:
            yield f"the engine cannot limit {what} of containers"
    if not any("seccomp" in each for each in facts["security"]):
        yield "the engine does not filter system calls (seccomp)"


def _loosened(settings: ContainerSettings) -> Iterator[str]:
    """The settings by which containers are locked down less than by default."""
    if (settings.user or "").startswith("0:"):
        yield "containers.user"
    defaults = {field.name: field.default for field in fields(settings)}
    for name in _LOCKS:
        if getattr(settings, name) != defaults[name]:
            yield f"containers.{name}"


def _told(error: EngineError | ContainerError) -> ContainerFacts:
    message = f"{error.message} ({error.detail})" if error.detail else error.message
    if "not installed" in error.message:
        message, _, remedy = error.message.partition(": ")
        return _problem(message, remedy)
    return _problem(message, _REMEDIES.get(error.code, _LOOK))


def _problem(problem: str, remedy: str) -> ContainerFacts:
    return {"problem": problem, "remedy": remedy}
