"""What follows from what `carrel doctor` learned about containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from carrel.fronts.cli.finding import Finding, State
from carrel.fronts.cli.report import shown

Document = dict[str, Any]  # Any: whatever JSON can say

AREA = "Containers"


def container_findings(containers: Document) -> Iterator[Finding]:
    """Whether containers can be used; without an image nobody needs an engine."""
    engine, problem = containers["engine"], containers["problem"]
    if engine is not None:
        told = (
            f"Docker {engine['version']} (API {engine['api_version']}) at {shown(engine['address'])}"
            f" on {engine['system']}, storage {engine['storage']}"
        )
        yield Finding(area=AREA, subject="engine", state=State.OK, found=told)
        yield from _limit_findings(containers["limits_missing"])
    if problem is not None:
        state = State.OFF if containers["image"] is None else State.PROBLEM
        subject = "engine" if engine is None else "image"
        yield Finding(
            area=AREA, subject=subject, state=state, found=problem["problem"], remedy=problem["remedy"]
        )
    yield from _image_findings(containers)
    if containers["loosened"]:
        told = f"locked down less than by default, by {', '.join(containers['loosened'])}"
        remedy = "take these settings back, unless you mean them"
        yield Finding(area=AREA, subject="locks", state=State.NOTE, found=told, remedy=remedy)


def _limit_findings(missing: list[str]) -> Iterator[Finding]:
    if not missing:
        told = "memory, processes and processors are limited, system calls are filtered"
        yield Finding(area=AREA, subject="limits", state=State.OK, found=told)
    for told in missing:
        remedy = "let the engine's kernel have cgroups and seccomp, or use another engine"
        yield Finding(area=AREA, subject="limits", state=State.NOTE, found=told, remedy=remedy)


def _image_findings(containers: Document) -> Iterator[Finding]:
    image = containers["image"]
    if image is None:
        also = "; containers.tools has no effect" if containers["tools"] else ""
        told = f"containers.image is not set{also}"
        remedy = "set containers.image or CARREL_CONTAINER_IMAGE, if you want containers"
        yield Finding(area=AREA, subject="image", state=State.OFF, found=told, remedy=remedy)
        return
    if containers["has_image"]:
        yield Finding(area=AREA, subject="image", state=State.OK, found=f"{shown(image)} is there")
    elif containers["has_image"] is False and containers["problem"] is None:
        told = f"{shown(image)} is not there; the first use pulls it"
        yield Finding(area=AREA, subject="image", state=State.OK, found=told)
    told = f"bash and python_executor work {'in containers' if containers['tools'] else 'without containers'}"
    yield Finding(area=AREA, subject="tools", state=State.OK, found=told)
