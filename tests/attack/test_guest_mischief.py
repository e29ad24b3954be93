"""What a script may try against its own interpreter, its worker and its neighbours: they all go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.runtimes.script import Script
from carrel.runtimes.wasm import exchange
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

pytestmark = pytest.mark.attack

POLICY = ExecutionPolicy(timeout_seconds=30.0, tmp_bytes=2**20, file_operations=1_000)
SHORT = replace(POLICY, timeout_seconds=0.3)
TOLD_BYTES = 4 * 2**20
"""What carrel itself may add to standard error."""


class Mischief(NamedTuple):
    """A script and how it has to end."""

    source: str
    exit_code: int | None = 0
    reason: TrapReason | None = None
    stdout: str | None = None


TABLE = {
    # The door to the worker
    "the door is told nonsense": Mischief("""
import _host
said = []
for word in (b'', b' ', b'nonsense', b'exit', b'exit x', b'exit ' + b'9' * 5000, b'exit -1', b'order',
             b'order', b'\\xff' * 100, b'x' * 10**7, b'exit 0x1', b'memory ' * 1000):
    try:
        said.append(_host.call(word))
    except OSError as error:
        said.append(error)
for wrong in (None, 'text', 1, [], bytearray(b'exit 3')):
    try:
        _host.call(wrong)
    except (TypeError, OSError):
        pass
print(len(said), said.count(b'') > 3)
""", stdout="13 True\n"),
    "the door is told often": Mischief("""
import _host
for number in range(5_000):
    _host.call(b'lost EIO ' + b'x' * 100)
""", reason=TrapReason.LOST_WRITE),
    "the door is told much": Mischief("""
import _host
for number in range(20):
    _host.call(b'lost EIO ' + b'\\x01' * 5 * 10**6)
""", reason=TrapReason.LOST_WRITE),
    "the prelude is compiled anew": Mischief("""
import _host, marshal
before = _host.call(b'prelude')
_host.call(b'compiled ' + marshal.dumps('forged'))
assert _host.call(b'prelude') == before
"""),
    "other files are asked for as modules": Mischief("""
import _host
for name in (b'', b'/etc/passwd', b'../prelude', b'sandbox_utils.../prelude', b'\\0', b'\\xff' * 10**6):
    assert _host.call(b'module ' + name) == b''
assert _host.call(b'roots') == b'/workspace\\0/app\\0/tmp'
"""),
    "the finder of modules is spoilt": Mischief("""
import sys
sys.meta_path[-1].find_spec = sys.meta_path[-1].exec_module = None
sys.meta_path.clear()
"""),
    "an exit code is out of range": Mischief("import sys\nsys.exit(2**70 + 5)", exit_code=255),
    "lack of memory is forged": Mischief("import _host, sys\n_host.call(b'memory')\nsys.exit(0)"),
    # What stands around the script
    "the prelude is gone": Mischief("import sys\ndel sys.modules['_carrel']"),
    "the prelude is another": Mischief("""
import sys
class Fake:
    def __getattr__(self, name):
        raise KeyboardInterrupt
sys.modules['_carrel'] = Fake()
"""),
    "the prelude does not return": Mischief("""
import sys
carrel = sys.modules['_carrel']
def loop(*_):
    while True: pass
carrel._flush = carrel.end_files = loop
""", exit_code=None, reason=TrapReason.TIMEOUT),
    "all modules are gone": Mischief("import sys\nsys.modules.clear()"),
    "main is gone": Mischief("import sys\ndel sys.modules['__main__']\nglobals().clear()"),
    "builtins are gone": Mischief("import builtins\nbuiltins.__dict__.clear()", exit_code=1),
    "open is replaced": Mischief("import builtins, os\nbuiltins.open = os.open = os.close = None"),
    "the traceback fails": Mischief("import sys\nsys.excepthook = 1\nraise ValueError", exit_code=1),
    "the traceback raises": Mischief("""
import sys
def hook(*_):
    raise SystemExit(0)
sys.excepthook = hook
raise ValueError
""", exit_code=1),
    "there is no output": Mischief("import sys\nsys.stdout = sys.stderr = None\n1 / 0", exit_code=1),
    "output is closed": Mischief("import sys\nsys.stdout.close(); sys.stderr.close()\n1 / 0", exit_code=1),
    "output lies": Mischief("""
import sys
class Lies:
    closed = False
    def flush(self):
        raise SystemExit(0)
    write = flush
sys.stdout = sys.stderr = Lies()
""", exit_code=120),
    "an exit function loops": Mischief("""
import atexit
@atexit.register
def loop():
    while True: pass
""", exit_code=None, reason=TrapReason.TIMEOUT),
    "exit functions register more": Mischief("""
import atexit
def again():
    atexit.register(again)
atexit.register(again)
"""),
    "a finaliser loops": Mischief("""
class A:
    def __del__(self):
        while True: pass
A()
""", exit_code=None, reason=TrapReason.TIMEOUT),
    "a finaliser comes back": Mischief("""
import gc
class A:
    def __del__(self):
        self.me = self
        gc.collect()
for _ in range(100):
    a = A(); a.me = a; del a; gc.collect()
"""),
    "what cannot be raised raises": Mischief("""
import sys
def hook(problem):
    raise MemoryError
sys.unraisablehook = hook
class A:
    def __del__(self):
        raise OSError(28, 'x')
for _ in range(100):
    A()
"""),
    "an error is huge": Mischief("raise ValueError('x' * 20_000_000)", exit_code=1),
    "an error has no text": Mischief("""
class E(BaseException):
    def __str__(self): raise E
    __repr__ = __str__
raise E
""", exit_code=1),
    "errors are nested": Mischief("""
error = None
for _ in range(5_000):
    new = ValueError(); new.__cause__ = error; error = new
raise error
""", exit_code=1),
    "a trace function raises": Mischief("""
import sys
def trace(*_):
    raise KeyError
sys.settrace(trace); sys.setprofile(trace)
def f(): pass
f()
""", exit_code=1),
    "the switch interval and limits are changed": Mischief("""
import sys, gc
sys.setrecursionlimit(10**9)
gc.disable(); gc.freeze(); gc.set_threshold(1, 1, 1)
def f(): f()
f()
""", exit_code=None, reason=TrapReason.STACK),
    "the source is deep": Mischief("eval('(' * 150 + ')' * 150)\neval('-' * 100_000 + '1')", exit_code=1),
    # Descriptors
    "the standard streams are closed": Mischief("""
import os
for fd in (0, 1, 2):
    os.close(fd)
with open('/app/after', 'w') as file: file.write('x')
with open('/app/after') as file: assert file.read() == 'x'
os.remove('/app/after')
"""),
    "all descriptors are closed": Mischief("""
import os
for fd in range(3, 200):
    try: os.close(fd)
    except OSError: pass
for path in ('/app', '/tmp', '/', '/etc/passwd'):
    try: os.listdir(path); open(path)
    except OSError: pass
"""),
    "descriptors are guessed": Mischief("""
import os
for fd in (-1, 3, 4, 5, 99, 2**30, 2**31 - 1):
    for call in (lambda: os.read(fd, 10), lambda: os.write(fd, b'x'), lambda: os.fstat(fd),
                 lambda: os.ftruncate(fd, 0), lambda: os.listdir(fd), lambda: os.lseek(fd, 0, 0),
                 lambda: os.fsync(fd)):
        try: call()
        except (OSError, TypeError, ValueError, OverflowError): pass
"""),
    "more files are opened than may be": Mischief("""
files = []
try:
    while True: files.append(open('/tmp/many', 'w'))
except OSError as error:
    print(error.errno != 0, len(files) <= 256)
""", stdout="True True\n"),
    # Files
    "the places are moved and removed": Mischief("""
import os
worked = []
for path in ('/', '/app', '/workspace', '/tmp', '/usr', '/dev', '.', '..'):
    for call in (os.rmdir, os.remove, os.mkdir,
                 lambda p: os.rename(p, '/x'), lambda p: os.rename(p, '/app/x'),
                 lambda p: os.rename('/app/kept', p), lambda p: open(p, 'w'), lambda p: os.truncate(p, 0)):
        try: call(path); worked.append(path)
        except OSError: pass
print(worked, os.listdir('/app'))
""", stdout="[] ['kept']\n"),
    "the temporary directory is filled": Mischief("""
import os
try:
    with open('/tmp/big', 'wb') as file: file.write(bytes(2**21))
except OSError as error: print(error.errno)
made = 0
try:
    for number in range(10**5): os.mkdir(f'/tmp/{number}'); made += 1
except OSError as error: print(error.errno)
print(made < 5000)
""", stdout="51\n51\nTrue\n"),
    "the temporary directory is filled by names": Mischief("""
import os
path = '/tmp'
try:
    while len(path) < 3500:
        path += '/' + 'n' * 200
        os.mkdir(path)
    for number in range(10**5): os.mkdir(f'{path}/{number}')
except OSError as error:
    print(error.errno)
print(number < 400)
""", stdout="51\nTrue\n"),
    "the workspace is filled": Mischief("""
import os
try:
    with open('/app/big', 'wb') as file: file.write(bytes(2**20))
except OSError: pass
made = 0
try:
    for number in range(1000): os.mkdir(f'/app/{number}'); made += 1
except OSError as error: pass
print(made)
for number in range(made): os.rmdir(f'/app/{number}')
print(os.listdir('/app'), os.stat('/app/big').st_size)
os.remove('/app/big')
""", stdout="48\n['big', 'kept'] 0\n"),
    "a tree is deep": Mischief("""
import os
path = '/app'
try:
    while True:
        path += '/d'
        os.mkdir(path)
except OSError: pass
print(path.count('/d'))
import shutil; shutil.rmtree('/app/d')
""", stdout="50\n"),
    "names are as long as they can be": Mischief("""
import os
for name in ('n' * 255, chr(8364) * 85, chr(1) * 255):
    with open('/app/' + name, 'w') as file: file.write('x')
    assert name in os.listdir('/app')
    os.rename('/app/' + name, '/app/' + name[::-1]); os.remove('/app/' + name[::-1])
"""),
    "files are asked for without end": Mischief("""
import os
while True:
    try: os.stat('/app/kept')
    except OSError: pass
""", exit_code=None, reason=TrapReason.FILE_OPERATIONS),
    "output has no end": Mischief("while True: print('x' * 9999)", exit_code=None, reason=TrapReason.TIMEOUT),
    "memory has no end": Mischief("a = [0]\nwhile True: a += a", exit_code=1, reason=TrapReason.MEMORY),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A small workspace for all of them."""
    directory: Path = tmp_path_factory.mktemp("mischief")
    (directory / "kept").write_text("kept")
    limits = Limits(disk_bytes=2**19, entries=50)
    with Workspace.open(directory, limits=limits) as workspace:
        yield workspace


@pytest.fixture(scope="module")
def neighbour(engine: PythonRuntime, place: Workspace) -> Iterator[str]:
    """A session whose interpreter lives in the same process, with something that it remembers."""
    _run(engine, place, "remembered = 'all'", key="neighbour", stateful=True)
    yield "neighbour"
    engine.reset("neighbour")


def _run(
    engine: PythonRuntime,
    place: Workspace,
    source: str,
    *,
    policy: ExecutionPolicy = POLICY,
    key: str = "mischief",
    stateful: bool = False,
) -> SandboxResult:
    script = Script(source=source.encode(), cwd="/app", stdin=b"in")
    return engine.execute(script, place, policy, key=key, stateful=stateful)


@pytest.mark.parametrize("name", TABLE)
def test_a_script_harms_nobody_but_itself(
    name: str, engine: PythonRuntime, place: Workspace, neighbour: str
) -> None:
    wanted = TABLE[name]
    policy = SHORT if wanted.reason is TrapReason.TIMEOUT else POLICY
    result = _run(engine, place, wanted.source, policy=policy)
    assert (result.exit_code, result.metadata["trap_reason"]) == (wanted.exit_code, wanted.reason), (
        result.stderr[-300:]
    )
    assert wanted.stdout is None or result.stdout == wanted.stdout
    assert len(result.stderr) < POLICY.stderr_max_bytes + TOLD_BYTES
    assert [info.name for info in place.list()] == ["kept"]
    other = _run(engine, place, "print(remembered)", key=neighbour, stateful=True)
    assert (other.stdout, other.metadata["state"]) == ("all\n", "kept")


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row[1:3] == (0, None)])
def test_a_session_that_harmed_itself_can_go_on(name: str, engine: PythonRuntime, place: Workspace) -> None:
    """Whatever is left of the interpreter, the next script gets an answer, and a reset helps."""
    _run(engine, place, TABLE[name].source, key=name, stateful=True)
    _run(engine, place, "print('on')", key=name, stateful=True)
    engine.reset(name)
    assert _run(engine, place, "print('on')", key=name, stateful=True).stdout == "on\n"
    engine.reset(name)


def test_a_large_listing_does_not_hold_up_the_process(
    engine: PythonRuntime, place: Workspace, neighbour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script is stopped soon after its time, or its whole process would have to end."""
    for number in range(30_000):
        (tmp_path / f"{number:05d}{'x' * 200}").touch()
    monkeypatch.setattr(exchange, "_GRACE_SECONDS", 1.0)
    with Workspace.open(tmp_path) as large:
        result = _run(engine, large, "import os\nwhile True: os.listdir('.')", policy=SHORT)
    assert result.metadata["trap_reason"] == TrapReason.TIMEOUT
    other = _run(engine, place, "print(remembered)", key=neighbour, stateful=True)
    assert (other.stdout, other.metadata["state"]) == ("all\n", "kept")
