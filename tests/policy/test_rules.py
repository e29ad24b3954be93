"""Ordered rules: the first one whose root holds a path decides about it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel import AccessMode, PathRule, SandboxPolicy
from carrel.errors import AccessError, OutsideError
from carrel.policy.rules import Access
from tests.requirements import requirement

RO, RW = AccessMode.READ_ONLY, AccessMode.READ_WRITE
READ, WRITE = Access.READ, Access.WRITE


# Modes


@requirement("AP-03")
@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("ro", RO),
        ("rw", RW),
        ("readwrite", RW),
        ("read-write", RW),
        ("RW", RW),
        ("Read-Write", RW),
        (" rw ", RW),
        ("anything_else", RO),
        ("", RO),
        ("w", RO),
        ("rwx", RO),
    ],
)
def test_a_mode_that_is_not_plainly_read_write_is_read_only(text: str, mode: AccessMode) -> None:
    assert AccessMode.parse(text) is mode


@given(st.text())
def test_any_text_is_a_mode_and_only_three_words_allow_writing(text: str) -> None:
    writable = AccessMode.parse(text) is RW
    assert writable == (text.strip().lower() in ("rw", "readwrite", "read-write"))


@pytest.mark.parametrize(
    ("mode", "access", "allowed"), [(RO, READ, True), (RO, WRITE, False), (RW, READ, True), (RW, WRITE, True)]
)
def test_reading_is_in_every_mode_and_writing_in_one(mode: AccessMode, access: Access, allowed: bool) -> None:
    assert mode.allows(access) is allowed


# Rules and policies


@pytest.mark.parametrize(
    ("given_root", "root"),
    [("/a/b", "/a/b"), ("/a/./b/", "/a/b"), ("/a/x/../b", "/a/b"), ("//a", "//a"), ("/", "/")],
)
def test_the_root_of_a_rule_is_absolute_and_plain(given_root: str, root: str) -> None:
    assert PathRule(given_root).root == root
    assert PathRule(given_root).mode is RO


def test_a_relative_root_begins_at_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert PathRule("sub").root == str(tmp_path / "sub")


def test_the_root_of_a_rule_can_be_a_path_object_but_not_bytes(tmp_path: Path) -> None:
    assert PathRule(tmp_path).root == str(tmp_path)  # type: ignore[arg-type]  # accepted, not promised
    with pytest.raises(TypeError, match="must be str, not bytes"):
        PathRule(b"/a")  # type: ignore[arg-type]  # that is the point


def test_a_mode_given_as_text_must_be_one() -> None:
    assert PathRule("/a", "rw").mode is RW  # type: ignore[arg-type]  # accepted, not promised
    with pytest.raises(ValueError, match="'wr' is not a valid AccessMode"):
        PathRule("/a", "wr")  # type: ignore[arg-type]  # that is the point


def test_the_first_rule_is_the_workspace_itself() -> None:
    assert SandboxPolicy("/ws", (PathRule("/ws", RW),)).allowed_paths[0].root == "/ws"
    with pytest.raises(ValueError, match="the first rule must be the workspace itself"):
        SandboxPolicy("/ws", (PathRule("/other", RW), PathRule("/ws", RW)))


def test_a_policy_is_a_value() -> None:
    policy = SandboxPolicy.for_workspace("/ws", allow=[PathRule("/a")])
    assert policy == SandboxPolicy("/ws", (PathRule("/ws", RW), PathRule("/a", RO)), enabled=True)
    assert hash(policy) == hash(SandboxPolicy.for_workspace("/ws", RW, [PathRule("/a")]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.enabled = False  # type: ignore[misc]  # that is the point


# Decisions


@requirement("AP-19")
@pytest.mark.parametrize(
    ("path", "access", "reason"),
    [
        ("/home/user/project/src/main.rs", READ, None),
        ("/home/user/project/src/main.rs", WRITE, None),
        ("/home/user/project", WRITE, None),
        ("src/main.rs", WRITE, None),
        ("/etc/passwd", READ, "outside workspace"),
        ("/home/other/file", WRITE, "outside workspace"),
        ("/home/user", READ, "outside workspace"),
        ("/", READ, "outside workspace"),
    ],
)
def test_a_rule_answers_for_everything_beneath_its_root(
    path: str, access: Access, reason: str | None
) -> None:
    decision = SandboxPolicy.for_workspace("/home/user/project").explain(path, access)
    assert (decision.allowed, decision.reason) == (reason is None, reason)
    assert (decision.path, decision.access) == (path, access)


@requirement("AP-19", "AP-07", "AP-09")
def test_a_denial_names_the_path_and_the_reason() -> None:
    read_only = SandboxPolicy.for_workspace("/ws", RO)
    with pytest.raises(AccessError) as denied:
        read_only.explain("/ws/path", WRITE).require()
    assert str(denied.value) == "sandbox: write access denied for '/ws/path': read-only workspace"
    with pytest.raises(OutsideError) as outside:
        read_only.explain("/path", READ).require()
    assert str(outside.value) == "sandbox: read access denied for '/path': outside workspace"
    assert isinstance(denied.value, PermissionError)
    assert isinstance(outside.value, PermissionError)
    assert isinstance(outside.value, ValueError)
    assert (denied.value.code, outside.value.code) == ("access.denied", "access.outside")
    read_only.explain("/ws/path", READ).require()
    shelf = SandboxPolicy.for_workspace("/ws", RW, [PathRule("/shelf", RO)])
    assert shelf.explain("/shelf/book", WRITE).reason == "read-only path"


@requirement("AP-15")
@pytest.mark.parametrize(
    ("path", "index", "writable"),
    [
        ("/ws/sub/x", 0, False),
        ("sub/x", 0, False),
        ("/a/sub/x", 1, True),
        ("/a/shut", 1, True),
        ("/b/open/x", 3, True),
        ("/b/x", 4, False),
        ("/b/opener/x", 4, False),
        ("/c", None, False),
    ],
)
def test_the_first_rule_that_has_the_path_decides(path: str, index: int | None, writable: bool) -> None:
    policy = SandboxPolicy.for_workspace(
        "/ws",
        RO,
        [PathRule("/a", RW), PathRule("/a/shut", RO), PathRule("/b/open", RW), PathRule("/b", RO)],
    )
    decision = policy.explain(path, WRITE)
    assert (decision.index, decision.allowed) == (index, writable)
    assert decision.rule == (None if index is None else policy.allowed_paths[index])


@requirement("AP-23", "P-25")
@pytest.mark.parametrize(
    "path", ["/WORKSPACE/x", "/Workspace/x", "/workspace-evil/x", "/workspacex", "/work"]
)
def test_a_path_that_is_spelled_otherwise_is_another_path(path: str) -> None:
    assert not SandboxPolicy.for_workspace("/workspace").explain(path, READ).allowed


@requirement("P-17", "P-16")
@pytest.mark.parametrize(
    "path", ["../evil.txt", "../../etc/passwd", "/ws/../evil.txt", "/ws/a/../../x", "a/../../b"]
)
def test_a_path_that_climbs_out_is_outside_also_when_it_is_only_read_as_text(path: str) -> None:
    assert SandboxPolicy.for_workspace("/ws").explain(path, READ).reason == "outside workspace"


def test_an_empty_list_of_rules_allows_nothing() -> None:
    policy = SandboxPolicy("/ws")
    for path in (".", "f", "/ws/f", "/etc"):
        for access in Access:
            assert policy.explain(path, access).reason == "outside workspace"


@requirement("AP-12")
def test_a_policy_switched_off_allows_everything_and_switched_on_again_it_restricts() -> None:
    policy = SandboxPolicy.for_workspace("/ws", RO)
    off = dataclasses.replace(policy, enabled=False)
    assert all(off.explain(path, WRITE).allowed for path in ("/etc/passwd", "/ws/f", "../x"))
    assert dataclasses.replace(off, enabled=True) == policy
    assert not policy.explain("/etc/passwd", READ).allowed


@pytest.mark.parametrize("access", ["read", "write"])
def test_an_access_can_be_given_as_text(access: str) -> None:
    assert SandboxPolicy.for_workspace("/ws").explain("f", access).access == Access(access)
    with pytest.raises(ValueError, match="'run' is not a valid Access"):
        SandboxPolicy.for_workspace("/ws").explain("f", "run")


names = st.sampled_from(["a", "b", "ab", "A", "..", "."])
paths = st.lists(names, min_size=1, max_size=5).map(lambda parts: "/" + "/".join(parts))
rules = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=3), st.sampled_from(AccessMode)
    ),
    min_size=1,
    max_size=4,
)


@given(rules=rules, path=paths, access=st.sampled_from(Access))
def test_a_decision_is_that_of_the_first_rule_above_the_path(
    rules: list[tuple[list[str], AccessMode]], path: str, access: Access
) -> None:
    roots = ["/" + "/".join(parts) for parts, _ in rules]
    policy = SandboxPolicy(
        roots[0], tuple(PathRule(root, mode) for root, (_, mode) in zip(roots, rules, strict=True))
    )
    plain = os.path.normpath(path)
    first = next(
        (index for index, root in enumerate(roots) if plain == root or plain.startswith(root + "/")), None
    )
    decision = policy.explain(path, access)
    assert decision.index == first
    assert decision.allowed == (first is not None and policy.allowed_paths[first].mode.allows(access))
