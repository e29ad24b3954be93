"""What guest code is refused is in the journal; what an interpreter merely looks for is not."""

from __future__ import annotations

from contextlib import closing

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from carrel.sessions.manager import WorkspaceManager
from tests.sandbox.house import House

PREFACE = "import os, shutil\nopen('f', 'w').close()\ntry:\n    "
ENDING = "\nexcept OSError as error:\n    print('refused')"


def refusals(house: House, sandbox: BaseSandbox) -> list[tuple[str, str, str | None]]:
    with closing(WorkspaceManager(house.root).journal(sandbox.session_id or "")) as journal:
        return [
            (event.operation, event.path, event.error)
            for event in journal.events()
            if event.error is not None
        ]


@pytest.mark.parametrize(
    ("code", "operation", "path", "error"),
    [
        ("open('/etc/passwd')", "read", "/etc/passwd", "access.outside"),
        ("open('/etc/passwd', 'r+')", "write", "/etc/passwd", "access.outside"),
        ("open('/etc/x', 'w')", "write", "/etc/x", "access.outside"),
        ("open('/etc/x', 'a')", "write", "/etc/x", "access.outside"),
        ("os.mkdir('/opt')", "mkdir", "/opt", "access.outside"),
        ("os.remove('/etc/passwd')", "remove", "/etc/passwd", "access.outside"),
        ("os.rmdir('/etc')", "remove", "/etc", "access.outside"),
        ("os.rename('f', '/etc/f')", "move", "/etc/f", "access.outside"),
        ("os.rename('/etc/f', 'f')", "move", "/etc/f", "access.outside"),
        ("open('../../x')", "read", "/app/../../x", "path.escape"),
        ("os.rename('f', '../../f')", "read", "/app/../../f", "path.escape"),
        ("open('/app/../../../etc/passwd')", "read", "/app/../../../etc/passwd", "path.escape"),
    ],
)
def test_what_guest_code_opens_or_changes_outside_is_recorded(
    house: House, sandbox: BaseSandbox, code: str, operation: str, path: str, error: str
) -> None:
    result = sandbox.execute(PREFACE + code + ENDING)
    assert result.stdout == "refused\n", result.stderr
    found = refusals(house, sandbox)
    assert (operation, path, error) in found
    assert len(found) <= 2


def test_what_guest_code_merely_looks_for_is_not_recorded(house: House, sandbox: BaseSandbox) -> None:
    result = sandbox.execute(
        "import mimetypes, os, platform, sysconfig, uuid, zoneinfo\n"
        "import numpy, pandas\n"
        "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plot\n"
        "plot.plot([1, 2])\nplot.savefig('x.png')\n"
        "mimetypes.init()\nuuid.getnode()\npandas.Timestamp('2024-01-01', tz='Europe/Berlin')\n"
        "print(os.path.exists('/etc/passwd'), os.path.isdir('/usr/share'))\n"
        "try:\n    os.listdir('/etc')\nexcept OSError:\n    print('nothing')"
    )
    assert result.stdout == "False False\nnothing\n", result.stderr
    assert refusals(house, sandbox) == []
