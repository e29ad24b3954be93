"""Guest Python: calls, first calls, files, loops and memory, compared with native Python and others.

    .venv/bin/python -m bench.python [--quick] [--dir DIRECTORY] [--others DIRECTORY] [--json]

Ours is a sandbox on a session, with its policy, its quota and its journal, and with logging off. `native` is
a new Python process for every call, without any confinement. `bare engine` is the engine that ours is built
on, with no files, no policy and no session. Other packages are installed once, in virtual environments of
their own. Nothing is asserted: the exit status is 0 unless something is broken. README.md says how to read
the result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench import _machine, _memory
from bench._aims import MET, MISSED, Aim, Ceiling
from bench._children import (
    ENGINE,
    FIRST_ENGINE,
    FIRST_OURS,
    FIRST_PYERYX,
    FRESH,
    LLM_WASM_SANDBOX,
    PYERYX,
    TURN,
    Child,
    Here,
    Way,
    first_call,
    run_native,
)
from bench._errors import UnmeasuredError
from bench._measure import order
from bench._packages import Package
from bench._program import Given
from bench._program import run as program
from bench._rows import OURS, Figure, Row, row_of
from bench._turns import Turns, take_turns
from carrel.config.load import load
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.wasm.build.compiled import CompiledGuest
from carrel.sandbox.factory import create_session_sandbox
from carrel.sandbox.sandbox import BaseSandbox
from carrel.values import MIB, Limits

NATIVE = "native: python -I -c"
BARE = "bare engine"
ERYX_PACKAGE = Package("pyeryx", "0.11.0", oldest_python="3.12")
LLM_PACKAGE = Package("llm-wasm-sandbox", "0.4.4", oldest_python="3.11")
ERYX = f"{ERYX_PACKAGE.name} {ERYX_PACKAGE.version}"
LLM = f"{LLM_PACKAGE.name} {LLM_PACKAGE.version}"

LANES = 8
PAUSE_SECONDS = 0.1
"""Long enough for the pool to be filled again."""
FIRST_MS = 300
OPERATIONS = {FRESH: "fresh execution", TURN: "turn"}
CODE = {FRESH: "print(1)", TURN: "x += 1"}
PAUSED = "after a pause"
SUSTAINED = "without pause"
AT_ONCE = f"{LANES} at once"
FIRST = "first call"
THE_CALL = "the call"
LIMITS = Limits(disk_bytes=None, file_bytes=None, read_bytes=None)
ROOMY = ExecutionPolicy(memory_bytes=1 << 30)
READ = "print(len(open('big', 'rb').read()))"
WRITE = """
import os, time
top = f"out-{{time.time_ns()}}"
os.mkdir(top)
for number in range({count}):
    with open(f"{{top}}/{{number}}", "w") as file:
        file.write("content")
"""
LOOP = """
total = 0
for number in range({count}):
    total += number
print(total)
"""

AIMS = (
    Ceiling(
        "fresh from the pool at least 3 times faster than native", OPERATIONS[FRESH], NATIVE, 1 / 3, PAUSED
    ),
    Ceiling("fresh from the pool within 2 times pyeryx", OPERATIONS[FRESH], ERYX, 2, PAUSED),
    Ceiling("at least 1,000 times faster than llm-wasm-sandbox", OPERATIONS[FRESH], LLM, 1 / 1000, PAUSED),
    Ceiling("a turn no slower than the bare engine", OPERATIONS[TURN], BARE, 1, PAUSED),
)


class Bench:
    """Sandboxes of ours, and children that do the same in other ways."""

    def __init__(self, given: Given) -> None:
        base, quick = given.base, given.quick
        self.others = given.others
        self.root = base / "sessions"
        self.plain = base / "plain"
        self.plain.mkdir()
        self.paused = 10 if quick else 120
        self.bursts = 2 if quick else 4
        self.burst = 10 if quick else 50
        self.lane = 4 if quick else 15
        self.few = 2 if quick else 5
        self.slow = 1 if quick else 2
        self.loops = 300_000 if quick else 3_000_000
        self.big_mb = 10 if quick else 100
        self.files = 100 if quick else 1_000
        self.kept = 4 if quick else 16
        self.missing: dict[str, str] = {}
        """Packages that are not to be had, and why."""
        self.guest = CompiledGuest(load(os.environ).python.cache)
        self.engine_env = {"WASI_PYTHON_CACHE": str(self.guest.directory)}
        self.eryx_python: Path | None = None

    def versions(self) -> Mapping[str, str]:
        """The engine and the other packages; native Python is that of the machine."""
        others = {package.name: package.version for package in (ERYX_PACKAGE, LLM_PACKAGE)}
        return _machine.packages("wasi-python", "wasmtime") | others

    def run(self) -> Iterator[Row]:
        """Measure everything, one row after the other."""
        self.guest.make()
        with ExitStack() as stack:
            ways = self._ways(stack)
            yield self._with_llm(self.calls(ways, FRESH, PAUSED), stack)
            for kind, detail in ((FRESH, SUSTAINED), (FRESH, AT_ONCE)):
                yield self.calls(ways, kind, detail)
            for detail in (PAUSED, SUSTAINED, AT_ONCE):
                yield self.calls(_without(ways, NATIVE), TURN, detail)
            loop = LOOP.format(count=self.loops)
            yield self._long("loop", f"{self.loops:,} additions", ways, loop)
        yield from self.first_calls()
        yield from self.on_files()
        yield from self.memory()

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """The aims, and their results."""
        return [*(ceiling.judge(rows) for ceiling in AIMS), _first(rows)]

    # The ways

    def _ways(self, stack: ExitStack) -> dict[str, Way]:
        """All that answer at once; those of other packages only if they can be had."""
        ways: dict[str, Way] = {OURS: self._ours(), NATIVE: Here({FRESH: self._native})}
        ways[BARE] = stack.enter_context(Child(Path(sys.executable), ENGINE, self.plain, self.engine_env))
        try:
            self.eryx_python = ERYX_PACKAGE.python(self.others)
            ways[ERYX] = stack.enter_context(Child(self.eryx_python, PYERYX, self.plain))
        except UnmeasuredError as error:
            self.missing[ERYX] = str(error)
        return ways

    def _ours(self) -> Way:
        fresh = [self._sandbox() for _ in range(LANES)]
        turns = [self._sandbox(stateful=True) for _ in range(LANES)]
        for sandbox in turns:
            _execute(sandbox, "x = 0")
        return Here(
            {
                FRESH: lambda code, lane: _execute(fresh[lane], code),
                TURN: lambda code, lane: _execute(turns[lane], code),
            }
        )

    def _sandbox(self, *, stateful: bool = False) -> BaseSandbox:
        return create_session_sandbox(workspace_root=self.root, stateful=stateful)[1]

    def _native(self, code: str, _: int) -> None:
        run_native(code, self.plain)

    # Calls

    def calls(self, ways: Mapping[str, Way], kind: str, detail: str) -> Row:
        """One small call, in one of the three rhythms."""
        rounds = self.paused if detail == PAUSED else self.bursts
        calls = {PAUSED: 1, SUSTAINED: self.burst, AT_ONCE: self.lane}[detail]
        return take_turns(
            OPERATIONS[kind],
            detail,
            ways,
            kind,
            CODE[kind],
            Turns(
                rounds=rounds,
                calls=calls,
                threads=LANES if detail == AT_ONCE else 1,
                pause_seconds=PAUSE_SECONDS,
            ),
        )

    def _with_llm(self, row: Row, stack: ExitStack) -> Row:
        """The row with a way that is too slow to take part in it."""
        try:
            python = LLM_PACKAGE.python(self.others)
            child = stack.enter_context(Child(python, LLM_WASM_SANDBOX, self.plain))
            found = child.time(FRESH, CODE[FRESH], calls=self.slow, threads=1)
        except UnmeasuredError as error:
            return replace(row, missing={**row.missing, **self.missing, LLM: str(error)})
        figures = {**row.figures, LLM: Figure.of(found["seconds"])}
        return replace(row, figures=figures, missing={**row.missing, **self.missing})

    def _long(self, operation: str, detail: str, ways: Mapping[str, Way], code: str) -> Row:
        """A script that takes so long that few calls are enough."""
        turns = Turns(rounds=self.few, pause_seconds=PAUSE_SECONDS)
        return take_turns(operation, detail, ways, FRESH, code, turns)

    # The first call of a process

    def first_calls(self) -> Iterator[Row]:
        """A new process that runs code once: that call, and all of the process."""
        python = sys.executable
        starts: dict[str, Callable[[], tuple[float, float]]] = {
            OURS: lambda: first_call([python, "-P", "-c", FIRST_OURS, str(self.root)]),
            NATIVE: lambda: first_call([python, "-I", "-c", "print(1)"]),
            BARE: lambda: first_call([python, "-I", "-c", FIRST_ENGINE], self.engine_env),
        }
        if self.eryx_python is not None:
            eryx = [str(self.eryx_python), "-I", "-c", FIRST_PYERYX]
            starts[ERYX] = lambda: first_call(eryx)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in starts}
        missing: dict[str, str] = {}
        for turn in range(self.few + 1):
            for name in order(list(found), turn):
                try:
                    both = starts[name]()
                except UnmeasuredError as error:
                    missing[name] = str(error)
                    del found[name]
                    continue
                if turn:
                    found[name].append(both)
        whole = {name: Figure.of([each[1] for each in both]) for name, both in found.items()}
        call = {name: Figure.of([each[0] for each in both]) for name, both in found.items()}
        # Natively, the process is the call.
        yield Row(FIRST, THE_CALL, {**call, NATIVE: whole[NATIVE]}, missing)
        yield Row(FIRST, "the whole process", whole, missing)

    # Files

    def on_files(self) -> Iterator[Row]:
        """Read a large file and write many small ones, on the same disk."""
        session_id, sandbox = create_session_sandbox(policy=ROOMY, workspace_root=self.root, limits=LIMITS)
        for directory in (self.root / session_id, self.plain):
            (directory / "big").write_bytes(bytes(self.big_mb * 10**6))
        ways = {
            OURS: Here({FRESH: lambda code, _: _execute(sandbox, code)}),
            NATIVE: Here({FRESH: self._native}),
        }
        yield self._long("read a file", f"{self.big_mb} MB", ways, READ)
        yield self._long("write files", f"{self.files:,} small files", ways, WRITE.format(count=self.files))

    # Memory

    def memory(self) -> Iterator[Row]:
        """Private memory of interpreters that do nothing."""
        try:
            found = _memory.measure(self.root, self.kept)
        except UnmeasuredError as error:
            yield Row("memory", "private", {}, {OURS: str(error)}, "MiB")
            return
        native = Figure(found.native / MIB)
        detail = f"mean of {self.kept}"
        yield Row("idle interpreter", detail, {OURS: Figure(found.kept / MIB), NATIVE: native}, unit="MiB")
        yield Row(
            "worker process", "nothing in it", {OURS: Figure(found.worker / MIB), NATIVE: native}, unit="MiB"
        )


def _execute(sandbox: BaseSandbox, code: str) -> None:
    result = sandbox.execute(code)
    if not result.success:
        raise RuntimeError(f"a script failed: {result.stderr}")


def _without(ways: Mapping[str, Way], name: str) -> dict[str, Way]:
    return {each: way for each, way in ways.items() if each != name}


def _first(rows: Sequence[Row]) -> Aim:
    row = row_of(rows, FIRST, THE_CALL)
    ours_ms = row.figures[OURS].median
    ratios = ", ".join(f"{row.ratio(way):.2f} times {way!r}" for way in row.others)
    verdict = MET if ours_ms < FIRST_MS else MISSED
    return Aim(f"the first call of a process under {FIRST_MS} ms", verdict, f"{ours_ms:,.0f} ms; {ratios}")


if __name__ == "__main__":
    program("Measure what guest Python costs, side by side with other ways.", Bench)
