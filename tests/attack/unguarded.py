"""The table against plain calls of `os`, to see which rows prove that a guard is there.

Run as a program, by root: each row gets a child that is shut into a directory of its own, where it may
destroy what it likes. Prints one line of JSON for each row: whether it ended as required, and how.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from carrel.testing import tree
from tests.attack.guards import TooSlow, in_time
from tests.attack.more import MORE
from tests.attack.operations import NEW
from tests.attack.row import Row
from tests.attack.special import discard, unbind
from tests.attack.table import ROWS
from tests.attack.world import AROUND, MARKER, build, contents, look, names_of

PARENT = Path("/base/parent")
ROOT = PARENT / "ROOT"
OUT = PARENT / "outside"
MOUNTS = ("proc", "mnt")
SECONDS = 0.2
"""What takes longer would wait for ever."""


def main() -> None:
    """Run all rows, each in a directory within the one that is named as an argument."""
    for row in (*ROWS, *MORE):
        print(json.dumps(_in_a_cage(row, sys.argv[1])), flush=True)


def _in_a_cage(row: Row, place: str) -> dict[str, object]:
    """Let a child run *row* where nothing else can be reached."""
    cage = tempfile.mkdtemp(dir=place)
    near, far = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _build(Path(cage), row)
            os.chroot(cage)
            os.chdir("/")
            os.write(far, json.dumps(_run(row)).encode())
        finally:
            os._exit(0)
    os.close(far)
    with os.fdopen(near, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    for name in MOUNTS:
        unbind(Path(cage + str(ROOT)) / name)
    discard(Path(cage))
    return json.loads(text) if text else {"passes": False, "ending": "destroyed everything"}


def _build(cage: Path, row: Row) -> None:
    base = cage / "base"
    tree(cage, "etc/passwd = root:x:0:0", "tmp/")
    tree(base, *(f"{name} = {MARKER} of {name}" for name in AROUND), "parent/outside/linked", "parent/ROOT/")
    build(cage / str(ROOT)[1:], cage / str(OUT)[1:], _fill(row.layout))


def _fill(text: str) -> str:
    return text.replace("$OUT", str(OUT)).replace("$WS", str(ROOT))


def _run(row: Row) -> dict[str, object]:
    around, inside = _look()
    operation, arguments, options = row.request
    paths = [os.path.join(ROOT, _fill(argument)) for argument in arguments]
    value: object = None
    try:
        with in_time(SECONDS):
            value = PLAIN[operation](*paths, **options)
    except TooSlow:
        names = frozenset({"never"})
    except Exception as error:
        names = names_of(error)
    else:
        names = frozenset({"ok", f"ok:{value}"})
    after = _look()
    passes = bool(names & row.endings) and after[0] == around and MARKER not in f"{value} {after[1]}"
    if "ok" not in names:
        passes = passes and after[1] == inside
    return {"passes": passes, "ending": " ".join(sorted(names))}


def _look() -> tuple[object, object]:
    return look(Path("/base"), frozenset({str(ROOT)})), contents(ROOT, frozenset(MOUNTS))


def _read(path: str) -> str:
    with open(path, "rb", buffering=0) as file:
        data = file.read(2**20)
        if len(data) == 2**20:
            raise TooSlow
    return data.decode()


def _write(path: str, *, overwrite: bool = True, mode: int = 0o666) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if overwrite else "xb") as file:
        file.write(NEW)
    os.chmod(path, mode)


def _append(path: str) -> None:
    with open(path, "ab") as file:
        file.write(NEW)


def _walk() -> Iterator[str]:
    for place, _, files in os.walk(ROOT, followlinks=True):
        yield place
        yield from files


def _copy(path: str, target: str) -> None:
    text = _read(path)
    with open(target, "xb") as file:
        file.write(text.encode())


def _search(path: str) -> str:
    return _read(path) if os.path.isfile(path) else "".join(_read(one.path) for one in os.scandir(path))


def _links() -> str:
    (entry,) = os.scandir(ROOT)
    return "file" if entry.is_file() else "link"


PLAIN: dict[str, Callable[..., object]] = {
    "read": _read,
    "write": _write,
    "append": _append,
    "stat": os.stat,
    "lstat": os.lstat,
    "readlink": os.readlink,
    "listdir": os.listdir,
    "walk": lambda: list(islice(_walk(), 1000)),
    "links": _links,
    "mkdir": os.mkdir,
    "mkdir_all": lambda path: os.makedirs(path, exist_ok=True),
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "rmtree": shutil.rmtree,
    "rename": os.rename,
    "copy": _copy,
    "copy_all": shutil.copytree,
    "search": _search,
}

if __name__ == "__main__":
    main()
