"""Read and parse a TOML document, reporting the line of the first error."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path

from carrel.config.kind import KeyPath

FILE_BYTES = 2**20
"""Maximum size of a file; a larger one is not a configuration file."""
_LONG_NUMBER = re.compile(rf"[0-9_]{{{sys.int_info.str_digits_check_threshold}}}")
"""A number that Python may refuse to convert."""


class UnreadableDocumentError(ValueError):
    """The document cannot be read; `line` is the line of the error, if known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        """Describe the *problem* as the end of a sentence that starts with the file name."""
        super().__init__(problem)
        self.line = line


def read_document(path: Path) -> str | None:
    """Return the text of the file; `None` if it does not exist.

    Raises:
        UnreadableDocumentError: The file cannot be read, is too large, or is not UTF-8 text.
    """
    try:
        data = _read(path)
        return data.decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableDocumentError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UnreadableDocumentError(
            "is not UTF-8 text", error.object.count(b"\n", 0, error.start) + 1
        ) from None
    except ValueError as error:
        raise UnreadableDocumentError(str(error)) from None


def _read(path: Path) -> bytes:
    # Opening a FIFO that has no writer would block.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise ValueError("is a directory")
        # /dev/null is accepted: it is the usual way to configure no file.
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
            raise ValueError("is not a regular file")
        data = b""
        while chunk := os.read(fd, FILE_BYTES):
            data += chunk
            if len(data) > FILE_BYTES:
                raise ValueError(f"is larger than {FILE_BYTES} bytes")
        return data
    finally:
        os.close(fd)


def parse_toml(text: str) -> dict[str, object]:
    """Parse *text* as TOML.

    Raises:
        UnreadableDocumentError: The text is not TOML, or exceeds what can be parsed.
    """
    if not text:
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, _, at = str(error).partition(" (at ")
        number = at.removeprefix("line ").partition(",")[0]
        line = int(number) if number.isdecimal() else text.count("\n") + 1
    except RecursionError:
        problem, line = "it is nested too deeply", None
    except ValueError:
        long = _LONG_NUMBER.search(text)
        problem, line = "a number is too long", text.count("\n", 0, long.start() if long else 0) + 1
    raise UnreadableDocumentError(f"is not TOML that can be read: {problem}", line)


def line_of(text: str, path: KeyPath) -> int:
    """Return the line of *path* in *text*, or of its nearest ancestor that has one."""
    from carrel.config.toml_lines import TomlLines

    return TomlLines(text).of(path)
