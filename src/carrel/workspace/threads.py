"""The thread pool for awaited calls that may take long, apart from the event loop's default pool."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

_THREADS = 256
"""Most calls that are awaited at the same time."""


@cache
def call_threads() -> ThreadPoolExecutor:
    """The threads in which awaited calls wait that may take long; a forked child begins with none."""
    os.register_at_fork(after_in_child=call_threads.cache_clear)
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="carrel-call")
