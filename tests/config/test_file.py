"""Where the configuration file is, and what may be wrong with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.config.document import FILE_BYTES
from carrel.config.file import ConfigFile
from carrel.config.load import load
from carrel.config.table import KEYS
from carrel.errors import ConfigError
from tests.config.conftest import Home
from tests.config.test_toml_lines import NAMES, STATEMENTS, VALUES

# Where it is


def test_without_a_file_there_are_defaults(home: Home) -> None:
    settings = home.load()
    assert (settings.file, settings.has_file) == (home.file, False)


def test_an_empty_environment_names_no_file() -> None:
    settings = load({})
    assert (settings.file, settings.has_file) == (None, False)
    assert settings.operator.root is None


def test_the_file_is_in_the_home_directory(home: Home) -> None:
    settings = home.load("session.entries = 5")
    assert (settings.file, settings.has_file, settings.session.entries) == (home.file, True, 5)


def test_xdg_names_another_directory(home: Home, tmp_path: Path) -> None:
    home.write("session.entries = 5")
    file = tmp_path / "xdg" / "carrel" / "config.toml"
    assert home.load(XDG_CONFIG_HOME=str(tmp_path / "xdg")).file == file
    file.parent.mkdir(parents=True)
    file.write_text("session.entries = 6")
    assert home.load(XDG_CONFIG_HOME=str(tmp_path / "xdg")).session.entries == 6


@pytest.mark.parametrize("base", ["", "relative", "./x"])
def test_xdg_that_is_not_absolute_does_not_count(home: Home, base: str) -> None:
    assert home.load("session.entries = 5", XDG_CONFIG_HOME=base).file == home.file


def test_a_variable_names_the_file(home: Home, tmp_path: Path) -> None:
    home.write("session.entries = 5")
    (tmp_path / "other.toml").write_text("session.entries = 7")
    assert home.load(CARREL_CONFIG=str(tmp_path / "other.toml")).session.entries == 7
    assert home.load(CARREL_CONFIG="~/.config/carrel/config.toml").session.entries == 5
    assert home.load(CARREL_CONFIG="").session.entries == 5
    assert home.load(CARREL_CONFIG="/dev/null").session.entries == 100_000


def test_an_argument_names_the_file(home: Home, tmp_path: Path) -> None:
    home.write("session.entries = 5")
    (tmp_path / "other.toml").write_text("session.entries = 7")
    environ = home.environ(CARREL_CONFIG="/missing")
    assert load(environ, path=tmp_path / "other.toml").session.entries == 7


def test_a_file_that_was_named_must_be_there(home: Home, tmp_path: Path) -> None:
    missing = tmp_path / "no.toml"
    assert home.error(CARREL_CONFIG=str(missing)) == f"{missing}: there is no such file (from CARREL_CONFIG)"
    with pytest.raises(ConfigError, match=r"no such file$"):
        load({}, path=missing)


@pytest.mark.parametrize("name", ["~other/config.toml", "~/config.toml"])
def test_a_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^CARREL_CONFIG begins with"):
        load({"CARREL_CONFIG": name})


def test_a_home_that_is_not_absolute_is_none() -> None:
    assert load({"HOME": "here"}).file is None


def test_a_file_where_the_directory_would_be_is_no_file(home: Home) -> None:
    (home.path / ".config").write_text("")
    assert home.load().has_file is False


# What cannot be read


def test_a_directory_is_refused(home: Home) -> None:
    home.file.mkdir(parents=True)
    assert home.error() == "FILE: is a directory"


def test_a_fifo_is_refused_at_once(home: Home) -> None:
    home.file.parent.mkdir(parents=True)
    os.mkfifo(home.file)
    assert home.error() == "FILE: is not a regular file"


def test_an_endless_file_is_refused(home: Home) -> None:
    assert home.error(CARREL_CONFIG="/dev/zero") == f"/dev/zero: is larger than {FILE_BYTES} bytes"


def test_a_file_that_may_not_be_read_is_refused(unprivileged: Path) -> None:
    home = Home(unprivileged)
    home.write("")
    home.file.chmod(0)
    assert home.error() == "FILE: cannot be read: Permission denied"


@pytest.mark.parametrize("name", ["a\0b", "x" * 5_000])
def test_a_name_that_cannot_be_opened_is_refused(home: Home, name: str) -> None:
    assert home.error(CARREL_CONFIG=name)


def test_bytes_that_are_not_utf_8_are_refused_with_their_line(home: Home) -> None:
    home.write("")
    for begin in (b"# \xc3\xa4\n", b"\xef\xbb\xbf\n"):
        home.file.write_bytes(begin + b"# \xff\n")
        assert home.error() == "FILE:2: is not UTF-8 text"


def test_a_mark_of_the_byte_order_is_passed_over(home: Home) -> None:
    settings = home.load("\ufeffsession.entries = 5")
    assert settings.session.entries == 5
    assert home.error("\ufeff\nqqqq = 5") == "FILE:2: qqqq is not a known key"


def test_no_descriptor_stays_open(home: Home) -> None:
    home.file.mkdir(parents=True)
    before = os.listdir("/proc/self/fd")
    home.error()
    home.error(CARREL_CONFIG="/dev/zero")
    home.load(CARREL_CONFIG="/dev/null")
    assert os.listdir("/proc/self/fd") == before


# What stands in it

BAD = {
    "x =": "FILE:1: is not TOML that can be read: Invalid value",
    "\n[session\n": "FILE:2: is not TOML that can be read: Expected ']' at the end of a table declaration",
    "\n\nx = 'a": "FILE:3: is not TOML that can be read",
    "[session]\n[session]": "FILE:2: is not TOML that can be read",
    "x = " + "[" * 10_000: "FILE: is not TOML that can be read: it is nested too deeply",
    "\nx = 1" + "0" * 5_000: "FILE:2: is not TOML that can be read: a number is too long",
    "session = 5": "FILE:1: session must be a table, not 5",
    "[[session]]": "FILE:1: session must be a table, not a list",
    "\nttl = 5": "FILE:2: ttl is not a known key; did you mean session.ttl_seconds?",
    "[sesion]\nx = 1": "FILE:1: sesion is not a known key; did you mean session?",
    "[session]\nttl = 5": "FILE:2: session.ttl is not a known key; did you mean session.ttl_seconds?",
    "[session]\nmax_session = 5": "FILE:2: session.max_session is not a known key; did you mean"
    " session.max_sessions?",
    "[session]\n\n\nmode = 5": "FILE:4: session.mode is not a known key",
    "qqqq = 5": "FILE:1: qqqq is not a known key",
    '"" = 5': "FILE:1: '' is not a known key",
    '"session.entries" = 5': "FILE:1: 'session.entries' is not a known key",
    "session.entries.x = 5": "FILE:1: session.entries must be a whole number from 0 to 1000000000000"
    ' or "none", not a table',
    "[session]\nentries = -1": "FILE:2: session.entries must be a whole number from 0",
    "[session]\nentries = true": "FILE:2: session.entries must be a whole number from 0",
    "[session]\nentries = nan": "FILE:2: session.entries must be a whole number from 0",
    "[session]\nentries = 0x" + "f" * 9_000: "FILE:2: session.entries must be a whole number from 0",
    "[session]\nttl_seconds = 0": "FILE:2: session.ttl_seconds must be a whole number from 1",
    "[session]\nmin_free_mb = 'none'": "FILE:2: session.min_free_mb must be a whole number from 0",
    "[session]\nttl_seconds = 1979-05-27": "FILE:2: session.ttl_seconds must be",
    "[session]\ndirectory = ''": "FILE:2: session.directory must be a path, not ''",
    "[session]\ndirectory = '~you/x'": "FILE:2: session.directory begins with '~you'",
    '[session]\ndirectory = "a\\u0000"': "FILE:2: session.directory must be a path, not 'a\\x00'",
    "[session]\nshared_workspace = 'here'": "FILE:2: session.shared_workspace must be an absolute path",
    "sandbox.enabled = 1": "FILE:1: sandbox.enabled must be true or false, not 1",
    "[python]\nworkers = 65": "FILE:2: python.workers must be a whole number from 0 to 64, not 65",
    "[python]\ncache = 'here'": "FILE:2: python.cache must be an absolute path",
    "[workspace]\nmode = 'x'": 'FILE:2: workspace.mode must be "ro" or "rw", not \'x\'',
    "[workspace]\nallow = 'x'": "FILE:2: workspace.allow must be a list of tables with path and mode",
    "[workspace]\nallow = [\n'x']": "FILE:3: workspace.allow[0] must be a table, not 'x'",
    "[[workspace.allow]]\npath = '/a'\n[[workspace.allow]]": "FILE:3: workspace.allow[1] must have path",
    "[[workspace.allow]]\npath = 'a'": "FILE:2: workspace.allow[0].path must be an absolute path",
    "[[workspace.allow]]\npath = '/a'\n\nmode = 1": "FILE:4: workspace.allow[0].mode must be",
    "[[workspace.allow]]\npth = '/a'": "FILE:2: workspace.allow[0].pth is not a known key; did you mean path",
    "[files]\nallowed_paths = ['a',\n1]": "FILE:3: files.allowed_paths[1] must be a text that is not empty",
    "[files]\ndefault_encoding = 'utf-16'": "FILE:2: files.default_encoding must be one of",
    "[files]\ntimeoutMs = 0": "FILE:2: files.timeoutMs must be a whole number from 1",
    "[files]\nmax_file_size = '1TB'": "FILE:2: files.max_file_size must be a number of bytes",
    "roles = 1": "FILE:1: roles must be a table of roles, not 1",
    "roles.x = 1": "FILE:1: roles.x must be a table, not 1",
    "\n[roles.Big]\ntools = []": "FILE:2: roles.Big must be named by lower-case letters",
    "\n[roles.x]": "FILE:2: roles.x must have tools",
    "[roles.x]\ntool = []": "FILE:2: roles.x.tool is not a known key; did you mean tools?",
    "[roles.x]\ntools = 'bash'": "FILE:2: roles.x.tools must be a list of tools",
    "[roles.x]\ntools = [\n'bash',\n'rm -rf']": "FILE:4: roles.x.tools[1] must be the name of a tool",
}


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=range(len(BAD)))
def test_what_is_wrong_is_told_with_file_line_and_key(home: Home, text: str, message: str) -> None:
    assert home.error(text).startswith(message)


def test_an_error_is_short_and_carries_the_file(home: Home) -> None:
    home.write(f"session.directory = {['x' * 10_000]}")
    with pytest.raises(ConfigError) as caught:
        home.load()
    assert caught.value.path == str(home.file)
    assert len(home.error(f"'{'x' * 10_000}' = 1")) < 200
    assert len(home.error(f"session.entries = '{'x' * 10_000}'")) < 300


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n# nothing\n",
        "[workspace]",
        "[workspace]\nroot = '/w'",
        "workspace = {}\nfiles = {}\nroles = {}\nsession = {}",
        "[roles]\n[roles.x]\ntools = []",
    ],
)
def test_a_file_with_less_in_it_is_read(home: Home, text: str) -> None:
    assert home.load(text).has_file


def known_statements() -> st.SearchStrategy[str]:
    """Lines about keys that exist, with values that may suit them."""
    names = st.sampled_from([".".join(path) for key in KEYS for path in key.paths])
    tables = st.sampled_from(["[session]", "[files]", "[roles.x]", "[[workspace.allow]]", "tools = ['a']"])
    values = st.one_of(VALUES, st.sampled_from(["5", "'ro'", "'none'", "'/a'", "['a']", "true"]))
    return st.one_of(tables, st.builds("{} = {}".format, st.one_of(names, NAMES), values), STATEMENTS)


@given(st.one_of(st.text(), st.lists(known_statements(), max_size=6).map("\n".join)))
def test_any_text_is_read_or_refused_with_its_file(text: str) -> None:
    refused = None
    file = ConfigFile(None)
    try:
        file = ConfigFile(Path("config.toml"), text, "/home/me")
    except ConfigError as error:
        refused = error.message
    assert refused is None or refused.startswith("config.toml:")
    for key in KEYS:
        _, origin = file.find(key) or (None, None)
        assert origin is None or 1 <= (origin.line or 0) <= text.count("\n") + 1


@given(st.binary())
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(data)
    refused = str(file)
    try:
        load({}, path=file)
    except ConfigError as error:
        refused = error.message
    assert str(file) in refused
