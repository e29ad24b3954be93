"""How many requests a caller may make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import LimitError
from carrel.service.error_status import error_status
from carrel.service.principal import Principal
from carrel.service.rate_limit import MAX_TRACKED_CALLERS, RateLimiter
from tests.service.clock import FakeClock

ALICE = Principal(name="alice", tenant="a", role="critic")
BOB = Principal(name="bob", tenant="a", role="critic")
OPERATOR = Principal(name="local")


def allowed(rates: RateLimiter, caller: Principal, tries: int) -> int:
    """How many of some requests at once are allowed."""
    count = 0
    for _ in range(tries):
        try:
            rates.take(caller)
        except LimitError:
            continue
        count += 1
    return count


@pytest.mark.parametrize("rate", [1, 2, 7, 60, 999, 6_000])
def test_a_minutes_requests_may_come_at_once_and_then_one_at_a_time(rate: int) -> None:
    clock = FakeClock()
    rates = RateLimiter(rate, clock=clock)
    assert allowed(rates, ALICE, rate + 5) == rate
    clock.advance(60 / rate + 1e-6)
    assert allowed(rates, ALICE, 5) == 1
    clock.advance(60)
    assert allowed(rates, ALICE, rate + 5) == rate


def test_a_refusal_says_when_to_come_again_and_that_is_true() -> None:
    clock = FakeClock()
    rates = RateLimiter(6, clock=clock)
    assert allowed(rates, ALICE, 6) == 6
    clock.advance(3.5)
    with pytest.raises(
        LimitError, match=r"^too many requests: 6 per minute are allowed; try again in 7 s$"
    ) as hit:
        rates.take(ALICE)
    assert (hit.value.code, hit.value.limit, hit.value.retry_after_seconds) == ("limit.rate", 6, 7)
    assert (error_status(hit.value.code).http_status, error_status(hit.value.code).retry) == (429, True)
    clock.advance(7)
    rates.take(ALICE)


def test_one_caller_takes_nothing_from_another() -> None:
    rates = RateLimiter(3, clock=FakeClock())
    same_name = Principal(name="alice", tenant="b", role="critic")
    assert [allowed(rates, caller, 5) for caller in (ALICE, BOB, same_name, ALICE)] == [3, 3, 3, 0]


def test_a_rate_of_its_own_goes_before_the_one_that_is_configured() -> None:
    rates = RateLimiter(3, clock=FakeClock())
    assert allowed(rates, Principal(name="few", tenant="t", role="r", rate_per_minute=1), 9) == 1
    assert allowed(rates, Principal(name="many", tenant="t", role="r", rate_per_minute=8), 9) == 8
    unlimited = RateLimiter(None, clock=FakeClock())
    assert allowed(unlimited, ALICE, 100) == 100
    assert allowed(unlimited, Principal(name="few", tenant="t", role="r", rate_per_minute=1), 9) == 1


def test_the_operator_is_not_counted() -> None:
    assert allowed(RateLimiter(1, clock=FakeClock()), OPERATOR, 100) == 100


def test_no_more_callers_are_counted_than_there_is_room_for() -> None:
    clock = FakeClock()
    rates = RateLimiter(60, clock=clock)
    for number in range(MAX_TRACKED_CALLERS + 500):
        rates.take(Principal(name=f"c{number}", tenant="t", role="r"))
    assert len(rates._paid_ns) == MAX_TRACKED_CALLERS
    clock.advance(60)
    for _ in range(MAX_TRACKED_CALLERS):
        clock.advance(1)
        rates.take(ALICE)
    assert len(rates._paid_ns) == 1


@given(
    st.integers(1, 50),
    st.lists(st.floats(0, 20), max_size=200),
)
def test_in_no_stretch_of_time_are_more_allowed_than_a_minutes_and_those_that_it_earns(
    rate: int, pauses: list[float]
) -> None:
    clock = FakeClock()
    rates = RateLimiter(rate, clock=clock)
    begin = clock.seconds()
    count = 0
    for pause in pauses:
        clock.advance(pause)
        count += allowed(rates, ALICE, 3)
        assert count <= rate + (clock.seconds() - begin) * rate / 60 + 1e-3
