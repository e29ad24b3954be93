"""The page about the results of the benchmarks; the same results always give the same page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bench import _fresh
from bench._aims import CLOSE, MET, MISSED, UNMEASURED
from bench._areas import AREAS, Area
from bench._fresh import Fresh
from bench._jobs import JOBS, Job, bare_name, ways
from bench._markdown import image, table
from bench._plots import SUMMARY, Plot, plots
from bench._results import Result
from bench._rows import OURS, Row, amount

EVEN = 1.05
"""Ratios up to this count as even."""
SAME = "even"
WORDS = {
    MISSED: "**missed**",
    CLOSE: "missed by less than 5 %",
    UNMEASURED: "not measured",
    MET: "met",
}
TIMES = "\N{MULTIPLICATION SIGN}"
INTRODUCTION = """
`make bench` runs all benchmarks, side by side with the alternatives that they are compared with, and
writes this page. `bench/README.md` says how each figure is measured, and what it does not include.
"""
READING = f"""
`ours` is carrel. Only ratios are meaningful: both sides of each were measured in the same minutes, taking
turns, so that other load on the machine affects both. "2.0{TIMES} quicker than `x`" means that `x` takes
2.0 times the time of carrel, "2.0{TIMES} slower" that carrel takes 2.0 times the time of `x`, and "even"
that they differ by less than 5 %, which may be noise. In the plots a bar points to the right where carrel
is quicker and to the left where it is slower; each grid line is a factor of ten.

Short operations are compared by their best batch (`best`), because other batches were slowed down by other
work; calls are compared by their median. Where `best` and `median` differ much, the machine or its disk was
busy. The value of confinement, and features that the alternatives lack, are not measured.
"""
LOAD = """
Load is the mean number of runnable processes in the minute before a benchmark started, and in its last
minute, including its own. A load above the number of cores means that other work was running.
"""
ENGINE = """
This needs a Docker engine with the image of the tests: `scripts/engine start DIRECTORY`, as root, starts
one and prints its address; `scripts/engine stop DIRECTORY` stops it.
"""


def render(results: Mapping[str, Result], fresh: Fresh) -> str:
    """The page as Markdown."""
    drawn = {plot.name: plot for plot in plots(results)}
    parts = [
        "# Benchmarks",
        "<!-- Made by `make bench` from bench/results.json and bench/fresh.json; do not edit. -->",
        INTRODUCTION,
        _occasion(results),
        "## Summary",
        _summary(results),
        _image(drawn.get(SUMMARY)),
        "## How to read the figures",
        READING,
        "## Aims",
        _aims(results),
        "## Environment",
        _machine(results),
        *(part for area in AREAS for part in _area(area, results.get(area.name), drawn.get(area.name))),
        "## A fresh machine",
        *_fresh.render(fresh),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _occasion(results: Mapping[str, Result]) -> str:
    measured = _measured(results)
    if not measured:
        return ""
    dates = ", ".join(sorted({result.date for result in measured}))
    loads = [result.machine[when] for result in measured for when in ("load_before", "load_after")]
    verdicts = Counter(aim.verdict for result in measured for aim in result.aims)
    return (
        f"[Measured](#environment) on {dates} on {_values(measured, 'cores')} cores,"
        f" with a load between {min(loads):.1f} and {max(loads):.1f}."
        f" Of {verdicts.total()} [aims](#aims), {verdicts[MET]} are met."
    )


def _measured(results: Mapping[str, Result]) -> list[Result]:
    return [result for result in results.values() if not result.unmeasured]


# The first table


def _summary(results: Mapping[str, Result]) -> str:
    rows = [_line(job, job.row(results)) for job in JOBS]
    return table(
        (
            "job",
            "carrel",
            "compared with unconfined",
            "compared with alternatives",
            "details",
        ),
        rows,
    )


def _line(job: Job, row: Row | None) -> tuple[str, ...]:
    title = next(area.title for area in AREAS if area.name == job.area)
    where = f"[{job.area}](#{title.lower().replace(' ', '-')})"
    if row is None:
        return job.name, "not measured", "", "", where
    return (
        job.name,
        amount(row.figures[OURS].decisive, row.unit),
        _against(row, job.unconfined),
        _against(row, job.others),
        where,
    )


def _against(row: Row, beginnings: tuple[str, ...]) -> str:
    return "<br>".join(
        f"{_compared(row, way)} `{bare_name(way)}`"
        if way in row.figures
        else f"`{bare_name(way)}` was not measured"
        for way in ways(row, beginnings)
    )


# Words


def _compared(row: Row, way: str) -> str:
    found = stands(row, way)
    return f"{found} {'with' if found == SAME else 'than'}"


def stands(row: Row, way: str) -> str:
    """How ours compares with *way*, in words."""
    ratio = row.ratio(way)
    if 1 / EVEN <= ratio <= EVEN:
        return SAME
    less, more = ("quicker", "slower") if row.is_time else ("less", "more")
    return f"{times(1 / ratio)} {less}" if ratio < 1 else f"{times(ratio)} {more}"


def times(ratio: float) -> str:
    """A ratio of 1 or more, no more exact than it is."""
    return f"{ratio:,.0f}{TIMES}" if ratio >= 9.95 else f"{ratio:.1f}{TIMES}"


# The aims


def _aims(results: Mapping[str, Result]) -> str:
    aims = [(area.name, aim) for area in AREAS if area.name in results for aim in results[area.name].aims]
    count = Counter(aim.verdict for _, aim in aims)
    text = f"Aims: {len(aims)}. Met: {count[MET]}. Missed: {count[MISSED]}."
    if count[CLOSE]:
        text += f" Missed by less than 5 %: {count[CLOSE]}."
    if count[UNMEASURED]:
        text += f" Not measured: {count[UNMEASURED]}."
    if left_out := [area.name for area in AREAS if area.name not in results or results[area.name].unmeasured]:
        text += f" Those of {', '.join(left_out)} were not measured."
    worst_first = sorted(aims, key=lambda each: list(WORDS).index(each[1].verdict))
    rows = [(area, aim.text, WORDS[aim.verdict], aim.found) for area, aim in worst_first]
    return f"{text}\n\n{table(('area', 'aim', 'in this run', 'result'), rows)}"


# The machine


def _machine(results: Mapping[str, Result]) -> str:
    measured = _measured(results)
    if not measured:
        return "Nothing was measured."
    about = {
        "processor": _values(measured, "processor"),
        "cores": _values(measured, "cores"),
        "memory": f"{_values(measured, 'memory_gib')} GiB",
        "kernel": _values(measured, "kernel"),
        "file system": _values(measured, "file_system"),
        "Python": _values(measured, "python"),
    }
    versions = {name: version for result in measured for name, version in result.versions.items()}
    ordered = sorted(versions.items(), key=lambda each: (each[0] != "carrel", each[0]))
    return "\n\n".join(
        (
            table(("machine", ""), list(about.items())),
            table(("versions", ""), ordered),
            LOAD.strip(),
            table(
                ("benchmark", "date", "run", "duration", "load before", "load after"),
                [_run(area.name, results.get(area.name)) for area in AREAS],
            ),
        )
    )


def _run(name: str, result: Result | None) -> tuple[str, ...]:
    if result is None:
        return name, "", "never", "", "", ""
    if result.unmeasured:
        return name, result.date, "not measured", "", "", ""
    return (
        name,
        result.date,
        "quick: small counts, rough ratios" if result.quick else "full",
        f"{result.seconds:,.0f} s",
        f"{result.machine['load_before']:.1f}",
        f"{result.machine['load_after']:.1f}",
    )


def _values(results: Sequence[Result], name: str) -> str:
    return ", ".join(dict.fromkeys(str(result.machine[name]) for result in results))


# One benchmark


def _area(area: Area, result: Result | None, plot: Plot | None) -> Iterator[str]:
    yield f"## {area.title}"
    yield area.about
    in_containers = area.name == "containers"
    if in_containers:
        yield ENGINE
    quick = " --quick" if result is not None and result.quick else ""
    variable = "CARREL_TEST_ENGINE=ADDRESS " if in_containers else ""
    yield f"Every figure below was measured by\n\n    {variable}.venv/bin/python -m bench.{area.name}{quick}"
    if result is None or result.unmeasured:
        yield f"**Not measured**: {result.unmeasured if result else 'it was never run'}"
        return
    yield _image(plot)
    yield _details(result.rows)


def _details(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        title = (row.operation, row.detail)
        for way, figure in row.figures.items():
            numbers = (amount(value, row.unit) for value in (figure.best, figure.median, figure.p99))
            per_second = "" if figure.per_second is None else f"{figure.per_second:,.0f}"
            ratio = "" if way == OURS else stands(row, way)
            lines.append((*title, way, *numbers, per_second, ratio))
            title = ("", "")
        lines += [("", "", way, f"not measured: {why}", "", "", "", "") for way, why in row.missing.items()]
    columns = ("operation", "at", "way", "best", "median", "p99", "a second", "ours is")
    used = [
        number
        for number, name in enumerate(columns)
        if name in columns[:3] or any(line[number] for line in lines)
    ]
    return table([columns[number] for number in used], [[line[number] for number in used] for line in lines])


def _image(plot: Plot | None) -> str:
    return (
        image(f"{plot.title}: speed of carrel relative to the alternatives", f"images/{plot.file}")
        if plot
        else ""
    )
