"""`carrel doctor` tells whether containers can be used, and what to do if not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from carrel.config.load import load
from carrel.config.settings import ContainerSettings
from carrel.fronts.cli.doctor.container_facts import _engine_facts, _limits_missing, collect_container_facts
from tests.containers.test_engine import answering, http
from tests.engines import BUSYBOX, require_engine
from tests.fronts.cli.doctor.test_doctor import Patient

OFF = [
    "off image containers.image is not set",
    "-> to use containers, set containers.image or CARREL_CONTAINER_IMAGE",
]
IMAGE = {"CARREL_CONTAINER_IMAGE": "some-image"}


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    home = tmp_path / "home"
    home.mkdir()
    return Patient(home)


def told(patient: Patient, **variables: str) -> tuple[int, list[str]]:
    """The status, and the lines about containers."""
    answer = patient.doctor(**variables)
    assert answer.err == ""
    section = answer.out.decode().partition("\nContainers\n")[2].partition("\n\n")[0]
    return answer.status, [" ".join(line.split()) for line in section.splitlines()]


def ill(patient: Patient, **variables: str) -> dict[str, Any]:
    """What is wrong if an image is configured; without one nothing is."""
    answer = patient.doctor("--json", **{**IMAGE, **variables})
    assert (answer.status, answer.err) == (5, "")
    found: dict[str, Any] = answer.json["containers"]["problem"]
    assert answer.json["problems"] == [found]
    if "CARREL_CONTAINER_ENGINE" in variables:
        without = [f"off engine {found['problem']}", f"-> {found['remedy']}", *OFF]
        assert told(patient, **variables) == (0, without)
    return found


# It can be used


def test_what_is_not_configured_is_off_and_no_engine_is_asked(patient: Patient, tmp_path: Path) -> None:
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path}/nothing"}
    assert told(patient, **nowhere) == (0, OFF)
    document = patient.doctor("--json", **nowhere).json["containers"]
    assert (document["image"], document["engine"], document["problem"]) == (None, None, None)


def test_tools_without_an_image_are_told_to_have_no_effect(patient: Patient) -> None:
    _, lines = told(patient, CARREL_CONTAINER_TOOLS="yes")
    assert lines == [f"{OFF[0]}; containers.tools has no effect", OFF[1]]


def test_an_engine_with_the_image_is_well(patient: Patient) -> None:
    address = require_engine()
    variables = {"CARREL_CONTAINER_ENGINE": address, "CARREL_CONTAINER_IMAGE": BUSYBOX}
    status, lines = told(patient, **variables, CARREL_CONTAINER_TOOLS="yes")
    assert status == 0
    assert lines[0].startswith("ok engine Docker ")
    assert f" at {address} on " in lines[0]
    assert lines[1:] == [
        "ok limits memory, processes and processors are limited, system calls are filtered",
        f"ok image {BUSYBOX} is available",
        "ok tools bash and python_executor run in containers",
    ]
    document = patient.doctor("--json", **variables).json["containers"]
    assert document["has_image"] is True
    assert document["engine"]["version"]
    assert (document["limits_missing"], document["loosened"], document["problem"]) == ([], [], None)


def test_what_is_loosened_is_told(patient: Patient) -> None:
    variables = {"CARREL_CONTAINER_NETWORK": "bridge", "CARREL_CONTAINER_USER": "0:0"}
    _, lines = told(patient, **variables, CARREL_CONTAINER_CAPABILITIES="CHOWN")
    assert lines[-2:] == [
        "note locks less locked down than by default: containers.user, containers.network,"
        " containers.capabilities",
        "-> remove these settings unless they are intended",
    ]
    _, lines = told(patient, CARREL_CONTAINER_USER="1000:1000")
    assert lines == OFF


def test_an_engine_that_cannot_limit_is_told() -> None:
    facts = {"memory_limit": False, "pids_limit": True, "cpu_quota": False, "security": ["name=cgroupns"]}
    assert list(_limits_missing(facts)) == [
        "the engine cannot limit the memory of containers",
        "the engine cannot limit the share of processors of containers",
        "the engine does not filter system calls (seccomp)",
    ]


# It cannot


def test_an_image_that_is_missing_is_a_problem_unless_it_may_be_pulled(patient: Patient) -> None:
    address = require_engine()
    missing = {"CARREL_CONTAINER_ENGINE": address, "CARREL_CONTAINER_IMAGE": "carrel-test-nothing"}
    answer = patient.doctor("--json", **missing)
    assert answer.status == 5
    assert answer.json["problems"] == [
        {
            "problem": "the engine does not have the image 'carrel-test-nothing'",
            "remedy": "docker pull carrel-test-nothing, or containers.pull = true",
        }
    ]
    assert patient.doctor(**missing, CARREL_CONTAINER_PULL="yes").status == 0


def test_no_engine_is_told(patient: Patient, tmp_path: Path) -> None:
    found = ill(patient, CARREL_CONTAINER_ENGINE=f"unix://{tmp_path}/nothing")
    assert found["problem"].startswith("no Docker engine answers there; is it running? (")
    assert found["remedy"] == "start it, or set CARREL_CONTAINER_ENGINE to another one"


def test_an_engine_that_refuses_is_told_in_its_own_words(patient: Patient, tmp_path: Path) -> None:
    with answering(tmp_path, http("403 Forbidden", {"message": "not you"})) as address:
        found = ill(patient, CARREL_CONTAINER_ENGINE=address)
    assert found["problem"] == "the Docker engine refuses this user (not you)"
    assert "give this user access to its socket" in found["remedy"]


def test_an_engine_that_is_slow_is_told(patient: Patient, tmp_path: Path) -> None:
    with answering(tmp_path, None) as address:
        found = ill(patient, CARREL_CONTAINER_ENGINE=address, CARREL_CONTAINER_TIMEOUT_SECONDS="1")
    assert found["problem"].startswith("the Docker engine does not answer in time")
    assert "containers.timeout_seconds" in found["remedy"]


def test_an_engine_that_is_old_is_told(patient: Patient, tmp_path: Path) -> None:
    with answering(tmp_path, http("200 OK", {"ApiVersion": "1.30"})) as address:
        found = ill(patient, CARREL_CONTAINER_ENGINE=address)
    assert "1.30" in found["problem"]
    assert found["remedy"] == "install Docker 20.10 or newer"


def test_an_engine_that_breaks_off_is_told(patient: Patient, tmp_path: Path) -> None:
    with answering(tmp_path, b"what?\r\n\r\n") as address:
        found = ill(patient, CARREL_CONTAINER_ENGINE=address)
    assert found["remedy"] == "check the log of the engine"


def test_a_way_to_an_engine_that_we_do_not_know_is_told(patient: Patient) -> None:
    found = ill(patient, DOCKER_HOST="ssh://somewhere")
    assert "not by 'ssh://somewhere'" in found["problem"]
    assert "DOCKER_HOST" in found["remedy"]


def test_without_the_client_its_installation_is_told(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    found = collect_container_facts(ContainerSettings(image="box"))
    assert found["problem"] == {
        "problem": "the Docker client is not installed",
        "remedy": "pip install 'carrel[docker]'",
    }


def test_the_settings_of_the_environment_are_those_that_are_tried(tmp_path: Path) -> None:
    address = require_engine()
    environ = {"HOME": os.fspath(tmp_path), "CARREL_CONTAINER_ENGINE": address}
    assert _engine_facts(load(environ).containers)["engine"]["address"] == address
