"""Facts for `carrel doctor` about containers: client, engine and image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from carrel.config.settings import ContainerSettings
from carrel.errors import ContainerError, EngineError
from carrel.fronts.cli.doctor.findings import Facts

_LOCKS = ("network", "read_only", "capabilities", "seccomp", "new_privileges")
"""Settings that lock down a container."""
_REMEDIES: Mapping[str, str] = {
    "engine.missing": "start it, or set CARREL_CONTAINER_ENGINE to another one",
    "engine.address": "correct CARREL_CONTAINER_ENGINE, containers.address or DOCKER_HOST",
    "engine.refused": "give this user access to its socket, or set CARREL_CONTAINER_ENGINE to another one",
    "engine.slow": "check the load of the engine, or raise containers.timeout_seconds",
    "engine.version": "install Docker 20.10 or newer",
}
_DEFAULT_REMEDY = "check the log of the engine"


def collect_container_facts(settings: ContainerSettings) -> Facts:
    """Whether containers can be used; connects only if an image or an engine is configured.

    Messages of the engine are included unchanged, since only the operator sees them.
    """
    facts: Facts = {
        "image": settings.image,
        "tools": settings.tools,
        "engine": None,
        "has_image": None,
        "loosened": list(_loosened(settings)),
        "limits_missing": [],
        "problem": None,
    }
    if settings.image is None and settings.address is None:
        return facts
    try:
        return facts | _engine_facts(settings)
    except (EngineError, ContainerError) as error:
        return facts | {"problem": _engine_problem(error)}


def _engine_facts(settings: ContainerSettings) -> Facts:
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


def _image_problem(settings: ContainerSettings, has_image: bool | None) -> Facts | None:
    if has_image is not False or settings.pull:
        return None
    return _problem(
        f"the engine does not have the image {settings.image!r}",
        f"docker pull {settings.image}, or containers.pull = true",
    )


def _limits_missing(facts: Facts) -> Iterator[str]:
    """The limits that the engine or its kernel cannot enforce."""
    for name, resource in (
        ("memory_limit", "the memory"),
        ("pids_limit", "the number of processes"),
        ("cpu_quota", "the share of processors"),
    ):
        if not facts[name]:
            yield f"the engine cannot limit {resource} of containers"
    if not any("seccomp" in each for each in facts["security"]):
        yield "the engine does not filter system calls (seccomp)"


def _loosened(settings: ContainerSettings) -> Iterator[str]:
    """The settings that lock containers down less than their defaults."""
    if (settings.user or "").startswith("0:"):
        yield "containers.user"
    defaults = {field.name: field.default for field in fields(settings)}
    for name in _LOCKS:
        if getattr(settings, name) != defaults[name]:
            yield f"containers.{name}"


def _engine_problem(error: EngineError | ContainerError) -> Facts:
    message = f"{error.message} ({error.detail})" if error.detail else error.message
    if "not installed" in error.message:
        message, _, remedy = error.message.partition(": ")
        return _problem(message, remedy)
    return _problem(message, _REMEDIES.get(error.code, _DEFAULT_REMEDY))


def _problem(problem: str, remedy: str) -> Facts:
    return {"problem": problem, "remedy": remedy}
