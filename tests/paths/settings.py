"""How property tests run: the same examples every time, unless `CARREL_TEST_RANDOM=1` asks for others."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.depth import rounds

repeatable = settings(
    max_examples=int(os.environ.get("CARREL_TEST_EXAMPLES", rounds(500))),
    deadline=None,
    derandomize=os.environ.get("CARREL_TEST_RANDOM") != "1",
    suppress_health_check=[HealthCheck.too_slow],
)
