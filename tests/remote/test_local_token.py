"""The local token: who finds it, and who does not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from carrel.errors import ConfigError
from carrel.remote import local_token

TOKEN = "carrel_token"


def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


def place(tmp_path: Path) -> Path:
    found = local_token.directory(environ(tmp_path))
    assert found is not None
    return found


def test_a_token_is_found_on_loopback_at_its_ports_while_it_is_stored(tmp_path: Path) -> None:
    with local_token.stored(place(tmp_path), TOKEN, 1, 2):
        for host in ("127.0.0.1", "localhost", "::1", "[::1]"):
            assert local_token.find(host, 1, environ(tmp_path)) == TOKEN
        assert local_token.find("127.0.0.1", 2, environ(tmp_path)) == TOKEN
        assert local_token.find("127.0.0.1", 3, environ(tmp_path)) is None
        modes = {stat.S_IMODE(os.stat(each).st_mode) for each in place(tmp_path).iterdir()}
        assert modes == {0o600}
        assert stat.S_IMODE(place(tmp_path).stat().st_mode) == 0o700
    assert local_token.find("127.0.0.1", 1, environ(tmp_path)) is None
    assert list(place(tmp_path).iterdir()) == []


@pytest.mark.attack
@pytest.mark.parametrize("host", ["box", "10.0.0.1", "", "127.0.0.1.evil.example"])
def test_a_token_is_not_sent_to_other_machines(tmp_path: Path, host: str) -> None:
    with local_token.stored(place(tmp_path), TOKEN, 1):
        assert local_token.find(host, 1, environ(tmp_path)) is None


def test_two_services_have_a_token_each_and_a_later_one_stays(tmp_path: Path) -> None:
    with local_token.stored(place(tmp_path), "later", 2):
        with local_token.stored(place(tmp_path), TOKEN, 1, 2):
            (place(tmp_path) / "2").write_text("later")
        assert local_token.find("127.0.0.1", 1, environ(tmp_path)) is None
        assert local_token.find("127.0.0.1", 2, environ(tmp_path)) == "later"


def test_a_token_that_a_killed_service_left_is_replaced(tmp_path: Path) -> None:
    with local_token.stored(place(tmp_path), TOKEN, 1), local_token.stored(place(tmp_path), "new", 1):
        assert local_token.find("127.0.0.1", 1, environ(tmp_path)) == "new"


@pytest.mark.attack
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_token_that_others_could_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    with local_token.stored(place(tmp_path), TOKEN, 1):
        (place(tmp_path) / "1").chmod(mode)
        with pytest.raises(ConfigError, match="readable by you only"):
            local_token.find("127.0.0.1", 1, environ(tmp_path))


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_token_of_another_user_is_refused(tmp_path: Path) -> None:
    with local_token.stored(place(tmp_path), TOKEN, 1):
        os.chown(place(tmp_path) / "1", 65534, 65534)
        with pytest.raises(ConfigError, match="belong to you"):
            local_token.find("127.0.0.1", 1, environ(tmp_path))


@pytest.mark.attack
def test_a_link_is_no_token(tmp_path: Path) -> None:
    with local_token.stored(place(tmp_path), TOKEN, 1):
        (place(tmp_path) / "2").symlink_to("1")
        assert local_token.find("127.0.0.1", 2, environ(tmp_path)) is None


@pytest.mark.attack
def test_nothing_is_stored_where_others_have_access(tmp_path: Path) -> None:
    place(tmp_path).mkdir(parents=True)
    place(tmp_path).chmod(0o755)
    with pytest.raises(ConfigError), local_token.stored(place(tmp_path), TOKEN, 1):
        pass
    assert list(place(tmp_path).iterdir()) == []


def test_without_a_home_there_is_no_token() -> None:
    assert local_token.directory({}) is None
    assert local_token.find("127.0.0.1", 1, {}) is None
