"""Every suite that a framework publishes ends as it is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.peer_suite import PeerSuite, differences, peer_suites


@pytest.mark.parametrize("suite", peer_suites().values(), ids=lambda suite: suite.name)
def test_the_suite_of_a_framework_ends_as_it_is_written_down(suite: PeerSuite, tmp_path: Path) -> None:
    assert differences(suite, tmp_path / "report.xml") == []
