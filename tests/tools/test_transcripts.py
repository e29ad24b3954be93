"""A model sees of typical calls, good and bad, what is in the transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.tools.core.formats import Format
from carrel.tools.core.spec import Profile
from tests.tools.transcripts.calls import TRANSCRIPTS
from tests.tools.transcripts.record import HERE, render

AGAIN = "python -m tests.tools.transcripts.record"
"""Writes the files; the difference is to be read."""


@pytest.fixture
def guest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest, for the calls that run code."""
    if "python" in request.node.name:
        monkeypatch.setenv("CARREL_CACHE", str(request.getfixturevalue("guest_cache")))


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_model_sees_what_is_in_the_transcript(name: str) -> None:
    for file, text in render(name).items():
        assert text == (HERE / file).read_text("utf-8"), f"if it is right now: {AGAIN} {name}"


def test_every_profile_has_a_transcript_in_every_format_and_no_file_is_left_over() -> None:
    assert {transcript.profile for transcript in TRANSCRIPTS.values()} == set(Profile)
    wanted = {f"{name}.{format}.txt" for name in TRANSCRIPTS for format in Format}
    assert {path.name for path in Path(HERE).glob("*.txt")} == wanted


@pytest.mark.parametrize("profile", Profile)
def test_a_transcript_has_the_typical_calls(profile: Profile) -> None:
    titles = {call.title for call in TRANSCRIPTS[profile].calls}
    assert len(titles) >= 30
    assert titles >= {
        "read yaml",
        "read a long file",
        "read an image",
        "read a wrong path",
        "read above the workspace",
        "write outside" if profile is not Profile.EDITOR else "create outside",
        "an unknown argument",
    }
