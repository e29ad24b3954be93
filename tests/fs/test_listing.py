"""The names in a directory that several hold open."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from carrel.fs.handle import names_in

COUNT = 3_000


def test_all_who_look_at_once_see_everything(tmp_path: Path) -> None:
    for number in range(COUNT):
        (tmp_path / f"{number:050}").touch()
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(names_in, [held] * 40))
    finally:
        os.close(held)
    assert {len(set(names)) for names in found} == {COUNT}


def test_a_directory_that_is_held_by_its_path_alone_is_listed(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    held = os.open(tmp_path, os.O_PATH)
    try:
        assert names_in(held) == [b"f"]
    finally:
        os.close(held)
