"""CONTRIBUTING.md agrees with the Makefile and the import contracts."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def test_every_target_of_make_is_documented() -> None:
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    documented = re.findall(r"`make ([a-z]+)[` ]", TEXT)
    assert set(targets) - {"help"} == set(documented)


def test_the_map_is_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    drawn = re.search(r"^```\n(fronts.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert drawn
    layers = [re.split(r"\s{2,}", line)[0] for line in drawn[1].splitlines()]
    assert layers == contracts[0]["layers"]


def test_the_layers_are_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "layers.md").read_text()
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = [name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in row.split(", ")]
    assert rows == [f"`{name}`" for layer in contracts[0]["layers"] for name in layer.split(" | ")]
