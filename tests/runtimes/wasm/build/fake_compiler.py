"""Stands in for the compiler: `fake_compiler.py PLACE BEHAVIOUR REQUEST`.

PLACE is a directory of the test, in which `runs` gets a line a start. The pipes `go` and `alive`, if they are
there, hold the work up until somebody opens the first, and tell by the end of the second that we are gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from threading import Thread

request = json.loads(sys.argv[3])
sys.path[:] = request["path"]

from carrel.runtimes.wasm.build.engine_cache import _end_with_parent  # noqa: E402  # the path comes with the request
from carrel.runtimes.wasm.build.installed import package_directory  # noqa: E402
from carrel.runtimes.wasm.build.manifest import (  # noqa: E402
    Flavour,
    Manifest,
    mark_compiling,
    stamps,
    write_atomic,
)


def work(place: Path, *, is_compiling: bool = True) -> None:
    with open(place / "runs", "a") as runs:
        runs.write(f"{os.getpid()}\n")
    directory = Path(request["directory"])
    if is_compiling:
        mark_compiling(directory)
    (directory / ".new-half").write_bytes(b"half")
    (directory / ".new-tree").mkdir()
    if (place / "alive").exists():
        os.open(place / "alive", os.O_WRONLY)
    if (place / "go").exists():
        os.close(os.open(place / "go", os.O_RDONLY))
    (directory / ".new-half").unlink()
    (directory / ".new-tree").rmdir()
    flavour = Flavour.of(metered=request["metered"])
    write_atomic(directory / f"{flavour.value}.cwasm", b"native code")
    package = package_directory()
    assert package is not None
    Manifest(
        compiled=f"{flavour.value}.cwasm",
        sources=stamps(map(Path, request["sources"])),
        files={f"{flavour.value}.cwasm": len(b"native code")},
        digests={},
    ).write(directory, package, flavour)


Thread(target=_end_with_parent, daemon=True).start()
behaviour = sys.argv[2]
if behaviour == "work":
    work(Path(sys.argv[1]))
    print(json.dumps({"compiled": True, "seconds": 7.0}))
elif behaviour == "record":
    work(Path(sys.argv[1]), is_compiling=False)
    print(json.dumps({"compiled": False, "seconds": 7.0}))
elif behaviour == "killed":
    (Path(request["directory"]) / ".new-half").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
elif behaviour == "silent":
    sys.exit(3)
else:
    print(behaviour)
