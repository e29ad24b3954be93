"""The options in force: overrides first, then the configuration; invalid ones are refused."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import pytest

from carrel.config.load import load
from carrel.config.settings import Settings
from carrel.tools.core.options import ANSWER_BYTES, ResolvedOptions, ToolOptions


@pytest.fixture
def settings() -> Settings:
    """What is in force where nothing is configured."""
    return load({"HOME": "/nowhere", "CARREL_CONFIG": os.devnull})


def test_every_option_is_chosen_and_nothing_else(settings: Settings) -> None:
    names = {field.name for field in dataclasses.fields(ResolvedOptions)}
    # Whether tools work in containers is the operator's to say.
    assert {*ToolOptions.__annotations__, "containers"} == names
    assert ResolvedOptions.of(settings, {}).answer_bytes == ANSWER_BYTES


def test_without_options_the_configuration_holds(settings: Settings) -> None:
    chosen = ResolvedOptions.of(settings, {})
    assert chosen.default_encoding == "utf-8"
    assert chosen.max_file_size == 10 * 2**20
    assert chosen.allowed_paths == ()
    assert chosen.timeout_ms == 30_000
    assert chosen.roles == settings.roles
    assert chosen.pipelines == settings.shell.pipelines
    assert (chosen.policy, chosen.stateful) == (None, False)


def test_a_given_option_goes_first(settings: Settings) -> None:
    chosen = ResolvedOptions.of(
        settings, {"timeout_ms": 5, "allowed_paths": ["a", "b"], "default_encoding": "ascii"}
    )
    assert chosen.timeout_ms == 5
    assert chosen.allowed_paths == ("a", "b")
    assert chosen.default_encoding == "ascii"
    assert chosen.max_file_size == 10 * 2**20


@pytest.mark.parametrize("name", ["max_file_size", "timeout_ms", "answer_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10", None])
def test_a_number_that_makes_no_sense_is_refused(settings: Settings, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1"):
        ResolvedOptions.of(settings, {name: value})  # type: ignore[misc]  # that is the point


@pytest.mark.parametrize("encoding", ["utf-16", "", "UTF-8", None])
def test_an_encoding_that_is_not_offered_is_refused(settings: Settings, encoding: Any) -> None:
    with pytest.raises(ValueError, match="default_encoding must be one of utf-8, ascii, latin-1, base64"):
        ResolvedOptions.of(settings, {"default_encoding": encoding})


def test_one_text_is_no_list_of_paths(settings: Settings) -> None:
    with pytest.raises(TypeError, match="allowed_paths must be a list of paths"):
        ResolvedOptions.of(settings, {"allowed_paths": "in"})


def test_one_text_is_no_list_of_tools(settings: Settings) -> None:
    with pytest.raises(TypeError, match="roles must give each role a list of tools"):
        ResolvedOptions.of(settings, {"roles": {"reader": "file_read"}})


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_command_needs_some_time(settings: Settings, seconds: float) -> None:
    with pytest.raises(ValueError, match="shell_timeout_seconds must be more than 0"):
        ResolvedOptions.of(settings, {"shell_timeout_seconds": seconds})


def test_a_command_cannot_print_less_than_nothing(settings: Settings) -> None:
    with pytest.raises(ValueError, match="shell_output_bytes must be at least 0"):
        ResolvedOptions.of(settings, {"shell_output_bytes": -1})
    assert ResolvedOptions.of(settings, {"shell_output_bytes": 0}).shell_output_bytes == 0


def test_an_option_that_does_not_exist_is_refused(settings: Settings) -> None:
    with pytest.raises(TypeError, match=r"^there is no option 'no_such_option'$"):
        ResolvedOptions.of(settings, {"no_such_option": 1})  # type: ignore[typeddict-unknown-key]  # that is the point
