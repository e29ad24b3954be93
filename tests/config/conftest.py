"""A home directory with a configuration file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.config.settings import Settings
from carrel.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Home:
    """A home directory; nothing of the real environment counts."""

    path: Path

    @property
    def file(self) -> Path:
        return self.path / ".config" / "carrel" / "config.toml"

    def write(self, text: str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text, encoding="utf-8")

    def environ(self, **variables: str) -> dict[str, str]:
        return {"HOME": str(self.path), **variables}

    def load(self, text: str | None = None, **variables: str) -> Settings:
        """What is in force with *text* as the file."""
        if text is not None:
            self.write(text)
        return load(self.environ(**variables))

    def error(self, text: str | None = None, **variables: str) -> str:
        """What is wrong with *text* as the file, with the place of the file taken out."""
        with pytest.raises(ConfigError) as caught:
            self.load(text, **variables)
        assert caught.value.code == "config.invalid"
        return caught.value.message.replace(str(self.file), "FILE")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = tmp_path / "home"
    made.mkdir()
    return Home(made)
