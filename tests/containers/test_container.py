"""One container: its life, its programs and its lock-down, as those inside see it."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from carrel.containers.container import Container
from carrel.containers.engine import Engine
from carrel.containers.spec import ContainerSpec, Volume
from carrel.containers.stream import STDERR, STDOUT
from carrel.errors import ContainerError, EngineError
from tests.containers.conftest import Make
from tests.engines import STATIC
from tests.requirements import requirement

LONG = 30.0


def run(
    container: Container, *argv: str, stdin: bytes = b"", **options: Any
) -> tuple[int | None, bytes, bytes]:
    """The status of a program, and what it wrote."""
    stream = container.exec(argv, **options)
    streams = {STDOUT: b"", STDERR: b""}
    try:
        stream.send(stdin, deadline=time.monotonic() + LONG)
        stream.close_input()
        while (found := stream.receive(time.monotonic() + LONG)) is not None:
            streams[found[0]] += found[1]
    except EOFError:
        return stream.wait(time.monotonic() + LONG), streams[STDOUT], streams[STDERR]
    finally:
        stream.close()
    raise AssertionError("it did not end")


@requirement("CT-9")
def test_a_program_has_its_streams_and_its_status(busybox: Container) -> None:
    code, out, err = run(busybox, "sh", "-c", "cat; echo wrong >&2; exit 3", stdin=b"\0given\n\n")
    assert (code, out, err) == (3, b"\0given\n\n", b"wrong\n")


@requirement("CT-5")
def test_arguments_are_never_read_by_a_shell(busybox: Container) -> None:
    hostile = ["-rf", "a b", "$(id)", "`id`", ";id", "it's", '"', "new\nline", "*", ""]
    _, out, _ = run(busybox, "printf", "%s|", *hostile)
    assert out.decode() == "".join(f"{each}|" for each in hostile)


def test_a_program_has_the_directory_the_environment_and_the_user_that_it_is_given(
    busybox: Container,
) -> None:
    script = "pwd; echo $NAME; id -u"
    found = run(busybox, "sh", "-c", script, cwd="/tmp", env={"NAME": "it's $HOME"}, user="7:8")
    assert found == (0, b"/tmp\nit's $HOME\n7\n", b"")


def test_output_that_nobody_waits_for_is_not_lost(busybox: Container) -> None:
    for _ in range(5):
        assert run(busybox, "echo", "at once")[1] == b"at once\n"


def test_much_goes_both_ways(busybox: Container) -> None:
    data = bytes(range(256)) * 4096
    code, out, _ = run(busybox, "sh", "-c", "cat >/tmp/much; cat /tmp/much; rm /tmp/much", stdin=data)
    assert code == 0
    assert out == data


def test_a_receiver_does_not_wait_longer_than_it_wants(busybox: Container) -> None:
    stream = busybox.exec(["cat"])
    assert stream.receive(time.monotonic()) is None
    assert stream.exit_code() is None
    stream.send(b"now", deadline=time.monotonic() + LONG)
    assert stream.receive(time.monotonic() + LONG) == (STDOUT, b"now")
    stream.close_input()
    with pytest.raises(EOFError):
        stream.receive(time.monotonic() + LONG)
    assert stream.wait(time.monotonic() + LONG) == 0
    stream.close()


def test_what_is_not_taken_in_time_is_an_error(busybox: Container) -> None:
    stream = busybox.exec(["sleep", "100"])
    with pytest.raises(EngineError) as caught:
        stream.send(bytes(2**26), deadline=time.monotonic() + 0.2)
    assert caught.value.code == "engine.slow"
    stream.close()
    run(busybox, "pkill", "sleep")


def test_it_is_locked_down(make: Make) -> None:
    container = make()
    seen = run(container, "sh", "-c", "cat /proc/self/status; id; touch /new /etc/new; ls /sys/class/net")
    out, err = seen[1].decode(), seen[2].decode()
    for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert f"{capabilities}:\t0000000000000000" in out
    assert "NoNewPrivs:\t1" in out
    assert "Seccomp:\t2" in out
    assert "uid=65532 gid=65532 groups=65532" in out
    assert out.endswith("\nlo\n")
    assert err.count("Read-only file system") == 2


def test_its_ceilings_are_those_of_the_specification(make: Make) -> None:
    container = make(memory_bytes=2**26, cpus=0.5, pids=17, open_files=99, file_bytes=2**20, tmp_bytes=2**21)
    words = run(container, "sh", "-c", "ulimit -n; ulimit -c; df -k /tmp | tail -n 1")[1].decode().split()
    host = container.engine.api.inspect_container(container.id)["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (2**26, 2**26, 17)
    assert host["NanoCpus"] == 5 * 10**8
    assert words[:2] == ["99", "0"]
    assert "2048" in words
    code, _, _ = run(container, "dd", "if=/dev/zero", "of=/tmp/f", "bs=1024", "count=1025")
    assert code == 128 + signal.SIGXFSZ
    assert run(container, "stat", "-c", "%s", "/tmp/f")[1] == b"1048576\n"


def test_what_an_operator_loosens_is_loose(make: Make) -> None:
    container = make(
        read_only=False, user="0:0", capabilities=("CHOWN",), new_privileges=True, env={"A": "b"}
    )
    out = run(
        container,
        "sh",
        "-c",
        "touch /new && chown 1:1 /new && stat -c %u /new; id -u; echo $A; grep NoNew /proc/self/status",
    )
    assert out[1] == b"1\n0\nb\nNoNewPrivs:\t0\n"


def test_everything_that_ends_it_can_be_done_twice(make: Make) -> None:
    container = make()
    for act in (container.pause, container.unpause, container.stop, container.kill, container.remove):
        act()
        act()
    with pytest.raises(ContainerError) as caught:
        container.state()
    assert caught.value.code == "container.missing"


def test_a_restart_ends_everything_and_empties_its_tmp(make: Make) -> None:
    container = make()
    run(container, "sh", "-c", "touch /tmp/left; (trap '' TERM HUP; sleep 1000) >/dev/null 2>&1 &")
    assert "65532" in container.processes().values()
    container.restart()
    assert container.state().running
    assert run(container, "ls", "/tmp")[1] == b""
    assert run(container, "sh", "-c", "ps | grep -c '[s]leep 1000'")[1] == b"0\n"


def test_a_stopped_container_runs_nothing(make: Make) -> None:
    container = make()
    container.kill()
    with pytest.raises(ContainerError) as caught:
        container.exec(["true"])
    assert caught.value.code in ("container.conflict", "container.stopped")


def test_an_image_without_a_shell_is_named(engine: Engine, make: Make) -> None:
    with pytest.raises(ContainerError) as caught:
        make(image=STATIC)
    assert caught.value.code == "container.program"


def test_archives_go_in_and_out_of_what_never_ran(engine: Engine, make: Make) -> None:
    container = make(image=STATIC, command=None, mount=Volume(name="carrel-test-never-ran"))
    try:
        found = container.stat("/workspace")
        assert found is not None
        assert found.name == "workspace"
        assert container.stat("/workspace/nothing") is None
        assert b"".join(container.get_archive("/workspace")).startswith(b"workspace/")
    finally:
        container.remove()
        engine.api.remove_volume("carrel-test-never-ran")


def test_a_specification_that_makes_no_sense_is_refused() -> None:
    for wrong in ({"image": ""}, {"memory_bytes": 0}, {"cpus": -1}, {"pids": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ContainerSpec(**{"image": "any", **wrong})  # type: ignore[arg-type]  # that is the point


def test_a_digest_tells_specifications_apart() -> None:
    spec = ContainerSpec(image="a")
    assert spec.digest == ContainerSpec(image="a", pull=True).digest
    assert spec.digest != ContainerSpec(image="b").digest
    assert spec.digest != ContainerSpec(image="a", mount=Volume(name="v")).digest
