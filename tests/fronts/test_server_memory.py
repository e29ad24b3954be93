"""Memory of a service: what a large request took is given back."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import os
from carrel.fronts.server import tune_allocator

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")

tune_allocator()
b"x" * (24 * 2**20)  # freed at once: from now on, glibc would take blocks of that size from the heap
before = resident()
large, pins = [], []
for _ in range(8):
    large.append(b"x" * (8 * 2**20))
    pins.append([bytes(2000) for _ in range(100)])
large.clear()
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc's allocator")
def test_large_blocks_are_returned_to_the_system_though_small_ones_between_them_stay() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8 * 2**20
