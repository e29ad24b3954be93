"""Entry point of a worker process: opens interpreters and cancels scripts on request of the host."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from pathlib import Path

from carrel.runtimes.frames import FrameSocket
from carrel.runtimes.wasm.build.engine_cache import attach
from carrel.runtimes.wasm.protocol import CANCEL, MESSAGE, OPEN_WARM
from carrel.runtimes.wasm.worker import wasi_patches
from carrel.runtimes.wasm.worker.channel import Flusher
from carrel.runtimes.wasm.worker.interpreter import Activity, Interpreter
from carrel.runtimes.wasm.worker.lockdown import lock_down

_TRIES = 20
_PAUSE_SECONDS = 0.02


class WorkerServer:
    """Opens interpreters, each in a separate thread, and stops their scripts."""

    def __init__(self, control: socket.socket, directory: Path) -> None:
        wasi_patches.install()
        # Every thread that is started here runs a guest.
        threading.stack_size(wasi_patches.STACK_BYTES)
        self._control = control
        self._directory = directory
        self._flusher = Flusher()
        self._activity = Activity()
        self._lock = threading.Lock()
        self._attached: set[bool] = set()
        self._interpreters: dict[int, Interpreter] = {}

    def run(self) -> None:
        """Handle control messages until the host closes the socket."""
        while True:
            data, fds, _, _ = socket.recv_fds(self._control, MESSAGE.size, 1, socket.MSG_WAITALL)
            if len(data) < MESSAGE.size:
                return
            action, metered, number, serial = MESSAGE.unpack(data)
            if action == CANCEL:
                if (found := self._interpreters.get(number)) is not None:
                    found.cancel(serial)
                continue
            frames = FrameSocket(socket.socket(fileno=fds[0]))
            opened = Interpreter(
                frames,
                self._flusher,
                self._activity,
                cache_directory=str(self._directory),
                metered=bool(metered),
            )
            self._interpreters[number] = opened
            arguments = number, opened, bool(metered), action == OPEN_WARM
            threading.Thread(target=self._serve, args=arguments, daemon=True).start()

    def _serve(self, number: int, interpreter: Interpreter, metered: bool, warm: bool) -> None:
        try:
            self._attach(metered)
            interpreter.serve(warm=warm)
        except Exception as error:
            interpreter.fail(error)
        finally:
            del self._interpreters[number]
            interpreter.close()

    def _attach(self, metered: bool) -> None:
        """Load the compiled guest, once per flavour."""
        with self._lock:
            if metered not in self._attached:
                attach(self._directory, metered)
                self._attached.add(metered)


def main(control_fd: int, directory: str) -> None:
    """Serve the host connected to *control_fd*, with the guest that was compiled into *directory*."""
    own = Path(os.environ["TMPDIR"])
    lock_down(Path(directory), own)
    try:
        WorkerServer(socket.socket(fileno=control_fd), Path(directory)).run()
    finally:
        _remove(own)
        os._exit(0)


def _remove(directory: Path) -> None:
    """Remove the worker's own directory, to which interpreters that are being opened may still write."""
    for _ in range(_TRIES):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(_PAUSE_SECONDS)
