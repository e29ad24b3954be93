"""The worlds of the other attacks, for those through adapters."""

from tests.attack.conftest import _numbers, place, places, world

__all__ = ["_numbers", "place", "places", "world"]
