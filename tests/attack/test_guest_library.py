"""The guest's own library lies on the host, shared by all: no guest can change it, or leave it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.script import Script
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.workspace.workspace import Workspace
from tests.attack.world import HOST_TEXTS, look

pytestmark = pytest.mark.attack

TRY = """
import json, os
tried, worked = 0, []
def attempt(call, *arguments, **options):
    global tried
    tried += 1
    try:
        value = call(*arguments, **options)
    except (OSError, NotImplementedError, ValueError):
        return
    worked.append([call.__name__, [str(one) for one in arguments], str(value)])

LIBRARY = '/usr/local/lib'
(zipped,) = os.listdir(LIBRARY)
for name in (zipped, 'new', '../new', '../../new', '../../../../../../../../../../tmp/new'):
    path = LIBRARY + '/' + name
    for mode in ('w', 'a', 'x', 'r+'):
        attempt(open, path, mode)
    for call in (os.mkdir, os.remove, os.rmdir):
        attempt(call, path)
    for one, other in ((path, '/app/x'), ('/app/f', path), (path, path + 'x')):
        attempt(os.rename, one, other)
        attempt(os.link, one, other)
        attempt(os.symlink, one, other)
    attempt(os.truncate, path, 0)
for up in ('/..', '/../..', '/../../..', '/../lib/..', '/../mpl-data', '/../../' + zipped):
    attempt(os.listdir, LIBRARY + up + '/etc')
    attempt(open, LIBRARY + up + '/etc/passwd')
    attempt(os.chdir, LIBRARY + up + '/etc')
for fd in range(3, 12):
    for path in ('../../../../../../../etc/passwd', '/etc/passwd', '..', '../..', '/', '/proc/self/environ'):
        attempt(os.open, path, os.O_RDONLY, dir_fd=fd)
        attempt(os.stat, path, dir_fd=fd)
    attempt(os.open, 'new', os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    attempt(os.mkdir, 'new', dir_fd=fd)
    attempt(os.symlink, '/etc', 'new', dir_fd=fd)
    attempt(os.ftruncate, fd, 0)
with open(LIBRARY + '/' + zipped, 'rb') as file:
    attempt(os.ftruncate, file.fileno(), 0)
    attempt(os.write, file.fileno(), b'x')
print(json.dumps([tried, worked]))
"""
OWN = {("mkdir", "new"), ("open", "new"), ("open", ".."), ("stat", ".."), ("open", "/"), ("stat", "/")}
"""What may work by a descriptor of the guest's own root directory."""


def test_the_library_cannot_be_changed_or_left(
    engine: PythonRuntime, guest_cache: Path, workspace: Workspace
) -> None:
    library = next((guest_cache / "guest").glob("library-*"))
    before = look(library)
    workspace.write("f", b"in")
    result = engine.execute(
        Script(source=TRY.encode(), cwd="/app"), workspace, ExecutionPolicy(), key=workspace
    )
    assert result.exit_code == 0, result.stderr
    tried, worked = json.loads(result.stdout)
    assert tried > 150
    assert not [one for one in worked if (one[0], one[1][0]) not in OWN]
    assert look(library) == before
    assert not any(text in result.stdout.encode() for text in HOST_TEXTS)
    assert [info.name for info in workspace.list()] == ["f"]
