"""What the settings of containers may be; they are locked down unless the operator says otherwise."""

from __future__ import annotations

import json

import pytest

from carrel.config.settings import ContainerSettings
from tests.config.conftest import Home

FILTER = {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}


def test_nothing_given_is_the_locked_down_default(home: Home) -> None:
    assert home.load().containers == ContainerSettings()
    assert home.load("[containers]\n").containers.image is None


@pytest.mark.parametrize(
    "name",
    [
        "busybox",
        "python:3.13-slim",
        "library/python",
        "registry.example:5000/team/image_name:v1.2",
        f"python@sha256:{'0a' * 32}",
    ],
)
def test_an_image_is_named_as_the_engine_names_it(home: Home, name: str) -> None:
    assert home.load(f"containers.image = {json.dumps(name)}").containers.image == name


@pytest.mark.parametrize("name", ["", "-rf", "a b", "Upper", "a:", "a@sha256:12", "../a", "a\n", "a" * 600])
def test_what_names_no_image_is_refused(home: Home, name: str) -> None:
    assert home.error(f"\ncontainers.image = {json.dumps(name)}").startswith(
        "FILE:2: containers.image must be the name of an image, not "
    )


@pytest.mark.parametrize(
    "address", ["unix:///run/user/1000/docker.sock", "tcp://10.0.0.1:2375", "https://engine.example:2376"]
)
def test_an_engine_is_reached_by_a_socket_or_by_a_host(home: Home, address: str) -> None:
    assert home.load(f"containers.address = '{address}'").containers.address == address


@pytest.mark.parametrize("address", ["ssh://host", "npipe:////./pipe/x", "/run/docker.sock", "tcp://a@b:1"])
def test_an_engine_is_reached_in_no_other_way(home: Home, address: str) -> None:
    assert "containers.address must be a text like" in home.error(f"containers.address = '{address}'")


@pytest.mark.parametrize("text", ["0", "nan", "inf", "-1", "true", "'1'", "2000"])
def test_a_share_of_processors_is_a_number_in_its_range(home: Home, text: str) -> None:
    assert "containers.cpus must be a number from 0.01 to 1024" in home.error(f"containers.cpus = {text}")


@pytest.mark.parametrize("user", ["0", "root:root", "1000:", "-1:0", "1:1:1"])
def test_a_user_is_two_numbers(home: Home, user: str) -> None:
    assert "containers.user must be two numbers" in home.error(f"containers.user = '{user}'")


def test_a_capability_that_there_is_not_is_named_with_its_line(home: Home) -> None:
    message = home.error("[containers]\ncapabilities = [\n'CHOWN',\n'SYS_EVERYTHING']\n")
    assert message.startswith("FILE:4: containers.capabilities[1] must be the name of a capability")


def test_a_filter_of_system_calls_is_read_from_its_file(home: Home) -> None:
    file = home.path / "filter.json"
    file.write_text(json.dumps(FILTER))
    found = home.load("containers.seccomp = '~/filter.json'")
    assert json.loads(found.containers.seccomp or "") == FILTER
    (value,) = (each for each in found.values if each.name == "containers.seccomp")
    assert value.value == str(file)


@pytest.mark.parametrize(
    ("text", "problem"), [(None, "does not exist"), ("{", "is not JSON"), ("[]", "is not a JSON object")]
)
def test_a_filter_that_cannot_be_used_is_told_with_its_line(
    home: Home, text: str | None, problem: str
) -> None:
    if text is not None:
        (home.path / "filter.json").write_text(text)
    message = home.error("\n[containers]\nseccomp = '~/filter.json'\n")
    assert message == f"FILE:3: containers.seccomp names a file that {problem}"
    message = home.error("", CARREL_CONTAINER_SECCOMP="~/filter.json")
    assert message == f"CARREL_CONTAINER_SECCOMP names a file that {problem}"
