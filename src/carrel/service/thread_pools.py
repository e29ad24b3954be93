"""Thread pools of the service, shared fairly between tenants.

Threads that execute Python code compete with the event loop for the interpreter lock: after each of its
system calls the loop waits for every running thread in turn. The pools therefore have many threads, for calls
that block, and few slots for threads that execute code. A thread that blocks, on a lock or on a client,
releases its slot.

A tenant gets another thread or slot only while it has fewer than are free, so other tenants always find one.

Not covered: processors and disks, which all tenants share; a single call into C code that keeps the
interpreter lock.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from threading import Event, Lock
from typing import Any, ParamSpec, TypeVar

from carrel.fs.nonblocking import releasing
from carrel.service.principal import Principal

RETURN_SECONDS = 1.0
"""A thread that has blocked continues without a slot after this long: it may hold a lock that others need."""

P = ParamSpec("P")
T = TypeVar("T")

_TENANT: ContextVar[str | None] = ContextVar("carrel_tenant", default=None)
"""The tenant that the current task works for; `None` for the operator and for the service itself."""


def set_current_tenant(caller: Principal) -> None:
    """Count the threads that the current task uses from now on for the caller's tenant."""
    _TENANT.set(caller.tenant)


class Slots:
    """Limits how many threads execute code at the same time."""

    def __init__(self, count: int) -> None:
        self._free = count
        """Negative while threads have continued without a slot."""
        self._lock = Lock()
        self._busy: Counter[str | None] = Counter()
        self._waiting: OrderedDict[str | None, deque[Event]] = OrderedDict()
        """Waiting threads by tenant; the tenant that is next comes first."""

    @property
    def waiting(self) -> int:
        """Number of threads that wait for a slot."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    @contextmanager
    def held(self, tenant: str | None) -> Iterator[None]:
        """Hold a slot of *tenant* in this thread, except during its blocking waits."""
        self._acquire(tenant, None)
        try:
            with releasing(partial(self._released, tenant)):
                yield
        finally:
            self._release(tenant)

    @contextmanager
    def _released(self, tenant: str | None) -> Iterator[None]:
        self._release(tenant)
        try:
            yield
        finally:
            self._acquire(tenant, RETURN_SECONDS)

    def _acquire(self, tenant: str | None, seconds: float | None) -> None:
        """Wait for a slot; after *seconds*, continue without one."""
        with self._lock:
            if tenant not in self._waiting and self._busy[tenant] < self._free:
                self._take(tenant)
                return
            granted = Event()
            queue = self._waiting.setdefault(tenant, deque())
            if seconds is None:
                queue.append(granted)
            else:
                queue.appendleft(granted)
        if granted.wait(seconds):
            return
        with self._lock:
            if not granted.is_set():
                self._forget(tenant, granted)
                self._take(tenant)

    def _release(self, tenant: str | None) -> None:
        with self._lock:
            self._free += 1
            decrement(self._busy, tenant)
            while any(self._is_granted(each) for each in tuple(self._waiting)):
                pass

    def _is_granted(self, tenant: str | None) -> bool:
        """Grant a slot to the next waiting thread of *tenant*; the turn then passes to other tenants."""
        if self._busy[tenant] >= self._free:
            return False
        granted = self._waiting[tenant][0]
        self._waiting.move_to_end(tenant)
        self._forget(tenant, granted)
        self._take(tenant)
        granted.set()
        return True

    def _forget(self, tenant: str | None, granted: Event) -> None:
        queue = self._waiting[tenant]
        queue.remove(granted)
        if not queue:
            del self._waiting[tenant]

    def _take(self, tenant: str | None) -> None:
        self._free -= 1
        self._busy[tenant] += 1


class BlockingThreadPool(ThreadPoolExecutor):
    """Threads for work that mostly blocks on clients."""

    def __init__(self, count: int, slots: Slots) -> None:
        super().__init__(count, thread_name_prefix="carrel-waiting")
        self._slots = slots

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run *work* for the tenant of the current task."""
        return super().submit(self._work, _TENANT.get(), partial(work, *args, **kwargs))

    def _work(self, tenant: str | None, work: Callable[[], T]) -> T:
        with self._slots.held(tenant):
            return work()


class FairThreadPool(ThreadPoolExecutor):
    """Threads shared by tenants in round-robin order; the tenant is that of the submitting task."""

    def __init__(self, count: int, slots: Slots) -> None:
        super().__init__(count, thread_name_prefix="carrel-service")
        self._slots = slots
        self._free = count
        self._lock = Lock()
        self._busy: Counter[str | None] = Counter()
        self._waiting: OrderedDict[str | None, deque[Callable[[], None]]] = OrderedDict()
        """Waiting jobs by tenant; the tenant that is next comes first."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run *work* for the tenant of the current task when it is its turn."""
        future: Future[T] = Future()
        job = partial(_run_job, future, partial(work, *args, **kwargs))
        with self._lock:
            self._waiting.setdefault(_TENANT.get(), deque()).append(job)
        super().submit(self._work)
        return future

    def _work(self) -> None:
        """Run waiting jobs until none may start."""
        while (found := self._next()) is not None:
            tenant, job = found
            if self._waiting:
                # The end of one job can allow two others to start; this thread runs only one of them.
                with suppress(RuntimeError):  # shut down: no new thread starts, the running ones finish
                    super().submit(self._work)
            try:
                with self._slots.held(tenant):
                    job()
            finally:
                del job, found
                with self._lock:
                    self._free += 1
                    decrement(self._busy, tenant)

    def _next(self) -> tuple[str | None, Callable[[], None]] | None:
        with self._lock:
            for tenant, jobs in self._waiting.items():
                if self._busy[tenant] < self._free:
                    job = jobs.popleft()
                    self._waiting.move_to_end(tenant)
                    if not jobs:
                        del self._waiting[tenant]
                    self._free -= 1
                    self._busy[tenant] += 1
                    return tenant, job
            return None


def _run_job(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def decrement(counter: Counter[Any], key: Hashable, count: int = 1) -> None:
    """Subtract *count* from a counter, and delete the key when it reaches zero."""
    counter[key] -= count
    if not counter[key]:
        del counter[key]
