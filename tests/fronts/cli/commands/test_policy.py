"""`carrel policy explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fronts.cli.conftest import Carrel


def test_the_workspace_may_be_read_and_written(carrel: Carrel, session: str) -> None:
    answer = carrel("policy", "explain", session, "not/yet/there")
    assert answer.status == 0
    assert answer.lines == [
        "read  allowed by rule 0, the workspace (rw)",
        "write allowed by rule 0, the workspace (rw)",
    ]


@pytest.mark.parametrize("path", ["../x", "/etc/passwd"])
def test_what_no_rule_has_is_denied_with_3(carrel: Carrel, session: str, path: str) -> None:
    answer = carrel("policy", "explain", session, path)
    assert answer.status == 3
    assert answer.lines == [
        "read  denied  by no rule: outside workspace",
        "write denied  by no rule: outside workspace",
    ]


def test_a_link_out_is_denied(carrel: Carrel, session: str, tmp_path: Path) -> None:
    (carrel.workspace(session) / "out").symlink_to(tmp_path)
    assert carrel("policy", "explain", session, "out", "--access", "read").status == 3


def test_an_allowed_path_is_read_only_unless_it_says_rw(carrel: Carrel, session: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for rule, status in ((f"{data}", 3), (f"{data}:ro", 3), (f"{data}:rw", 0)):
        words = ("policy", "explain", session, f"{data}/new", "--allow", rule)
        assert carrel(*words, "--access", "read").status == 0
        assert carrel(*words, "--access", "write").status == status


def test_the_first_rule_that_has_the_path_decides(carrel: Carrel, session: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    answer = carrel(
        "policy",
        "explain",
        session,
        f"{data}/x",
        "--allow",
        f"{data}:ro",
        "--allow",
        f"{tmp_path}:rw",
        "--json",
    )
    assert answer.status == 3
    rule = {"index": 1, "root": str(data), "mode": "ro"}
    assert answer.json == {
        "session_id": session,
        "path": f"{data}/x",
        "decisions": [
            {"access": "read", "allowed": True, "reason": None, "rule": rule},
            {"access": "write", "allowed": False, "reason": "read-only path", "rule": rule},
        ],
    }


def test_the_workspace_is_named_as_those_inside_name_it(carrel: Carrel, session: str) -> None:
    answer = carrel("policy", "explain", session, "a.txt", "--access", "write", "--json")
    assert answer.json["decisions"] == [
        {
            "access": "write",
            "allowed": True,
            "reason": None,
            "rule": {"index": 0, "root": "/workspace", "mode": "rw"},
        }
    ]
    assert str(carrel.sessions) not in answer.out.decode()


def test_a_path_that_is_none_is_invalid(carrel: Carrel, session: str) -> None:
    answer = carrel("policy", "explain", session, "", "--json")
    assert (answer.status, answer.error["code"]) == (2, "path.invalid")


def test_an_unknown_session_fails(carrel: Carrel) -> None:
    assert carrel("policy", "explain", "s9", "a").status == 1
    assert not carrel.sessions.exists()
