"""Every file operation of a guest on every path that it is given; this text runs in the guest.

After each one it waits for a line of input, so that the host can look around and put things back. One line of
JSON comes out for each: the operation, the path, whether it worked, and what came back or was raised.
"""

# It is no module of the host, so nothing here has types.
# mypy: ignore-errors

import json
import os
import shutil
import sys

NEW = "new"


def _put(path, mode):
    with open(path, mode) as file:
        file.write(NEW)


def _read(path):
    with open(path, "rb") as file:
        return file.read(4096).decode("latin-1")


def _update(path):
    with open(path, "r+") as file:
        text = file.read(4096)
        file.write(NEW)
        return text


def _descend(path):
    os.chdir(path)
    try:
        found = os.listdir("."), os.listdir(".."), os.path.exists("secret"), os.path.exists("../secret")
        _put("left-by-a-guest", "w")
        return found
    finally:
        os.chdir("/app")


READING = {
    "open": _read,
    "stat": lambda path: os.stat(path).st_size,
    "lstat": lambda path: os.lstat(path).st_size,
    "listdir": os.listdir,
    "scandir": lambda path: [
        (entry.name, entry.is_dir(), entry.stat().st_size) for entry in os.scandir(path)
    ],
    "walk": lambda path: list(os.walk(path)),
    "readlink": os.readlink,
    "realpath": lambda path: os.listdir(os.path.dirname(os.path.realpath(path))),
    "access": lambda path: os.access(path, os.W_OK) and None,
}
CHANGING = {
    "open for writing": lambda path: _put(path, "w"),
    "open for appending": lambda path: _put(path, "a"),
    "open for both": _update,
    "open a new one": lambda path: _put(path, "x"),
    "mkdir": os.mkdir,
    "mkdir beneath": lambda path: os.mkdir(path + "/new"),
    "rmdir": os.rmdir,
    "remove": os.remove,
    "rmtree": shutil.rmtree,
    "rename away": lambda path: os.rename(path, "/app/carried-away"),
    "rename away to /tmp": lambda path: os.rename(path, "/tmp/carried-away"),
    "move away": lambda path: shutil.move(path, "/tmp/moved"),
    "rename a file there": lambda path: os.rename("/app/mine", path),
    "rename a directory there": lambda path: os.rename("/app/mine-directory", path),
    "replace": lambda path: os.replace("/app/mine", path),
    "truncate": lambda path: os.truncate(path, 1),
    "utime": lambda path: os.utime(path, (1, 1)),
    "chmod": lambda path: os.chmod(path, 0o777),
    "symlink there": lambda path: os.symlink("/app/mine", path),
    "symlink to it": lambda path: [os.symlink(path, "/app/a-link"), _read("/app/a-link")],
    "link there": lambda path: os.link("/app/mine", path),
    "link to it": lambda path: [os.link(path, "/app/a-link"), _read("/app/a-link")],
    "copy there": lambda path: shutil.copy("/app/mine", path),
    "copy away": lambda path: shutil.copy(path, "/app/carried-away"),
    "chdir": _descend,
}


def _tried(operation, path):
    try:
        return True, operation(path)
    except Exception as error:
        return False, [isinstance(error, (OSError, ValueError)), type(error).__name__, str(error)[:200]]


def _forget_tmp():
    for name in os.listdir("/tmp"):
        path = "/tmp/" + name
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


OPERATIONS = list({**READING, **CHANGING}.items())
for number, path in enumerate(PATHS):  # noqa: F821  # the host puts it above this text
    for name, operation in OPERATIONS[(number + FIRST) % EVERY :: EVERY]:  # noqa: F821  # these too
        worked, value = _tried(operation, path)
        print(json.dumps([name, path[:200], worked, value], default=str))
        if name in CHANGING:
            _forget_tmp()
            print(sys.stdin.readline(), end="", file=sys.stderr)
