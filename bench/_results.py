"""The results of the benchmarks, stored in a file so that the page can be regenerated without measuring."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench._aims import Aim
from bench._rows import Figure, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one benchmark."""

    date: str
    quick: bool
    seconds: float
    """How long it took, with everything that it had to make first."""
    unmeasured: str = ""
    """Why it found nothing; empty if it did."""
    machine: Mapping[str, Any] = field(default_factory=dict)  # Any: text and numbers
    versions: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    aims: Sequence[Aim] = ()


def parse(plain: Mapping[str, Any]) -> Result:  # Any: any JSON value
    """The result that plain values tell."""
    rows = tuple(
        Row(
            row["operation"],
            row["detail"],
            {way: Figure(**figure) for way, figure in row["figures"].items()},
            row["missing"],
            row["unit"],
        )
        for row in plain.get("rows", ())
    )
    aims = tuple(Aim(**aim) for aim in plain.get("aims", ()))
    return Result(**{**plain, "rows": rows, "aims": aims})


def load(file: Path) -> dict[str, Result]:
    """The results in *file*, by the names of the benchmarks; none if there is no such file."""
    if not file.exists():
        return {}
    return {name: parse(plain) for name, plain in json.loads(file.read_text("utf-8")).items()}


def save(file: Path, results: Mapping[str, Result]) -> None:
    """Write *results* to *file*, no number more exact than it was measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    plain = {name: _plain(asdict(result)) for name, result in results.items()}
    file.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _plain(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
