"""A row that plain calls of `os` pass proves nothing, and has to say so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.more import MORE
from tests.attack.privilege import IS_ROOT, missing
from tests.attack.table import ROWS

pytestmark = [pytest.mark.attack, pytest.mark.root]


@pytest.mark.skipif(
    sys.version_info >= (3, 12),
    reason="what plain calls do is stated for Python 3.11; later ones mended some",
)
def test_each_row_says_truly_whether_it_proves_that_there_is_a_guard(place: Path) -> None:
    if not IS_ROOT:
        missing("root, to shut the unguarded calls in")
    answers = subprocess.run(
        [sys.executable, "-m", "tests.attack.unguarded", str(place)], stdout=subprocess.PIPE, check=True
    ).stdout.splitlines()
    wrong = [
        f"{row} is marked proves={row.proves}, but plain calls end in {answer['ending'][:80]!r}"
        for row, answer in zip((*ROWS, *MORE), map(json.loads, answers), strict=True)
        if row.proves == answer["passes"]
    ]
    assert not wrong, "\n".join(wrong)
