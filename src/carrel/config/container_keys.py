"""The settings of containers: the engine, the image and the lockdown.

Only the operator can loosen them: no call, tool or request can set any of them.
"""

from __future__ import annotations

import re

from carrel.config.key import Key
from carrel.config.kind import ABSOLUTE, SWITCH, InvalidValueError, SettingKind, many, number

UNCONFINED = "unconfined"
"""The value that disables the seccomp filter."""
CAPABILITIES = (
    *("AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "CHOWN"),
    *("DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE"),
    *("LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE"),
    *("NET_BROADCAST", "NET_RAW", "PERFMON", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYSLOG"),
    *("SYS_ADMIN", "SYS_BOOT", "SYS_CHROOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE"),
    *("SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM"),
)
"""The Linux capabilities, without the prefix `CAP_`."""
_IMAGE_CHARACTERS = 512
_IMAGE = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_ENGINE = re.compile(r"unix:///\S{1,200}|(?:tcp|https?)://[^\s/@?#]{1,255}", re.ASCII)
_USER = re.compile(r"[0-9]{1,9}:[0-9]{1,9}", re.ASCII)
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", re.ASCII)


def _matching(pattern: re.Pattern[str], says: str, *, characters: int = 300) -> SettingKind[str]:
    """Accept text that matches a pattern."""

    def make(value: object, home: str | None) -> str:
        if not isinstance(value, str) or len(value) > characters or not pattern.fullmatch(value):
            raise InvalidValueError
        return value

    return SettingKind(says=says, make=make)


def _decimal(low: float, high: float) -> SettingKind[float]:
    """Accept a decimal number in a range."""

    def make(value: object, home: str | None) -> float:
        # bool is a subclass of int, but not a number in TOML; NaN is in no range.
        if type(value) not in (int, float) or not low <= value <= high:  # type: ignore[operator]  # a number
            raise InvalidValueError
        return float(value)  # type: ignore[arg-type]  # a number

    def from_text(text: str) -> object:
        return float(text) if _DECIMAL.fullmatch(text.strip()) else text

    return SettingKind(says=f"a number from {low} to {high:g}", make=make, from_text=from_text)


def _capability(value: object, home: str | None) -> str:
    name = value.removeprefix("CAP_") if isinstance(value, str) else ""
    if name not in CAPABILITIES:
        raise InvalidValueError
    return name


def _filter(value: object, home: str | None) -> str:
    return UNCONFINED if value == UNCONFINED else str(ABSOLUTE.make(value, home))


IMAGE: Key[str | None] = Key(
    name="containers.image",
    kind=_matching(_IMAGE, "the name of an image", characters=_IMAGE_CHARACTERS),
    default=None,
    meaning="Image of containers; unset disables containers.",
    variable="CARREL_CONTAINER_IMAGE",
)
ADDRESS: Key[str | None] = Key(
    name="containers.address",
    kind=_matching(_ENGINE, 'a text like "unix:///path" or "tcp://host:port"'),
    default=None,
    meaning="Address of the Docker engine; unset means `DOCKER_HOST`, or the default socket.",
    variable="CARREL_CONTAINER_ENGINE",
)
PULL = Key(
    name="containers.pull",
    kind=SWITCH,
    default=False,
    meaning="Whether an image that the engine does not have is pulled from its registry.",
    variable="CARREL_CONTAINER_PULL",
)
USER: Key[str | None] = Key(
    name="containers.user",
    kind=_matching(_USER, 'two numbers like "1000:1000", of a user and a group'),
    default=None,
    meaning="User and group of programs; unset means those of this process, or `nobody` if that is root.",
    variable="CARREL_CONTAINER_USER",
)
MEMORY_MB = Key(
    name="containers.memory_mb",
    kind=number(8, 10**7),
    default=512,
    meaning="Maximum memory of all processes of one container and its `/tmp`, in MiB (2**20 bytes).",
    variable="CARREL_CONTAINER_MEMORY_MB",
)
CPUS = Key(
    name="containers.cpus",
    kind=_decimal(0.01, 1024),
    default=1.0,
    meaning="Number of processors that one container may use.",
    variable="CARREL_CONTAINER_CPUS",
)
PIDS = Key(
    name="containers.pids",
    kind=number(8, 10**6),
    default=128,
    meaning="Maximum number of processes and threads of one container.",
    variable="CARREL_CONTAINER_PIDS",
)
TMP_MB = Key(
    name="containers.tmp_mb",
    kind=number(1, 10**7),
    default=64,
    meaning="Maximum size of the `/tmp` of one container, which is in memory, in MiB (2**20 bytes).",
    variable="CARREL_CONTAINER_TMP_MB",
)
NETWORK = Key(
    name="containers.network",
    kind=_matching(_NETWORK, 'the name of a network of the engine, or "none"'),
    default="none",
    meaning="The Docker network that containers join.",
    variable="CARREL_CONTAINER_NETWORK",
)
READ_ONLY = Key(
    name="containers.read_only",
    kind=SWITCH,
    default=True,
    meaning="Whether everything but `/workspace` and `/tmp` is read-only.",
    variable="CARREL_CONTAINER_READ_ONLY",
)
CAPABILITY_NAMES = Key(
    name="containers.capabilities",
    kind=many(
        SettingKind(says='the name of a capability, like "CHOWN"', make=_capability), "a list of capabilities"
    ),
    default=[],
    meaning="Linux capabilities that containers keep.",
    variable="CARREL_CONTAINER_CAPABILITIES",
)
SECCOMP: Key[str | None] = Key(
    name="containers.seccomp",
    kind=SettingKind(says=f'"{UNCONFINED}" or the absolute path of a file', make=_filter),
    default=None,
    meaning="Seccomp profile instead of the engine's default: a JSON file, or `unconfined` for none.",
    variable="CARREL_CONTAINER_SECCOMP",
)
NEW_PRIVILEGES = Key(
    name="containers.new_privileges",
    kind=SWITCH,
    default=False,
    meaning="Whether programs may gain privileges, for example through a setuid file.",
    variable="CARREL_CONTAINER_NEW_PRIVILEGES",
)
TIMEOUT_SECONDS = Key(
    name="containers.timeout_seconds",
    kind=number(1, 3600),
    default=30,
    meaning="Timeout of requests to the Docker engine, in seconds.",
    variable="CARREL_CONTAINER_TIMEOUT_SECONDS",
)
TOOLS = Key(
    name="containers.tools",
    kind=SWITCH,
    default=False,
    meaning="Whether the tools `bash` and `python_executor` run in containers.",
    variable="CARREL_CONTAINER_TOOLS",
)

CONTAINER_KEYS: tuple[Key[object], ...] = (
    IMAGE,
    ADDRESS,
    PULL,
    USER,
    MEMORY_MB,
    CPUS,
    PIDS,
    TMP_MB,
    NETWORK,
    READ_ONLY,
    CAPABILITY_NAMES,
    SECCOMP,
    NEW_PRIVILEGES,
    TIMEOUT_SECONDS,
    TOOLS,
)
"""All settings of containers, in the order in which they are listed."""
