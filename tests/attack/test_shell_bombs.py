"""Command lines that ask for far more memory or time than they are given.

Every bomb runs at a small scale with a small budget in the usual run, and with the default memory budget in a
process of its own in the thorough run. What a bomb prints is thrown away: only what it holds counts.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import carrel.shell.runtime.shell
from carrel.shell.budget import STATUS_LIMIT, STATUS_TIMED_OUT, Budget, Meter
from carrel.shell.runtime.shell import BareShell
from carrel.values import MIB
from carrel.workspace.workspace import Workspace

pytestmark = pytest.mark.attack

SMALL_BYTES = 4 * MIB
"""The memory budget at the small scale."""
FULL_BYTES = Budget().memory_bytes or 0
"""The memory budget at the full scale: the default."""
FULL_SECONDS = 10.0
"""The time budget at the full scale: a third of the default, so that all of them take two minutes."""
TIME_BOMB_SECONDS = 2.0
"""The same for those that would go on for very long."""
OVERRUN = 1.2
"""How far a command line may pass its memory budget."""
OVERRUN_SECONDS = 2.0
"""How far the processor time of a command line may pass its time budget."""
MEMORY = "limit.memory_bytes"
OUTPUT = "limit.output_bytes"
TIME = "limit.time"
LONGEST = 200_000
"""Length of the longest word that a bomb gives, below the limit of a command line."""


def word(size: int) -> str:
    """A long word, in proportion to the memory budget."""
    return "x" * min(size // 40, LONGEST)


def short_lines(size: int) -> bytes:
    return b"ab\n" * (size // 96)


def one_line(size: int) -> bytes:
    """A line that may be held, but not many times over."""
    return b"\x01 " * (size // 48)


def too_long_a_line(size: int) -> bytes:
    return b"x y " * (size // 3)


Files = Mapping[str, Callable[[int], bytes]]
LINES: Files = {"f": short_lines}
ONE: Files = {"f": one_line}
LONG: Files = {"f": too_long_a_line}


BYTES = r"\000-\377"


NONE: Files = {}


class Bomb(NamedTuple):
    """A command line, made for a memory budget, and the files it works on."""

    line: str | Callable[[int], str]
    files: Files = NONE
    refused: str | None = None
    """The limit it meets; none if it can be run within the budget."""


def many(text: str, size: int) -> str:
    """*text* as often as a long word holds it."""
    return text * (len(word(size)) // len(text))


BOMBS = {
    # Expansion
    "braces-before-a-word": Bomb(lambda n: "true {1..9999}" + word(n), refused=MEMORY),
    # So few that only the text of the words is too much.
    "few-braces-before-a-long-word": Bomb(lambda n: "true {1..2999}" + word(n), refused=MEMORY),
    "braces-after-a-word": Bomb(lambda n: f"true {word(n)}{{1..9999}}", refused=MEMORY),
    "braces-of-wide-characters": Bomb(
        lambda n: "true {1..9999}" + "\U0001f600" * min(n // 200, LONGEST), refused=MEMORY
    ),
    "braces-that-stand-for-one": Bomb(lambda n: "true {1..9999}" + many("{1..1}", n), refused=MEMORY),
    "braces-of-long-parts": Bomb(lambda n: f"true {{{word(n)},b}}" + "{a,b}" * 12, refused=MEMORY),
    "braces-of-a-variable": Bomb(lambda n: f"V={word(n)}; true {{1..9999}}$V", refused=MEMORY),
    "braces-in-echo": Bomb(lambda n: f"echo {{1..99}}{word(n)[: n // 300]}"),
    "a-variable-of-many-fields": Bomb(
        lambda n: f"V='{many('a ', n // 4)}'; true " + "$V " * 60, refused=MEMORY
    ),
    "a-variable-by-printf": Bomb(
        lambda n: f"printf -v V '%{min(n // 8, MIB)}d' " + " ".join("1" * 40), refused=MEMORY
    ),
    "names-that-match": Bomb(
        "true */../*/../*/../*", {f"d{i}{'x' * 200}/f": lambda n: b"" for i in range(20)}, MEMORY
    ),
    # Options that multiply
    "nl-separator": Bomb(lambda n: f"nl -s {word(n)} f", LINES),
    "nl-separator-without-numbers": Bomb(lambda n: f"nl -bn -s {word(n)} f", LINES),
    "nl-width": Bomb("nl -w 10000 f", {"f": lambda n: short_lines(n // 16)}),
    "seq-separator": Bomb(lambda n: f"seq -s {word(n)} 5000"),
    "seq-format": Bomb(lambda n: f"seq -f {word(n)}%f 5000"),
    "seq-width": Bomb("seq -f %10000f 5000"),
    "cut-delimiter": Bomb(
        lambda n: f"cut -d ' ' -f 1- --output-delimiter={word(n)} f",
        {"f": lambda n: b"a b c d e f g\n" * 400},
    ),
    "cut-bytes-delimiter": Bomb(
        lambda n: f"cut -b 1,3,5,7,9 --output-delimiter={word(n)} f",
        {"f": lambda n: b"abcdefghi\n" * 400},
    ),
    "tac-separator": Bomb(lambda n: f"tac -s {word(n)} f", {"f": lambda n: b"x" * (n // 2)}),
    "tr-repeats": Bomb(lambda n: f"tr x '{many('[a*1000000]', n)}' < f", LINES, MEMORY),
    "tr-ranges": Bomb(lambda n: f"tr -d '{many(BYTES, n)}' < f", LINES, MEMORY),
    "printf-width": Bomb("printf %1000000d {1..99}"),
    "printf-star": Bomb("printf '%*d' 1000000 1"),
    "printf-directives": Bomb(lambda n: f"printf {many('%d', n)}", refused=MEMORY),
    "printf-precision": Bomb("printf %.1000000e 1e-4900"),
    "printf-quoted": Bomb(lambda n: f"printf %q {many(chr(92) + chr(0x1F600), n // 16)}"),
    "stat-format": Bomb(lambda n: f"stat --printf={many('%9999n', n)} f", LINES),
    "find-format": Bomb(lambda n: f"find f -printf '{many('%9999p', n)}'", LINES, MEMORY),
    "xargs-replaced": Bomb(lambda n: f"xargs -I {{}} echo {many('{}', n // 16)} < f", LINES),
    "xargs-words": Bomb("xargs true < f", LONG, MEMORY),
    "xargs-lines-that-go-on": Bomb("xargs true < f", {"f": lambda n: b"a \n" * (n // 16)}, MEMORY),
    "xargs-pieces": Bomb("xargs true < f", {"f": lambda n: b"\\a" * (n // 8)}, MEMORY),
    "head-many": Bomb("head -n -999999999 f", {"f": lambda n: b"x" * 2 * n}, MEMORY),
    "tail-many": Bomb("tail -n 999999999999999999999 < f", {"f": lambda n: b"x" * 2 * n}, MEMORY),
    "uniq-long-lines": Bomb("uniq -c f", {"f": lambda n: (one_line(n) + b"\n") * 3}),
    "wc-columns": Bomb("wc -L f", {"f": lambda n: b"\n\t" * (n // 48)}),
    "cat-visible": Bomb("cat -A f", {"f": lambda n: b"\x80" * (n // 16)}),
    "cat-numbers": Bomb("cat -n f", {"f": lambda n: b"\n" * (n // 64)}),
    "many-files-at-once": Bomb("tee {1..400} < f", {"f": lambda n: b"x" * 2 * MIB}, MEMORY),
    # Lines
    "sort-short-lines": Bomb("sort f", {"f": lambda n: b"ab\nc\n" * (n // 8)}, MEMORY),
    "sort-by-number": Bomb("sort -n f", {"f": lambda n: b"1.5\n" * (n // 512)}),
    "sort-by-size": Bomb("sort -h f", {"f": lambda n: b"1.5K\n" * (n // 512)}),
    "sort-by-version": Bomb("sort -V f", {"f": lambda n: b"a-1.5K\n" * (n // 2048)}),
    "sort-long-lines": Bomb("sort f", {"f": lambda n: (b"x" * 5000 + b"\n") * (n // 20_000)}),
    "diff-short-lines": Bomb(
        "diff f g", {"f": lambda n: b"ab\nc\n" * (n // 8), "g": lambda n: b"x\n"}, MEMORY
    ),
    "diff-different-lines": Bomb(
        "diff f g",
        {
            "f": lambda n: b"".join(b"a%d\n" % i for i in range(n // 600)),
            "g": lambda n: b"".join(b"b%d\n" % i for i in range(n // 600)),
        },
    ),
    "diff-without-space": Bomb(
        "diff -w f g",
        {"f": lambda n: b"a b c d\n" * (n // 400), "g": lambda n: b"a b c e\n" * (n // 400)},
    ),
    "tac-short-lines": Bomb("tac f", {"f": short_lines}),
    "cut-fields": Bomb("cut -d ' ' -f 2- f", LONG, MEMORY),
    "cut-a-line-of-many-fields": Bomb("cut -d ' ' -f 2- f", ONE, MEMORY),
    **{
        f"{command.split()[0]}-a-line-too-long": Bomb(f"{command} f", LONG, MEMORY)
        for command in ("nl", "cat -n", "sort", "uniq", "grep x", "sed p", "tac", "tail -n 1 <")
        if command[:4] not in ("tac", "tail")
    },
    # sed
    "sed-visible": Bomb("sed -n l f", ONE),
    "sed-visible-wrapped": Bomb("sed -n 'l 1' f", ONE),
    "sed-exchange": Bomb("sed y/x/\U0001f600/ f", {"f": lambda n: b"x" * (n // 5)}, MEMORY),
    "sed-replace-each": Bomb("sed 's/./xx/g' f", {"f": lambda n: b"x" * (n // 4)}, MEMORY),
    "sed-replace-each-by-a-word": Bomb(lambda n: f"sed 's/./{word(n)}/g' f", ONE, MEMORY),
    "sed-replace-literal": Bomb(lambda n: f"sed 's/x/{word(n)}/g' f", {"f": lambda n: b"x" * 5000}, MEMORY),
    "sed-refer-back": Bomb(lambda n: rf"sed 's/\(.*\)/{many(chr(92) + '1', n)}/' f", ONE, MEMORY),
    "sed-refer-back-in-capitals": Bomb(
        lambda n: rf"sed 's/\(.*\)/\U{many(chr(92) + '1', n)}/' f", ONE, MEMORY
    ),
    "sed-constant": Bomb(lambda n: f"sed 's/{word(n)[::2]}/{many('&', n)[::2]}/' f", {"f": lambda n: b"y\n"}),
    "sed-double-by-G": Bomb("sed ':a;G;h;ba' f", {"f": lambda n: b"x\n"}, MEMORY),
    "sed-double-by-H": Bomb("sed ':a;H;G;ba' f", {"f": lambda n: b"x\n"}, MEMORY),
    "sed-double-by-s": Bomb("sed ':a;s/.*/&&/;ba' f", {"f": lambda n: b"x\n"}, MEMORY),
    "sed-double-by-s-and-hold": Bomb("sed ':a;h;s/x/xx/g;G;ba' f", {"f": lambda n: b"x\n"}, MEMORY),
    "sed-all-lines": Bomb("sed ':a;N;ba' f", {"f": lambda n: b"\n" * (n // 4)}, MEMORY),
    "sed-print-in-place": Bomb("sed -i '1,9999p;s/x/y/' f", {"f": lambda n: b"x" * 999 + b"\n"}),
    # grep
    "grep-patterns": Bomb(
        "grep -f f f", {"f": lambda n: b"".join(b"p%d\n" % i for i in range(min(n // 16, 10**6)))}, MEMORY
    ),
    "grep-fixed-patterns": Bomb("grep -F -f f f", {"f": lambda n: b"ab%\n" * (n // 64)}),
    "grep-lines-before": Bomb("grep -B 999999999 no f", {"f": lambda n: b"x\n" * (n // 2)}, MEMORY),
    "grep-parts": Bomb("grep -no . f", {"f": lambda n: b"x" * (n // 400)}),
}


TIME_BOMBS = {
    "cut-many-ranges": Bomb(
        lambda n: f"cut -b {','.join(map(str, range(1, 20_000, 2)))} f > /dev/null",
        {"f": lambda n: b"ab\n" * 50_000},
    ),
    "sort-check-many-keys": Bomb(
        lambda n: f"sort -c {'-k1 ' * 5000} f", {"f": lambda n: b"a\n" * 3000}, TIME
    ),
    "sort-merge-many-keys": Bomb(
        lambda n: f"sort -mu {'-k1 ' * 5000} f", {"f": lambda n: b"a\n" * 3000}, TIME
    ),
    "sort-by-a-far-field": Bomb("sort -k 999999999 f", {"f": lambda n: b"a " * 400_000 + b"\n"}, TIME),
    "sort-keys": Bomb("sort -n f > /dev/null", {"f": lambda n: b"1.5\n" * 300_000}, TIME),
    "uniq-far-field": Bomb("uniq -f 999999999 f", {"f": lambda n: b"a " * 400_000 + b"\n"}, TIME),
    "sed-visible": Bomb("sed -n l f > /dev/null", {"f": lambda n: b"x" * 2 * MIB}, TIME),
    "sed-append": Bomb("sed ':a;a x\nba' f", {"f": lambda n: b"x\n"}, TIME),
    "sed-print-in-place": Bomb("sed -i ':a;p;ba' f", {"f": lambda n: b"x" * 1000 + b"\n"}, TIME),
    "grep-patterns": Bomb(
        "grep -f f f", {"f": lambda n: b"".join(b"p%d\n" % i for i in range(60_000))}, TIME
    ),
    "options": Bomb(lambda n: "grep " + "-e a " * 50_000 + " f", {"f": lambda n: b"b\n"}),
}
"""Command lines whose work has to be interrupted; the clock runs by how often it is looked at."""

LOOKS = 50
"""After so many looks at the clock, the time is over."""


def prepare(directory: Path, bomb: Bomb, size: int) -> str:
    """Write the files of a bomb and return its line."""
    for name, content in bomb.files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(content(size))
    return bomb.line if isinstance(bomb.line, str) else bomb.line(size)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_stays_within_its_memory_budget(name: str, tmp_path: Path) -> None:
    bomb = BOMBS[name]
    line = prepare(tmp_path, bomb, SMALL_BYTES)
    budget = Budget(memory_bytes=SMALL_BYTES, output_bytes=SMALL_BYTES, seconds=None)
    with Workspace.open(tmp_path) as workspace:
        shell = BareShell(workspace, pipelines=True)
        shell.run(f"{line.split()[0]} --help", budget=budget)
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            result = shell.run(line, budget=budget, on_output=lambda stream, data: None)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (peak - before) / SMALL_BYTES < OVERRUN
    if bomb.refused is None:
        assert result.error_code in (None, OUTPUT)
    else:
        assert (result.error_code, result.exit_code) == (bomb.refused, STATUS_LIMIT)


@pytest.mark.parametrize("name", TIME_BOMBS)
def test_a_bomb_looks_at_the_clock_while_it_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = TIME_BOMBS[name]
    line = prepare(tmp_path, bomb, SMALL_BYTES)
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return float(looks)

    monkeypatch.setattr(carrel.shell.runtime.shell, "Meter", partial(Meter, clock=clock))
    budget = Budget(seconds=LOOKS if bomb.refused else None, output_bytes=None)
    with Workspace.open(tmp_path) as workspace:
        result = BareShell(workspace, pipelines=True).run(line, budget=budget, on_output=lambda *_: None)
    assert (result.error_code, result.exit_code == STATUS_TIMED_OUT) == (bomb.refused, bomb.refused == TIME)


CHILD = """
import os, sys, time
from pathlib import Path
from carrel.shell.budget import Budget
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace


def status(key):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith(key))


directory, line = Path(sys.argv[1]), Path(sys.argv[2]).read_text()
memory_bytes, seconds = int(sys.argv[3]), float(sys.argv[4])
budget = Budget(memory_bytes=memory_bytes, output_bytes=None, seconds=seconds)
with Workspace.open(directory) as workspace:
    shell = BareShell(workspace, pipelines=True)
    shell.run(f"{line.split()[0]} --help")
    Path("/proc/self/clear_refs").write_text("5")
    before, begin = status("VmRSS"), time.process_time()
    result = shell.run(line, budget=budget, on_output=lambda stream, data: None)
    print((status("VmHWM") - before) * 1024, time.process_time() - begin, result.error_code)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bomb", "seconds"),
    [
        *(pytest.param(bomb, FULL_SECONDS, id=name) for name, bomb in BOMBS.items()),
        *(pytest.param(bomb, TIME_BOMB_SECONDS, id=f"{name}-for-long") for name, bomb in TIME_BOMBS.items()),
    ],
)
def test_a_bomb_of_full_size_stays_within_its_budget(bomb: Bomb, seconds: float, tmp_path: Path) -> None:
    workspace, line = tmp_path / "workspace", tmp_path / "line"
    workspace.mkdir()
    line.write_text(prepare(workspace, bomb, FULL_BYTES), "utf-8")
    words = (str(workspace), str(line), str(FULL_BYTES), str(seconds))
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, *words], check=True, capture_output=True, text=True, timeout=120
    )
    held_bytes, cpu_seconds, code = ran.stdout.split()
    assert int(held_bytes) / FULL_BYTES < OVERRUN
    assert float(cpu_seconds) < seconds + OVERRUN_SECONDS
    assert code in ("None", MEMORY, TIME)
