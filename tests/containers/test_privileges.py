"""Programs that want to be somebody else, and images that would help them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.containers.spec import NOBODY, Bind
from carrel.errors import BusyError, ContainerError
from carrel.runtimes.result import TrapReason
from tests.contained import Shared, said
from tests.containers.conftest import Make
from tests.containers.test_container import run
from tests.engines import PYTHON

pytestmark = pytest.mark.attack

Changed = Callable[..., str]
WAITING = 65533
"""The user of what keeps a container running."""


@pytest.fixture
def changed(engine: Engine, make: Make, containers: Containers) -> Iterator[Changed]:
    """Makes images of another one, with files and declarations of their own."""
    made: list[str] = []

    def change(*declared: str, files: bytes = b"", image: str = PYTHON) -> str:
        container = make(image=image, command=None, read_only=False)
        if files:
            container.put_archive("/", files)
        made.append(engine.api.commit(container.id, changes=list(declared))["Id"])
        return made[-1]

    yield change
    for key in containers.known():
        containers.remove(key)
    for image in made:
        engine.api.remove_image(image, force=True)


def packed(content: bytes, *members: tuple[str, int, int]) -> bytes:
    """An archive of files with that content: their names, owners and modes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, owner, mode in members:
            info = tarfile.TarInfo(name)
            info.uid = info.gid = owner
            info.mode, info.size = mode, len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def content_of(make: Make, path: str) -> bytes:
    """A file of the image with Python."""
    pieces = b"".join(make(image=PYTHON, command=None).get_archive(path))
    with tarfile.open(fileobj=io.BytesIO(pieces)) as tar:
        member = tar.next()
        found = None if member is None else tar.extractfile(member)
        assert found is not None
        return found.read()


def test_set_user_id_programs_of_an_image_change_nobody(make: Make, changed: Changed) -> None:
    """Neither to root nor to the user of what keeps the container running, who could be ended as such."""
    members = [("as-root", 0, 0o6755), ("as-waiting", WAITING, 0o6755)]
    image = changed(files=packed(content_of(make, "/usr/bin/id"), *members))
    user = NOBODY.partition(":")[0]
    for options in ({}, {"new_privileges": True}):
        container = make(image=image, **options)
        asked = [(f"/{name}", flag) for name, *_ in members for flag in ("-u", "-g")]
        told = [run(container, *each)[1].decode().strip() for each in asked]
        if options:
            # So the programs work, where an operator lets them.
            assert told == ["0", "0", str(WAITING), str(WAITING)]
        else:
            assert told == [user] * 4


def test_a_set_user_id_file_that_a_program_makes_is_of_no_use(shared_container: Shared) -> None:
    sandbox = shared_container.empty()
    script = (
        "import os, shutil, subprocess\n"
        "for top in ('/workspace', '/tmp', '/dev/shm'):\n"
        "    shutil.copy('/usr/bin/id', f'{top}/id')\n"
        "    os.chmod(f'{top}/id', 0o6755)\n"
        "    try: os.chown(f'{top}/id', 0, 0); print('owned')\n"
        "    except PermissionError: print('denied')\n"
        "    try: print(subprocess.run([f'{top}/id', '-u'], capture_output=True, text=True).stdout.strip())\n"
        "    except PermissionError: print('not run')\n"
    )
    told = said(sandbox.execute(script)).split("\n")
    assert set(told[:-1:2]) == {"denied"}
    assert set(told[1:-1:2]) <= {NOBODY.partition(":")[0], "not run"}


def test_the_gate_makes_no_set_user_id_file_of_one_that_a_program_made(shared_container: Shared) -> None:
    """Its new content would be that of another user: carrel's own."""
    contained, sandbox = shared_container.contained, shared_container.empty()
    said(
        sandbox.run(["sh", "-c", "mkdir d; chmod 6777 d; for f in f d/f; do echo x >$f; chmod 6755 $f; done"])
    )
    with contained.open(sandbox) as workspace:
        for path in ("f", "d/f"):
            workspace.copy(path, f"{path}-copied")
            workspace.write(path, "mine")
        workspace.write("d/new", "mine")
        packed = io.BytesIO(b"".join(workspace.archive(".")))
    files = contained.files(sandbox)
    assert not [each for each in files.rglob("*") if each.is_file() and each.stat().st_mode & 0o7000]
    with tarfile.open(fileobj=packed) as tar:
        assert not [member.name for member in tar if member.mode & 0o7000]


def test_a_lease_of_a_program_makes_nobody_wait(shared_container: Shared) -> None:
    """The kernel would let whoever opens the file wait for most of a minute."""
    contained, sandbox = shared_container.contained, shared_container.empty()
    code = (
        "import fcntl, os, signal, time\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\n"
        "fcntl.fcntl(os.open('f', os.O_RDWR | os.O_CREAT), fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
        "print('on', flush=True)\ntime.sleep(1000)"
    )
    outcomes: list[object] = []

    def use(name: str, data: bytes) -> None:
        with contained.open(sandbox) as workspace:
            for act in (workspace.read, lambda path: workspace.append(path, b"x")):
                with pytest.raises(BusyError):
                    act("f")
            workspace.write("f", "mine")
            outcomes.append(workspace.read_text("f"))
        sandbox.cancel()

    assert sandbox.execute(code, on_output=use).trap_reason is TrapReason.CANCELLED
    assert outcomes == ["mine"]


def test_nothing_of_another_user_is_opened_through_proc(shared_container: Shared) -> None:
    code = (
        "import os\n"
        "for pid in sorted(int(name) for name in os.listdir('/proc') if name.isdigit()):\n"
        "    if pid == os.getpid(): continue\n"
        "    for name in ('mem', 'environ', 'root/etc/passwd', 'cwd/x', 'fd/0', 'maps'):\n"
        "        try: os.open(f'/proc/{pid}/{name}', os.O_RDONLY); print(pid, name)\n"
        "        except OSError as error: print(error.errno)"
    )
    assert said(shared_container.empty().execute(code)).split() == ["13"] * 12


def test_there_are_no_namespaces_to_be_root_in(shared_container: Shared) -> None:
    """Neither by `unshare` nor by `clone`; and nothing is mounted."""
    code = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def tell(done): print(0 if not done else ctypes.get_errno())\n"
        "user = 0x10000000\n"
        "for kinds in (user, user | 0x20000, user | 0x20000000, 0x20000, 0x40000000, 0x2000000):\n"
        "    tell(libc.unshare(kinds))\n"
        "tell(libc.syscall(56, user | 17, 0, 0, 0, 0))\n"
        "tell(libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))\n"
        "tell(libc.setns(0, 0))\n"
        "tell(libc.syscall(435, 0, 0))"
    )
    assert said(shared_container.empty().execute(code)).split() == ["1"] * 9 + ["38"]


def test_what_the_kernel_is_told_by_files_is_not_written(shared_container: Shared) -> None:
    code = (
        "import os\n"
        "group = '/sys/fs/cgroup'\n"
        "for name in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname',\n"
        "        '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger', '/proc/1/oom_score_adj',\n"
        "        '/sys/kernel/uevent_helper',\n"
        "        f'{group}/memory.max', f'{group}/pids.max', f'{group}/cgroup.procs',\n"
        "        f'{group}/memory/memory.limit_in_bytes', f'{group}/pids/pids.max',\n"
        "        f'{group}/pids/cgroup.procs'):\n"
        "    try: os.open(name, os.O_WRONLY); print('opened', name)\n"
        "    except OSError as error: print(error.errno)\n"
        "for name in (group, f'{group}/pids', f'{group}/memory'):\n"
        "    try: os.mkdir(f'{name}/x'); print('made', name)\n"
        "    except OSError as error: print(error.errno)"
    )
    told = said(shared_container.empty().execute(code)).split()
    assert set(told) <= {"1", "2", "13", "30"}, told
    assert told.count("2") <= 8, "one kind of control groups, and no other file, is missing"


@pytest.mark.parametrize("declared", ["/workspace/data", "/workspace/../workspace/a/b"])
def test_an_image_hides_no_part_of_the_workspace(
    make: Make, changed: Changed, tmp_path: Path, declared: str
) -> None:
    """What is declared would be mounted there, so that programs see other files than the gate."""
    files = tmp_path / "files"
    files.mkdir()
    with pytest.raises(ContainerError, match="inside /workspace") as raised:
        make(image=changed(f"VOLUME {declared}"), mount=Bind(source=str(files)))
    assert raised.value.code == "container.volumes"
    assert not list(files.iterdir())
