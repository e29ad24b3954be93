"""What Pydantic AI's own suite says about our workspace is what is written down about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.peer_suite import differences, peer_suites


@pytest.mark.thorough
def test_the_suite_of_pydantic_ai_ends_as_recorded(tmp_path: Path) -> None:
    assert differences(peer_suites()["pydantic-ai"], tmp_path / "report.xml") == []
