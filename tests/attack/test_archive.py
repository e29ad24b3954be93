"""Archives that climb, link, lie and explode (E42 to E49): refused as a whole, before anything is written."""

from __future__ import annotations

import encodings.cp437  # noqa: F401  # the codec is imported late, perhaps as a user who may not read it
import io
import os
import stat
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from carrel.errors import (
    ArchiveError,
    CarrelError,
    EscapeError,
    LimitError,
    NotRegularError,
    PathError,
)
from carrel.values import Limits
from carrel.workspace.archive.extract import extract
from carrel.workspace.extract_limits import ExtractLimits
from carrel.workspace.workspace import Workspace
from tests.attack.world import DOORS, RESOLVERS, MakeWorld, Outcome, Variant, World
from tests.workspace.archives import (
    Member,
    block,
    build,
    central,
    compress,
    deflated,
    deflated_zeros,
    directory,
    end_record,
    file,
    hard_link,
    link,
    patched,
    pax_block,
    raw_zip,
    reseal,
    tar,
    zipped,
)

pytestmark = pytest.mark.attack

MIB = 2**20
KEPT = "kept = old; sub/kept = old"


@dataclass(frozen=True, slots=True)
class Row:
    """One hostile archive; `escapes` says that a naive extraction of the tar leaves the directory."""

    name: str
    members: tuple[Member, ...]
    error: type[CarrelError]
    escapes: bool = False

    def __str__(self) -> str:
        return self.name


def out(name: str = "new") -> str:
    """A place outside, to be filled in."""
    return f"$OUT/{name}"


# E42: names

NAMES = [
    Row("E42 dotdot", (file("../x"),), EscapeError, escapes=True),
    Row("E42 absolute", (file(out()),), PathError, escapes=True),
    Row("E42 through", (directory("a"), file("a/../../x")), EscapeError, escapes=True),
    Row("E42 outside", (file("../outside/new"),), EscapeError, escapes=True),
    Row("E42 drive", (file("C:\\x"),), PathError),
    Row("E42 drive slash", (file("C:/x"),), PathError),
    Row("E42 drive after a dot", (file("./C:x"),), PathError),
    Row("E42 backslashes", (file("a\\..\\..\\x"),), EscapeError),
    Row("E42 backslash", (file("a\\x"),), PathError),
    Row("E42 backslash root", (file("\\x"),), PathError),
    Row("E42 unc", (file("\\\\host\\x"),), PathError),
    Row("E42 double slash", (file("//x"),), PathError),
    Row("E42 inside again", (file("a/../b"),), EscapeError),
    Row("E42 dotdot alone", (file(".."),), EscapeError),
    Row("E42 directory dotdot", (directory("../d"),), EscapeError, escapes=True),
    Row("E42 dot file", (file("."),), PathError),
    Row("E42 slash at the end", (file("f"), file("g/h/")), CarrelError),
    Row("E42 long name", (file("n" * 256),), PathError),
    Row("E42 long path", (file("/".join(["n" * 200] * 21)),), PathError),
    Row("E42 link named out", (link("../l", "x"),), EscapeError, escapes=True),
]

# E43, E45, E49: links

DEEP = "d" * 247
STEPS = "abcdefghijklmnop"


def nested(levels: int) -> list[Member]:
    """Directories with long names in each other, each beside a link to it with a short one."""
    places = ["/".join([DEEP] * level) for level in range(levels)]
    return [
        member
        for place, step in zip(places, STEPS, strict=False)
        for member in (directory(f"{place}/{DEEP}".lstrip("/")), link(f"{place}/{step}".lstrip("/"), DEEP))
    ]


LINKS = [
    Row("E43 link up", (link("l", ".."),), EscapeError),
    Row("E43 link far up", (link("a/l", "../../x"),), EscapeError),
    Row("E43 link absolute", (link("l", out("")),), EscapeError),
    Row("E43 link to root", (link("l", "/"),), EscapeError),
    Row("E43 link with a drive", (link("l", "C:x"),), PathError),
    Row("E43 link with backslashes", (link("l", "..\\..\\x"),), PathError),
    Row("E43 file through an outward link", (link("l", ".."), file("l/new")), EscapeError, escapes=True),
    Row("E43 file through an absolute link", (link("l", out("")), file("l/new")), EscapeError, escapes=True),
    Row("E43 file through an inward link", (directory("d"), link("l", "d"), file("l/new")), EscapeError),
    Row("E43 file first", (file("l/new"), link("l", "..")), CarrelError),
    Row("E43 link in place of a file", (link("l", out("new")), file("l")), CarrelError, escapes=True),
    Row("E43 file in place of a link", (file("l"), link("l", "f")), CarrelError),
    Row("E43 directory in place of a link", (link("l", ".."), directory("l"), file("l/x")), CarrelError),
    Row(
        "E43 links through links",
        (directory("a/b"), link("a/b/top", "../.."), link("out", "a/b/top/../x")),
        EscapeError,
    ),
    Row(
        "E43 links through links, in the other order",
        (link("out", "a/b/top/../x"), link("a/b/top", "../..")),
        EscapeError,
    ),
    Row(
        "E43 link through a link, text above the top",
        (link("deep", "a/b/c"), link("l", "deep/../../../x")),
        EscapeError,
    ),
    Row("E43 link that climbs after a name", (link("l", "a/../b"),), EscapeError),
    Row(
        "E45 the known one",
        (
            *nested(16),
            link("/".join([*STEPS, "l" * 254]), "../" * 16),
            link("escape", "/".join([*STEPS, "l" * 254]) + "/../../../etc"),
        ),
        EscapeError,
    ),
    Row(
        "E45 without members beyond links",
        (*nested(16), link("out", "/".join(STEPS) + "/.." * 17)),
        EscapeError,
    ),
    Row("E45 climbing less than it seems", (*nested(16), link("out", "a/b/.." + "/.." * 2)), EscapeError),
    Row("E49 link and file", (link("L", "kept"), file("l")), EscapeError),
    Row("E49 file and link", (file("L"), link("l", "kept")), EscapeError),
    Row("E49 directory and link", (directory("A"), link("a", "sub"), file("A/x")), EscapeError),
    Row("E49 link and implied directory", (link("A", "sub"), file("a/x")), EscapeError),
    Row("E49 in directories", (link("A/l", "x"), file("a/L")), EscapeError),
    Row("E49 normal form", (link("\u00e9", "kept"), file("e\u0301")), EscapeError),
    Row("E49 compatible form", (link("\ufb01le", "kept"), file("file")), EscapeError),
    Row("E49 sharp s", (link("stra\u00dfe", "kept"), file("STRASSE")), EscapeError),
    Row("E49 no width", (link("l\u200dink", "kept"), file("link")), EscapeError),
    Row("E49 twice", (file("f", b"one"), file("f", b"two")), ArchiveError),
    Row("E49 twice spelled", (file("a/f", b"one"), file("./a//f", b"two")), ArchiveError),
    Row("E49 file above a file", (file("f"), file("f/g")), ArchiveError),
    Row("E49 file in place of a directory", (file("d/f"), file("d")), ArchiveError),
]

# E48: kinds

KINDS = [
    Row("E48 FIFO", (Member("p", kind=stat.S_IFIFO),), NotRegularError),
    Row("E48 character device", (Member("c", kind=stat.S_IFCHR),), NotRegularError),
    Row("E48 block device", (Member("b", kind=stat.S_IFBLK),), NotRegularError),
]

ROWS = [*NAMES, *LINKS, *KINDS]
AROUND = (file("before", b"good"), directory("good/empty"), file("good/file", b"good"))
AFTER = (file("zz-after", b"good"),)


def filled(members: tuple[Member, ...], place: str) -> list[Member]:
    """The *members* with the real place outside in their names and texts."""
    return [
        Member(
            member.name.replace("$OUT", place),
            member.content,
            member.kind,
            member.target.replace("$OUT", place),
            member.mode,
        )
        for member in members
    ]


def refused(
    here: World, data: bytes, error: type[CarrelError], limits: ExtractLimits | None = None
) -> Outcome:
    """Try several ways to extract *data*; each must raise *error* and change nothing inside either."""
    before = here.contents()
    outcome = Outcome(frozenset())
    for target, overwrite in ((".", False), ("sub", True), ("new/place", False)):
        outcome = here.attempt(
            partial(extract, source=[data], path=target, overwrite=overwrite, limits=limits),
            str(here.out),
        )
        assert isinstance(outcome.error, error), str(outcome)
        assert here.contents() == before
        assert not changes(here)
    return outcome


def changes(here: World) -> list[str]:
    """What was made at any time, also if it was taken away again."""
    return [event.path for event in here.workspace.changes() if event.error is None]


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("form", ["tar", "tar.gz", "zip"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_hostile_member_refuses_the_whole_archive(
    row: Row, form: str, variant: Variant, world: MakeWorld
) -> None:
    """E42, E43, E45, E47, E48, E49: neither what comes before nor what comes after is written."""
    with world(KEPT, variant) as here:
        members = filled(row.members, str(here.out))
        refused(here, build(form, *AROUND, *members, *AFTER), row.error)
        refused(here, build(form, *members), row.error)


@pytest.mark.parametrize("variant", DOORS, ids=str)
@pytest.mark.parametrize("row", [row for row in ROWS if row.escapes], ids=str)
def test_a_hostile_member_is_refused_through_both_doors(row: Row, variant: Variant, world: MakeWorld) -> None:
    with world(KEPT, variant) as here:
        refused(here, build("tar", *filled(row.members, str(here.out))), row.error)


@pytest.mark.parametrize("row", [row for row in ROWS if row.escapes], ids=str)
def test_a_naive_extraction_of_the_same_archive_escapes(row: Row, tmp_path: Path) -> None:
    """What proves that the rows attack anything at all."""
    inside, outside = tmp_path / "top" / "in", tmp_path / "top" / "outside"
    inside.mkdir(parents=True)
    outside.mkdir()
    data = build("tar", *filled(row.members, str(outside)))
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        for member in opened:
            opened.extract(member, inside, filter="fully_trusted")
    assert [name for name in os.listdir(tmp_path / "top") if name not in ("in", "outside")] or os.listdir(
        outside
    )


# E44: hard links

HARD_LINKS = [
    ("absolute", (hard_link("h", "/etc/passwd"),), PathError),
    ("outside", (hard_link("h", "../outside/secret"),), EscapeError),
    ("to a link", (link("l", "kept"), hard_link("h", "l")), ArchiveError),
    ("to an outward link", (link("l", "../outside/secret"), hard_link("h", "l")), EscapeError),
    ("to nothing", (hard_link("h", "missing"),), ArchiveError),
    ("to what was there", (hard_link("h", "kept"),), ArchiveError),
    ("to a directory", (directory("d"), hard_link("h", "d")), ArchiveError),
    ("to a later member", (hard_link("h", "f"), file("f")), ArchiveError),
    ("to itself", (hard_link("h", "h"),), ArchiveError),
    ("through a link", (directory("d"), file("d/f"), link("l", "d"), hard_link("h", "l/f")), ArchiveError),
    ("named out", (file("f"), hard_link("../h", "f")), EscapeError),
    ("with a content", (file("f"), block("h", b"data", type=tarfile.LNKTYPE, linkname="f")), ArchiveError),
    ("backslash", (file("f"), hard_link("h", "..\\f")), EscapeError),
    ("empty", (hard_link("h", ""),), PathError),
]


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize(
    ("members", "error"),
    [row[1:] for row in HARD_LINKS],
    ids=[row[0] for row in HARD_LINKS],
)
def test_a_hard_link_leads_to_an_earlier_file_or_nowhere(
    members: tuple[Member | bytes, ...], error: type[CarrelError], variant: Variant, world: MakeWorld
) -> None:
    """E44."""
    with world(KEPT, variant) as here:
        refused(here, tar(*AROUND, *members), error)
        refused(here, compress(tar(*members), "tar.gz"), error)


def test_a_hard_link_becomes_a_copy_of_its_own(world: MakeWorld) -> None:
    """E44: so that nobody changes one file by the name of another."""
    with world("—", RESOLVERS[0]) as here:
        data = tar(file("f", b"text"), hard_link("h", "f"), hard_link("d/i", "./h"))
        outcome = here.attempt(lambda workspace: extract(workspace, [data]))
        assert outcome.ok, str(outcome)
        assert {(here.root / name).read_bytes() for name in ("f", "h", "d/i")} == {b"text"}
        assert {(here.root / name).stat().st_nlink for name in ("f", "h", "d/i")} == {1}


def test_many_hard_links_to_one_file_count_as_many_files(world: MakeWorld) -> None:
    """E44, E48: a small archive may not become a large tree this way either."""
    links = (hard_link(f"h{number}", "f") for number in range(1000))
    with world("—", RESOLVERS[0]) as here:
        refused(here, compress(tar(file("f", bytes(MIB)), *links), "tar.gz"), LimitError)


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_links_in_circles_and_links_to_long_paths_lead_nowhere(
    form: str, variant: Variant, world: MakeWorld
) -> None:
    """E45: what is not refused is harmless, because no path is ever expanded as text."""
    longest = "/".join(STEPS[:15])
    members = (
        *nested(15),
        link("self", "self"),
        link("one", "two"),
        link("two", "one"),
        *(link(f"chain{number}", f"chain{number + 1}") for number in range(60)),
        link("long", f"{longest}/{DEEP}/{DEEP}/{DEEP}"),
    )
    with world("—", variant) as here:
        outcome = here.attempt(lambda workspace: extract(workspace, [build(form, *members)]))
        assert outcome.ok, str(outcome)
        for path in ("self", "one", "two", "chain0", "long", f"long/{DEEP}"):
            for operation in (Workspace.read, Workspace.list, Workspace.stat):
                assert not here.try_path(operation, path).ok


# E46: attributes


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_nothing_is_applied_to_the_target_of_a_link(form: str, variant: Variant, world: MakeWorld) -> None:
    """E46."""
    with world(KEPT, variant) as here:
        before = (here.root / "kept").stat()
        members = (Member("l", kind=stat.S_IFLNK, target="kept", mode=0o7777), directory("sub"))
        outcome = here.attempt(lambda workspace: extract(workspace, [build(form, *members)]))
        assert outcome.ok, str(outcome)
        assert os.readlink(here.root / "l") == "kept"
        after = (here.root / "kept").stat()
        assert (after.st_mode, after.st_mtime_ns, after.st_uid) == (
            before.st_mode,
            before.st_mtime_ns,
            before.st_uid,
        )


@pytest.mark.parametrize("form", ["tar", "zip"])
def test_set_uid_sticky_and_owners_are_not_applied(form: str, world: MakeWorld) -> None:
    """E48."""
    with world("—", RESOLVERS[0]) as here:
        data = build(form, file("f", mode=0o7777), Member("d/", kind=stat.S_IFDIR, mode=0o7777))
        if form == "tar":
            data = tar(block("f", b"in", mode=0o7777, uid=0, gid=0, uname="root"), directory("d"))
        outcome = here.attempt(lambda workspace: extract(workspace, [data]))
        assert outcome.ok, str(outcome)
        for name in ("f", "d"):
            found = (here.root / name).stat()
            assert not found.st_mode & 0o7000
            assert found.st_uid == here.root.stat().st_uid


# What is there already


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_no_member_goes_through_a_link_that_was_there(form: str, variant: Variant, world: MakeWorld) -> None:
    with world("d/; in => d; out => ../outside; file => d/f; new/in => ../d", variant) as here:
        for name in ("in/f", "out/new", "out", "in", "file"):
            refused_there(here, build(form, file("first"), file(name)))
        refused_there(here, build(form, directory("in")))
        refused_there(here, build(form, directory("out")))


def refused_there(here: World, data: bytes) -> None:
    before = here.contents()
    for overwrite in (False, True):
        outcome = here.attempt(partial(extract, source=[data], overwrite=overwrite))
        assert isinstance(outcome.error, FileExistsError), str(outcome)
        assert here.contents() == before


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("target", ["out", "out/new", "..", "../outside", "$OUT", "/etc", "a/../../x"])
def test_the_directory_itself_cannot_lie_outside(target: str, variant: Variant, world: MakeWorld) -> None:
    with world("out => ../outside", variant) as here:
        data = tar(file("new"))
        outcome = here.try_path(
            lambda workspace, path: extract(workspace, [data], path), here.fill(target), here.fill(target)
        )
        assert isinstance(outcome.error, PathError | OSError), str(outcome)
        assert here.contents() == here.expected("out => ../outside")


# E48: numbers that lie, in tar archives


def negative_size() -> bytes:
    header = bytearray(block("f", b""))
    header[124:136] = b"\xff" * 12
    return reseal(bytes(header))


TAR_LIES: list[tuple[str, bytes, type[CarrelError]]] = [
    ("negative size", tar(negative_size()), ArchiveError),
    (
        "very negative size",
        tar(reseal(block("f")[:124] + b"\xff" + bytes(11) + block("f")[136:])),
        ArchiveError,
    ),
    (
        "negative size in octal",
        tar(reseal(block("f")[:124] + b"-0000000512\0" + block("f")[136:])),
        ArchiveError,
    ),
    ("negative pax size", tar(pax_block(b"12 size=-10\n"), block("f")), ArchiveError),
    ("pax size that is no number", tar(pax_block(b"13 size=1_00\n"), block("f")), ArchiveError),
    ("size beyond the end", tar(block("f", size=10_000)), ArchiveError),
    ("size of 2**90", tar(reseal(block("f")[:124] + b"\x80" + b"\xff" * 11 + block("f")[136:])), LimitError),
    ("directory with a content", tar(block("d", b"x" * 512, type=tarfile.DIRTYPE)), ArchiveError),
    ("link with a content", tar(block("l", b"x", type=tarfile.SYMTYPE, linkname="f")), ArchiveError),
    ("GNU sparse", tar(block("s", type=tarfile.GNUTYPE_SPARSE)), ArchiveError),
    ("pax sparse", tar(pax_block(b"22 GNU.sparse.major=1\n"), block("s")), ArchiveError),
    ("pax sparse name", tar(pax_block(b"23 GNU.sparse.name=../x\n"), block("s")), ArchiveError),
    ("pax path out", tar(block("f", b"in", pax={"path": "../x"})), EscapeError),
    (
        "pax link out",
        tar(block("l", type=tarfile.SYMTYPE, linkname="f", pax={"linkpath": "../x"})),
        EscapeError,
    ),
    ("pax path with a NUL", tar(pax_block(b"12 path=a\0b\n"), block("f")), PathError),
    ("global path", tar(pax_block(b"11 path=../\n", tarfile.XGLTYPE), block("f")), ArchiveError),
    ("global size", tar(pax_block(b"9 size=1\n", tarfile.XGLTYPE), block("f")), ArchiveError),
    ("two pax headers", tar(pax_block(b"9 path=a\n"), pax_block(b"9 path=b\n"), block("f")), ArchiveError),
    ("pax header for nobody", tar(pax_block(b"9 path=a\n")), ArchiveError),
    ("pax record too long", tar(pax_block(b"99 path=a\n"), block("f")), ArchiveError),
    ("pax record of length 0", tar(pax_block(b"0 path=a\n"), block("f")), ArchiveError),
    ("pax record of length 1", tar(pax_block(b"1 path=a\n"), block("f")), ArchiveError),
    ("pax record without a number", tar(pax_block(b"path=a\n"), block("f")), ArchiveError),
    ("pax record without a value", tar(pax_block(b"7 path\n"), block("f")), ArchiveError),
    ("pax record without an end", tar(pax_block(b"9 path=a "), block("f")), ArchiveError),
    ("long name out", tar(block("x" * 120 + "/../../../../x", b"in")), EscapeError),
    ("volume of several", tar(block("f", type=b"M")), ArchiveError),
    ("unknown kind", tar(block("f", type=b"Z")), ArchiveError),
    ("bad checksum", tar(block("f")).replace(b"0000644", b"0000755"), ArchiveError),
    ("second archive behind the end", tar(file("a")) + tar(file("b")), ArchiveError),
    ("padding without end", tar(file("a")) + bytes(2 * MIB), ArchiveError),
    ("no end", tar(file("a"))[:-1024], ArchiveError),
    ("cut in a header", tar(file("a"))[:-1324], ArchiveError),
    ("cut in a content", tar(file("a", bytes(2000)))[:1024], ArchiveError),
    ("nothing", b"", ArchiveError),
    ("text", b"this is not an archive\n" * 100, ArchiveError),
    ("short text", b"no", ArchiveError),
]


@pytest.mark.parametrize(("data", "error"), [row[1:] for row in TAR_LIES], ids=[row[0] for row in TAR_LIES])
def test_a_tar_archive_that_lies_is_refused(data: bytes, error: type[CarrelError], world: MakeWorld) -> None:
    """E48."""
    with world(KEPT, RESOLVERS[0]) as here:
        refused(here, data, error)
        if data:
            refused(here, compress(data, "tar.gz"), error)


@pytest.mark.parametrize("form", ["tar.gz", "tar.bz2", "tar.xz"])
def test_a_compressed_archive_that_is_cut_or_goes_on_is_refused(form: str, world: MakeWorld) -> None:
    data = compress(tar(file("f", os.urandom(5000))), form)
    with world(KEPT, RESOLVERS[0]) as here:
        for cut in (3, len(data) // 2, len(data) - 1):
            refused(here, data[:cut], ArchiveError)
        refused(here, data + b"more", ArchiveError)
        refused(here, data + data, ArchiveError)
        refused(here, data[:30] + bytes(8) + data[38:], ArchiveError)


def test_an_archive_in_compressed_layers_is_not_unwrapped(world: MakeWorld) -> None:
    """E48: one layer is read; what is in it is no archive but a file."""
    inner = compress(tar(file("f")), "tar.gz")
    with world(KEPT, RESOLVERS[0]) as here:
        refused(here, compress(inner, "tar.gz"), ArchiveError)
        outcome = here.attempt(lambda workspace: extract(workspace, [tar(file("inner.tar.gz", inner))]))
        assert outcome.ok, str(outcome)
        assert (here.root / "inner.tar.gz").read_bytes() == inner


# E48: numbers that lie, in zip archives

ONE = zipped(file("name", b"content" * 100))
TWO = zipped(file("a", b"content" * 100), file("b", b"content" * 100))
STORED = zipped(file("name", b"content"), method=zipfile.ZIP_STORED)
ROW = central(ONE)
DATA = zlib.crc32(b"data")


def second_row_at_first(data: bytes) -> bytes:
    """Both rows of the central directory speak of the same bytes, as bombs of overlapping files do."""
    row = data.rindex(b"PK\1\2")
    renamed = patched(data, row + 42, "<L", 0)
    return renamed[: row + 46] + b"a" + renamed[row + 47 :]


def overlapping() -> bytes:
    """The second member begins inside the content of the first."""
    inner = zipped(file("in", b"data"), method=zipfile.ZIP_STORED)
    outer = zipped(file("out", inner), file("in", b"data"), method=zipfile.ZIP_STORED)
    return patched(outer, outer.rindex(b"PK\1\2") + 42, "<L", 30 + len("out"))


def extra_field(data: bytes, *values: int) -> bytes:
    """The only row with numbers that are too large for their fields, and wide ones in an extra field."""
    extra = struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values)
    row, end = central(data), end_record(data)
    changed = patched(data, row + 20, "<2L", 2**32 - 1, 2**32 - 1)
    changed = patched(changed, row + 30, "<H", len(extra))
    changed = changed[:end] + extra + changed[end:]
    end += len(extra)
    return patched(changed, end + 12, "<L", end - row)


def wide_end(data: bytes, *, members: int = 1, offset: int | None = None, length: int = 44) -> bytes:
    """The same archive with an end record of wide numbers beside the narrow one."""
    at, rows = end_record(data), central(data)
    wide = struct.pack("<4sQ2H2L4Q", b"PK\6\6", length, 45, 45, 0, 0, members, members, at - rows, rows)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at if offset is None else offset, 1)
    return data[:at] + wide + locator + data[at:]


def test_an_end_record_of_wide_numbers_that_agrees_is_fine(world: MakeWorld) -> None:
    with world("—", RESOLVERS[0]) as here:
        outcome = here.attempt(lambda workspace: extract(workspace, [wide_end(ONE)]))
        assert outcome.ok, str(outcome)
        assert (here.root / "name").read_bytes() == b"content" * 100


ZIP_LIES: list[tuple[str, bytes, type[CarrelError]]] = [
    ("encrypted", patched(patched(ONE, ROW + 8, "<H", 1), 6, "<H", 1), ArchiveError),
    ("encrypted in the row only", patched(ONE, ROW + 8, "<H", 1), ArchiveError),
    ("encrypted in its header only", patched(ONE, 6, "<H", 1), ArchiveError),
    ("strongly encrypted", patched(ONE, ROW + 8, "<H", 0x41), ArchiveError),
    ("other name in its header", ONE[:30] + b"nome" + ONE[34:], ArchiveError),
    ("name out in its header", ONE[:30] + b"../x" + ONE[34:], ArchiveError),
    ("name out in the row", ONE[: ROW + 46] + b"../x" + ONE[ROW + 50 :], CarrelError),
    ("other method in its header", patched(ONE, 8, "<H", 0), ArchiveError),
    ("unknown method", patched(patched(ONE, ROW + 10, "<H", 99), 8, "<H", 99), ArchiveError),
    ("other size in its header", patched(ONE, 22, "<L", 5), ArchiveError),
    ("smaller than it is", patched(patched(ONE, ROW + 24, "<L", 5), 22, "<L", 5), ArchiveError),
    ("larger than it is", patched(patched(ONE, ROW + 24, "<L", 9999), 22, "<L", 9999), ArchiveError),
    ("other checksum", patched(patched(ONE, ROW + 16, "<L", 5), 14, "<L", 5), ArchiveError),
    ("stored with two sizes", patched(STORED, central(STORED) + 24, "<L", 5), ArchiveError),
    ("broken content", ONE[:40] + b"\xff\xff" + ONE[42:], ArchiveError),
    ("header elsewhere", patched(ONE, ROW + 42, "<L", 5), ArchiveError),
    ("header beyond the end", patched(ONE, ROW + 42, "<L", 2**31), ArchiveError),
    ("content beyond the end", patched(ONE, ROW + 20, "<L", 2**31), ArchiveError),
    ("two rows of one member", second_row_at_first(TWO), CarrelError),
    ("overlapping members", overlapping(), ArchiveError),
    ("wide numbers missing", extra_field(ONE), ArchiveError),
    ("wide numbers that are huge", extra_field(ONE, 2**63, 2**63), ArchiveError),
    ("rows that are not there", patched(ONE, end_record(ONE) + 8, "<2H", 2, 2), ArchiveError),
    ("rows that are not counted", patched(TWO, end_record(TWO) + 8, "<2H", 1, 1), ArchiveError),
    ("directory elsewhere", patched(ONE, end_record(ONE) + 16, "<L", 5), ArchiveError),
    ("directory too large", patched(ONE, end_record(ONE) + 12, "<L", 2**31), ArchiveError),
    ("several parts", patched(ONE, end_record(ONE) + 4, "<2H", 1, 1), ArchiveError),
    ("something before it", b"#!/bin/sh\n" + ONE, ArchiveError),
    ("something behind it", ONE + b"more", ArchiveError),
    ("two archives", ONE + TWO, ArchiveError),
    ("cut in the end record", ONE[:-5], ArchiveError),
    ("cut in the rows", ONE[: ROW + 10], ArchiveError),
    ("cut in a content", ONE[:40], ArchiveError),
    (
        "name that is not UTF-8",
        raw_zip(b"\xff\xfe", b"", size=0, checksum=0, method=0, flags=0x800),
        ArchiveError,
    ),
    ("goes on after its end", raw_zip(b"f", deflated(b"") + b"junk", size=0, checksum=0), ArchiveError),
    ("ends before its end", raw_zip(b"f", deflated(b"data")[:-1], size=4, checksum=DATA), ArchiveError),
    ("reaches into the rows", raw_zip(b"f", b"", size=9, checksum=0, method=0, claimed=9), ArchiveError),
    ("wide numbers cut off", extra_field(ONE, 1, 2).replace(b"\1\0\x10\0", b"\1\0\x11\0"), ArchiveError),
    ("end records that differ", wide_end(ONE, members=2), ArchiveError),
    ("wide end record elsewhere", wide_end(ONE, offset=5), ArchiveError),
    ("wide end record too long", wide_end(ONE, length=45), ArchiveError),
    ("name with a NUL", ONE.replace(b"name", b"na\0e"), PathError),
    ("no name", zipped(file("")), PathError),
    ("link text too long", zipped(link("l", "x" * 5000)), ArchiveError),
    ("directory with a content", zipped(file("d/", b"data")), ArchiveError),
]


@pytest.mark.parametrize(("data", "error"), [row[1:] for row in ZIP_LIES], ids=[row[0] for row in ZIP_LIES])
def test_a_zip_archive_that_lies_is_refused(data: bytes, error: type[CarrelError], world: MakeWorld) -> None:
    """E48."""
    with world(KEPT, RESOLVERS[0]) as here:
        before = here.contents()
        outcome = here.attempt(lambda workspace: extract(workspace, [data], format="zip"))
        assert isinstance(outcome.error, error), str(outcome)
        assert here.contents() == before
        assert not changes(here)
        refused(here, data, CarrelError)


# E48: bombs


GIGA = 8 * 1024
"""Mebibytes in a bomb that nobody can expand in time."""


def gzip_bomb(*heads: bytes) -> bytes:
    """*heads* and then zeros without end, as gzip."""
    engine = zlib.compressobj(wbits=-15)
    head = engine.compress(b"".join(heads)) + engine.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08" + bytes(7) + head + deflated_zeros(GIGA)


def zip_bomb(size: int) -> bytes:
    """A member that is as large as said, or larger."""
    return raw_zip(b"bomb", deflated_zeros(GIGA), size=size, checksum=0)


def extract_bounded(
    workspace: Workspace, data: bytes, limits: ExtractLimits | None = None
) -> tuple[object, int]:
    """Extract *data*, and count the memory that it takes at most."""
    tracemalloc.start()
    try:
        return extract(workspace, [data], limits=limits), 0
    except CarrelError as error:
        return error, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ROOMY = Limits(file_bytes=None)
BOUNDED = ExtractLimits(header_bytes=MIB)
BOMBS: dict[str, Callable[[], bytes]] = {
    "one file": lambda: gzip_bomb(block("f", size=GIGA * MIB)),
    "one file that claims little": lambda: gzip_bomb(block("f", size=512)),
    "nothing but padding": gzip_bomb,
    "padding behind the end": lambda: gzip_bomb(tar(file("f"))),
    "a header": lambda: gzip_bomb(block("x", size=GIGA * MIB, type=tarfile.XHDTYPE)),
    "a name": lambda: gzip_bomb(block("x", size=GIGA * MIB, type=tarfile.GNUTYPE_LONGNAME)),
    "bzip2": lambda: compress(tar(file("f", bytes(64 * MIB))), "tar.bz2"),
    "zip": lambda: zip_bomb(2**32 - 2),
    "zip that claims little": lambda: zip_bomb(5),
    "zip with many links": lambda: zipped(*(link(f"{n}", "/".join(["x" * 99] * 40)) for n in range(400))),
}


@pytest.mark.parametrize("bomb", BOMBS, ids=str)
def test_a_bomb_is_refused_in_little_time_and_memory(bomb: str, world: MakeWorld) -> None:
    """E48: also where the workspace itself would allow files of any size."""
    data = BOMBS[bomb]()
    with world(KEPT, RESOLVERS[0], ROOMY) as here:
        before = here.contents()
        outcome = here.attempt(lambda workspace: extract_bounded(workspace, data, BOUNDED))
        assert isinstance(outcome.value, tuple), str(outcome)
        error, memory = outcome.value
        assert isinstance(error, LimitError | ArchiveError)
        assert memory < 24 * MIB
        assert here.contents() == before


def test_an_archive_that_is_as_large_as_it_says_but_too_large_is_refused(world: MakeWorld) -> None:
    limits = ExtractLimits(extracted_bytes=MIB, ratio=None)
    with world(KEPT, RESOLVERS[0]) as here:
        for form in ("tar", "tar.gz", "zip"):
            data = build(form, file("f", bytes(MIB)), file("g", b"x"))
            assert isinstance(refused(here, data, LimitError, limits).error, LimitError)


def test_headers_and_padding_count_to_what_a_compressed_archive_expands_to(world: MakeWorld) -> None:
    """E48: whatever it is that a small archive expands to."""
    limits = ExtractLimits(extracted_bytes=MIB, ratio=None)
    data = tar(*(file(f"f{number}", b"") for number in range(3000)))
    with world(KEPT, RESOLVERS[0]) as here:
        error = refused(here, compress(data, "tar.gz"), LimitError, limits).error
        assert isinstance(error, LimitError)
        assert error.code == "limit.extracted_bytes"


def test_many_members_are_counted_before_they_are_written(world: MakeWorld) -> None:
    """E48: files, directories that are named again and again, headers for all, and implied directories."""
    limits = ExtractLimits(members=100)
    many = [
        tar(*(file(f"f{number}") for number in range(101))),
        tar(*([directory("d")] * 101)),
        tar(*([directory("./")] * 101)),
        tar(*([pax_block(b"12 comment=\n", tarfile.XGLTYPE)] * 101)),
        tar(*([block("label", type=b"V")] * 101)),
        tar(file("/".join(f"d{number}" for number in range(60))), file("/".join(["e"] * 60))),
        zipped(*(file(f"f{number}") for number in range(101))),
        compress(block("d", type=tarfile.DIRTYPE) * 50_000, "tar.gz"),
    ]
    with world("—", RESOLVERS[0]) as here:
        for data in many:
            error = refused(here, data, LimitError, limits).error
            assert isinstance(error, CarrelError)
            assert error.code == "limit.archive_members"


def test_a_zip_archive_that_announces_a_million_members_is_not_listed(world: MakeWorld) -> None:
    """E48."""
    data = wide_end(ONE, members=10**6)
    data = patched(data, end_record(data) + 8, "<2H", 0xFFFF, 0xFFFF)
    with world("—", RESOLVERS[0]) as here:
        refused(here, data, LimitError)


def test_headers_are_counted(world: MakeWorld) -> None:
    """E48: what is said about members is kept in memory, so it is bounded too."""
    limits = ExtractLimits(header_bytes=10_000)
    name = "n" * 200
    many = [
        tar(pax_block(b"20011 comment=" + b"x" * 19_996 + b"\n"), file("f")),
        tar(*(file(f"{name}{number}") for number in range(60))),
        tar(*(link(f"{number}", name) for number in range(60))),
        zipped(*(file(f"{name}{number}") for number in range(60))),
        b"".join([compress(tar(), "tar.gz")] * 30),
        raw_zip(b"f", b"", size=0, checksum=0, method=0, comment=b"x" * 20_000),
        raw_zip(b"f", b"", size=0, checksum=0, method=0, extra=b"\2\0\0\0" * 5_000),
        raw_zip(b"f", b"", size=0, checksum=0, method=0, local_extra=b"\2\0\0\0" * 5_000),
    ]
    with world("—", RESOLVERS[0]) as here:
        for data in many:
            error = refused(here, data, LimitError, limits).error
            assert isinstance(error, CarrelError)
            assert error.code == "limit.archive_headers"


def test_the_archive_itself_is_taken_in_only_to_its_limit(world: MakeWorld) -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += MIB
            yield bytes(MIB)

    limits = ExtractLimits(archive_bytes=3 * MIB)
    with world("—", RESOLVERS[0]) as here:
        outcome = here.attempt(lambda workspace: extract(workspace, endless(), limits=limits))
        assert isinstance(outcome.error, LimitError), str(outcome)
        assert outcome.error.code == "limit.archive_bytes"
        assert taken == 4 * MIB
        assert here.contents() == {}


def test_what_is_too_large_for_the_workspace_is_not_even_expanded(world: MakeWorld) -> None:
    limits = ExtractLimits(extracted_bytes=None, ratio=None)
    with world("—", RESOLVERS[0]) as here:
        for data in (gzip_bomb(block("f", size=GIGA * MIB)), zip_bomb(2**32 - 2)):
            outcome = here.attempt(partial(extract, source=[data], limits=limits))
            assert isinstance(outcome.error, LimitError), str(outcome)
            assert outcome.error.code == "limit.file_bytes"


def test_what_is_too_large_or_too_deep_for_the_workspace_is_refused_first(world: MakeWorld) -> None:
    with world("—", RESOLVERS[0], Limits(file_bytes=100, depth=3)) as here:
        for form in ("tar", "zip"):
            refused(here, build(form, file("first"), file("large", bytes(101))), LimitError)
            refused(here, build(form, file("first"), file("a/b/c/d")), LimitError)
            refused(here, build(form, file("first"), link("a/b/c/l", "x")), LimitError)
            refused(here, build(form, file("first"), directory("a/b/c/d")), LimitError)
