"""Random trees, paths and operations, from few names so that they meet often."""

from __future__ import annotations

from hypothesis import strategies as st

from carrel.fs.api import Existing, Links, Parents
from carrel.values import Limits
from tests.contract import operations as ops
from tests.contract.operations import Operation

NAMES = ("a", "b", "c")
MODES = (None, 0o600, 0o444, 0o755, 0o4777)

names = st.sampled_from(NAMES)
parts = st.sampled_from((*NAMES, *NAMES, *NAMES, "..", "..", ".", "", "é"))
contents = st.sampled_from((b"", b"x", b"hello\n", b"\xff\x00"))
existing = st.sampled_from(Existing)
parents = st.sampled_from(Parents)
ceilings = st.none() | st.integers(0, 6)


plain_paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@st.composite
def odd_paths(draw: st.DrawFn) -> str:
    """What a caller may write: names, dots, empty parts, both slashes, perhaps a slash at the end."""
    chosen = draw(st.lists(parts, min_size=1, max_size=5))
    text = chosen[0]
    for part in chosen[1:]:
        text += draw(st.sampled_from("////\\")) + part
    text += draw(st.sampled_from(("", "", "", "", "/", "/.", "//", "/..")))
    return text.lstrip("/\\") or "."


paths = plain_paths | plain_paths | odd_paths()


@st.composite
def odd_targets(draw: st.DrawFn) -> str:
    """The text of a link: inside, dangling, out, absolute, in a circle."""
    text = "/".join(draw(st.lists(parts, min_size=1, max_size=4)))
    text += draw(st.sampled_from(("", "", "", "/", "/.")))
    return draw(st.sampled_from(("", "", "", "", "", "", "/nonexistent/"))) + text or "."


targets = plain_paths | plain_paths.map("../".__add__) | odd_targets()


@st.composite
def trees(draw: st.DrawFn) -> tuple[str, ...]:
    """Lines for `plant`, none in the way of another."""
    kinds: dict[tuple[str, ...], str] = {}
    for where in draw(st.lists(st.lists(names, min_size=1, max_size=3).map(tuple), max_size=12, unique=True)):
        above = [where[:count] for count in range(1, len(where))]
        if where in kinds or any(kinds.get(place, "/") != "/" for place in above):
            continue
        kinds.update(dict.fromkeys(above, "/"))
        kinds[where] = draw(
            st.one_of(
                st.just("/"),
                contents.map(lambda content: " = " + content.decode("utf-8", "surrogateescape")),
                targets.map(lambda target: " => " + target),
                targets.map(lambda target: " => " + target),
            )
        )
    return tuple("/".join(where) + rest for where, rest in kinds.items() if rest != "/") + tuple(
        "/".join(where) + "/" for where, rest in kinds.items() if rest == "/"
    )


limits = st.builds(Limits, list_entries=ceilings, walk_entries=ceilings, depth=st.none() | st.integers(1, 3))

versions = st.sampled_from((None, None, None, None, "1-1-1"))
"""Mostly none, and sometimes one that nothing has."""
looks: st.SearchStrategy[Operation] = st.one_of(
    st.builds(
        ops.read,
        paths,
        limit=ceilings,
        offset=st.sampled_from((0, 0, 2, 100)),
        length=st.none() | st.integers(0, 9),
    ),
    st.builds(
        ops.read_with_info,
        paths,
        limit=ceilings,
        offset=st.sampled_from((0, 2, 100)),
        length=st.none() | st.integers(0, 9),
    ),
    st.builds(ops.reader, paths),
    st.builds(ops.stat, paths, st.sampled_from(Links)),
    st.builds(ops.listing, paths, limit=ceilings),
    st.builds(ops.names, paths, limit=ceilings),
    st.builds(ops.walk, paths, limits),
)
changes: st.SearchStrategy[Operation] = st.one_of(
    st.builds(
        ops.write,
        paths,
        contents,
        existing=existing,
        parents=parents,
        mode=st.sampled_from(MODES),
        expect=versions,
    ),
    st.builds(ops.append, paths, contents, limit=ceilings, expect=versions),
    st.builds(ops.mkdir, paths, parents),
    st.builds(ops.link, paths, targets, existing),
    st.builds(ops.remove, paths, versions),
    st.builds(ops.remove_tree, paths, versions),
    st.builds(ops.move, paths, paths, existing, versions),
    st.builds(ops.copy, paths, paths, existing, limit=ceilings),
)
