"""Take out one guard at a time and see whether a test notices.

Each mutant is a copy of the sources with one piece of text replaced. The test named by the mutant must fail
on it; if it passes, the mutant has survived, and a hole of that shape would go unseen.

    python tests/mutants.py            all of them, and the tests on the unchanged sources first
    python tests/mutants.py NAME...    only those
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
SOURCES = TOP / "src"
SECONDS = 120
"""Tests that hang on a mutant have noticed it."""
RUN = """
import sys
import carrel
import pytest
if not carrel.__file__.startswith(sys.argv[1] + "/"):
    sys.exit(f"the tests would run on {carrel.__file__}, not on {sys.argv[1]}")
sys.exit(10 + pytest.main(sys.argv[2:]))
"""
PASSED, FAILED = 10, 11
"""The exit status of the above; any other means that the tests were not run."""

PATHS = "tests/faults/test_guards_of_paths.py"
FILES = "tests/faults/test_guards_of_files.py"
GATE = "tests/faults/test_guards_of_the_gate.py"
RESOLVER = "tests/faults/test_resolver.py"
DRAFTS = "tests/faults/test_drafts.py"
KILLED = "tests/faults/test_killed.py"
CLOSED = "tests/faults/test_closed.py"
GROWTH = "tests/faults/test_growth.py"
DEPTH = "tests/faults/test_depth.py"
ARCHIVE = "tests/attack/test_archive.py"
WORKER = "tests/attack/test_guest_worker.py"
LOCKDOWN = "tests/runtimes/test_lockdown.py"
TOOLBOX = "tests/tools/test_toolbox.py"
KEYS = "tests/service/test_keys.py"
JWT = "tests/service/test_jwt.py"
CALLERS = "tests/service/test_callers.py"
RATE = "tests/service/test_rate.py"
MCP_ROLES = "tests/fronts/mcp/test_roles.py"
TENANTS = "tests/service/test_two_tenants.py"
CONTAINER = "tests/containers/test_container.py"
HOSTILE = "tests/containers/test_hostile.py"
CONTAINED = "tests/sandbox/test_container.py"
BYPASS = "tests/fs/test_bypass.py"
KEEPER = "tests/containers/test_keeper.py"
SESSION_CONTAINERS = "tests/workspace/test_session_containers.py"
TOOL_CONTAINERS = "tests/tools/test_containers.py"
MEMBER = f"{ARCHIVE}::test_a_hostile_member_refuses_the_whole_archive"


class StaleError(Exception):
    """The text that a mutant replaces is not in the sources exactly once."""


class BrokenError(Exception):
    """The tests could not be run at all."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard less."""

    name: str
    file: str
    """Beneath `src/carrel`."""
    old: str
    new: str
    tests: str
    """A file, and after a `::` the name of a test in it."""

    def apply(self, sources: Path) -> None:
        """Replace the text in a copy of the sources.

        Raises:
            StaleError: It is not there exactly once.
        """
        path = sources / "carrel" / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            found = f"{text.count(self.old)} times in {self.file}"
            raise StaleError(f"mutant {self.name!r} is stale: its text is {found}, not once")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


MUTANTS = [
    # The kernel's way
    Mutant(
        "kernel: beneath",
        "fs/_resolve.py",
        "_sys.RESOLVE_BENEATH | _sys.RESOLVE_NO_MAGICLINKS",
        "_sys.RESOLVE_NO_MAGICLINKS",
        f"{PATHS}::test_nothing_above_the_workspace_is_reached_by_dots",
    ),
    Mutant(
        "kernel: no magic links",
        "fs/_resolve.py",
        "| _sys.RESOLVE_NO_MAGICLINKS |",
        "|",
        f"{PATHS}::test_a_magic_link_is_refused_as_such",
    ),
    Mutant(
        "kernel: no other mount",
        "fs/_resolve.py",
        " | _sys.RESOLVE_NO_XDEV",
        "",
        f"{PATHS}::test_another_mount_is_refused_in_the_middle_and_at_the_end",
    ),
    Mutant(
        "kernel: asked again",
        "fs/_resolve.py",
        "except BlockingIOError:\n            continue",
        "except BlockingIOError:\n            break",
        f"{RESOLVER}::test_an_unsure_kernel_is_asked_again",
    ),
    Mutant(
        "kernel: asked again, but not for ever",
        "fs/_resolve.py",
        "for _ in range(RETRIES):",
        "while True:",
        f"{RESOLVER}::test_a_kernel_that_stays_unsure_means_busy_and_not_forever",
    ),
    Mutant(
        "kernel: closed on exec",
        "fs/_resolve.py",
        "    flags |= os.O_CLOEXEC\n",
        "",
        f"{GATE}::test_every_descriptor_is_closed_on_exec",
    ),
    Mutant(
        "kernel: interrupted",
        "fs/_sys.py",
        "            return fd\n        number = ctypes.get_errno()\n        if number != errno.EINTR:",
        "            return fd\n        number = ctypes.get_errno()\n        if number:",
        f"{RESOLVER}::test_an_interrupted_open_or_rename_goes_on",
    ),
    # Falling back
    Mutant(
        "fallback: missing",
        "fs/_resolve.py",
        "if error.errno == errno.ENOSYS:\n        return True",
        "if error.errno == errno.ENOSYS:\n        return False",
        f"{RESOLVER}::test_without_openat2_the_walk_is_taken_and_confines_as_well",
    ),
    Mutant(
        "fallback: filtered",
        "fs/_resolve.py",
        "except PermissionError:\n        return True",
        "except PermissionError:\n        return False",
        f"{RESOLVER}::test_without_openat2_the_walk_is_taken_and_confines_as_well",
    ),
    Mutant(
        "fallback: only if all is filtered",
        "fs/_resolve.py",
        "        return True\n    return False\n\n\ndef unconfined_open",
        "        return True\n    return True\n\n\ndef unconfined_open",
        f"{RESOLVER}::test_one_file_that_is_really_forbidden_stays_forbidden_and_the_kernel_in_force",
    ),
    Mutant(
        "fallback: only if nothing is demanded",
        "fs/_resolve.py",
        "self._may_fall_back = demanded is None",
        "self._may_fall_back = True",
        f"{RESOLVER}::test_a_demanded_kernel_is_never_replaced_by_the_walk",
    ),
    Mutant(
        "fallback: to the walk",
        "fs/_resolve.py",
        "        self.open = self._walk_open\n        return self._walk_open(base, path, flags)",
        "        self.open = unconfined_open\n        return unconfined_open(base, path, flags)",
        f"{RESOLVER}::test_without_openat2_the_walk_is_taken_and_confines_as_well",
    ),
    # The walk
    Mutant(
        "walk: absolute links",
        "fs/_resolve.py",
        'if target.startswith(b"/"):',
        "if not target:",
        f"{PATHS}::test_an_absolute_link_is_refused_even_if_it_leads_inside",
    ),
    Mutant(
        "walk: above the base",
        "fs/_resolve.py",
        "        if ups > len(self._trail):\n"
        "            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))",
        "        if ups > len(self._trail):\n"
        "            return self._stand(os.open(b'..', _DIRECTORY, dir_fd=self._base))",
        f"{PATHS}::test_nothing_above_the_workspace_is_reached_by_dots",
    ),
    Mutant(
        "walk: number of links",
        "fs/_resolve.py",
        "if self._links > LINKS:",
        "if self._links > 10 * LINKS:",
        f"{PATHS}::test_forty_links_are_followed_and_not_one_more",
    ),
    Mutant(
        "walk: number of steps",
        "fs/_resolve.py",
        "if self._steps > STEPS:",
        "if self._steps < 0:",
        f"{PATHS}::test_a_walk_ends_after_a_number_of_steps",
    ),
    Mutant(
        "walk: no other mount",
        "fs/_resolve.py",
        "if _sys.mount_id_unchecked(fd) != self._mount:",
        "if fd < 0:",
        f"{PATHS}::test_another_mount_is_refused_in_the_middle_and_at_the_end",
    ),
    Mutant(
        "walk: no following in the middle",
        "fs/_resolve.py",
        "_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
        "_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC",
        f"{PATHS}::test_a_relative_link_out_is_refused",
    ),
    Mutant(
        "walk: no following at the end",
        "fs/_resolve.py",
        "fd = self._step(name, self._flags | os.O_NOFOLLOW)",
        "fd = self._step(name, self._flags)",
        f"{PATHS}::test_a_relative_link_out_is_refused",
    ),
    Mutant(
        "walk: a last link is followed by us",
        "fs/_resolve.py",
        "if keep_link or not (self._flags & os.O_PATH and stat.S_ISLNK(os.fstat(fd).st_mode)):",
        "if fd >= 0:",
        f"{PATHS}::test_links_inside_are_followed_in_the_middle_and_at_the_end",
    ),
    Mutant(
        "walk: a slash in a link",
        "fs/_resolve.py",
        'if not self._todo and target.endswith((b"/", b"/.")):',
        "if not target:",
        f"{PATHS}::test_the_text_of_a_link_that_ends_in_a_slash_asks_for_a_directory",
    ),
    Mutant(
        "walk: a mount id that was not answered",
        "fs/_sys.py",
        "if mask & _STATX_MNT_ID:",
        "if mask is not None:",
        f"{RESOLVER}::test_a_directory_of_the_same_disk_that_is_mounted_inside_is_refused",
    ),
    Mutant(
        "walk: the place of the mount id",
        "fs/_sys.py",
        '_MOUNT = struct.Struct("=I140xQ")',
        '_MOUNT = struct.Struct("=I132xQ")',
        f"{RESOLVER}::test_a_directory_of_the_same_disk_that_is_mounted_inside_is_refused",
    ),
    Mutant(
        "walk: out of descriptors is no escape",
        "fs/_sys.py",
        "if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):",
        "if error.errno is None:",
        f"{RESOLVER}::test_the_walk_out_of_descriptors_does_not_cry_escape",
    ),
    # What belongs to an earlier rule
    Mutant(
        "barred: not entered",
        "fs/_resolve.py",
        "                self._barred.require_free(os.fstat(fd))",
        "                pass",
        f"{PATHS}::test_a_directory_of_an_earlier_rule_is_not_entered_through_a_later_one",
    ),
    Mutant(
        "barred: the kernel cannot tell",
        "fs/_resolve.py",
        "if barred and demanded is not Confinement.NONE:",
        "if demanded is Confinement.WALK:",
        f"{PATHS}::test_a_directory_of_an_earlier_rule_is_not_entered_through_a_later_one",
    ),
    Mutant(
        "barred: not moved away",
        "fs/_beneath.py",
        "            self.resolver.barred.require_movable(found)",
        "            pass",
        f"{PATHS}::test_a_directory_of_an_earlier_rule_is_not_moved_away_with_one_above_it",
    ),
    Mutant(
        "barred: not made",
        "fs/_beneath.py",
        "            self.resolver.barred.require_name(parent.fd, where.name)",
        "            pass",
        f"{PATHS}::test_the_place_of_an_earlier_rule_is_not_made_through_a_later_one",
    ),
    Mutant(
        "barred: by earlier rules",
        "workspace/areas.py",
        "parts[len(own) :] for parts in earlier if len(parts) > len(own) and parts[: len(own)] == own",
        "parts[len(own) :] for parts in earlier if not parts",
        f"{PATHS}::test_a_directory_of_an_earlier_rule_is_not_entered_through_a_later_one",
    ),
    # Parsing
    Mutant(
        "parse: NUL",
        "paths/rel.py",
        'if "\\0" in text:',
        "if text is None:",
        f"{PATHS}::test_what_is_no_path_is_refused_before_anything_is_opened",
    ),
    Mutant(
        "parse: absolute",
        "paths/rel.py",
        "    if where.absolute:\n        raise AbsoluteError(",
        "    if where is None:\n        raise AbsoluteError(",
        f"{PATHS}::test_what_is_no_path_is_refused_before_anything_is_opened",
    ),
    Mutant(
        "parse: drive letter",
        "paths/rel.py",
        'if path[1:2] == ":" and',
        "if path is None and",
        f"{PATHS}::test_what_is_no_path_is_refused_before_anything_is_opened",
    ),
    Mutant(
        "parse: backslash",
        "paths/rel.py",
        'path.replace("\\\\", "/")',
        "path",
        f"{PATHS}::test_what_is_no_path_is_refused_before_anything_is_opened",
    ),
    Mutant(
        "parse: empty",
        "paths/rel.py",
        "if not text:",
        "if text is None:",
        f"{PATHS}::test_what_is_no_path_is_refused_before_anything_is_opened",
    ),
    Mutant(
        "parse: length",
        "paths/rel.py",
        "if len(encode(text, asked)) >= PATH_BYTES:",
        "if not encode(text, asked):",
        f"{PATHS}::test_what_is_no_path_is_refused_before_anything_is_opened",
    ),
    Mutant(
        "parse: length of a name",
        "paths/rel.py",
        "if len(encoded) > NAME_BYTES:",
        "if encoded is None:",
        f"{PATHS}::test_what_is_no_path_is_refused_before_anything_is_opened",
    ),
    Mutant(
        "parse: length of each name",
        "paths/rel.py",
        "if len(name) > NAME_BYTES:",
        "if name is None:",
        f"{PATHS}::test_what_is_no_path_is_refused_before_anything_is_opened",
    ),
    Mutant(
        "parse: surrogates",
        "paths/rel.py",
        'if found is None or found.decode("utf-8", "surrogateescape") != text:',
        "if found is None:",
        f"{PATHS}::test_a_surrogate_that_stands_for_text_is_not_taken_for_a_byte",
    ),
    Mutant(
        "parse: a slash at the end",
        "paths/rel.py",
        'must_dir=last in ("", ".", ".."),',
        "must_dir=False,",
        f"{PATHS}::test_what_a_path_ends_in_is_remembered",
    ),
    Mutant(
        "parse: dots at the end",
        "paths/rel.py",
        "dotted=_ends_in_dots(pieces) or not parts,",
        "dotted=not parts,",
        f"{PATHS}::test_what_a_path_ends_in_is_remembered",
    ),
    Mutant(
        "parse: a plain str",
        "paths/rel.py",
        "return str.__str__(given)",
        "return given",
        f"{PATHS}::test_a_path_object_is_asked_once",
    ),
    Mutant(
        "pattern: dots",
        "paths/match.py",
        'if ".." in parts:',
        "if parts is None:",
        f"{PATHS}::test_a_pattern_that_leads_anywhere_else_is_refused",
    ),
    Mutant(
        "pattern: absolute",
        "paths/match.py",
        'if plain.startswith("/"):',
        "if plain is None:",
        f"{PATHS}::test_a_pattern_that_leads_anywhere_else_is_refused",
    ),
    # Reading
    Mutant(
        "read: regular files only",
        "fs/_root_reading.py",
        "            found = os.fstat(fd)\n            if not stat.S_ISREG(found.st_mode):\n"
        "                raise not_a_file(found, where)\n            wanted",
        "            found = os.fstat(fd)\n            wanted",
        f"{FILES}::test_only_regular_files_are_read",
    ),
    Mutant(
        "read by chunks: regular files only",
        "fs/_root_reading.py",
        "        found = os.fstat(handle.fd)\n        if not stat.S_ISREG(found.st_mode):\n",
        "        found = os.fstat(handle.fd)\n        if found is None:\n",
        f"{FILES}::test_a_device_is_not_read",
    ),
    Mutant(
        "read: does not wait",
        "fs/_root_reading.py",
        "_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY",
        "_READ = os.O_RDONLY | os.O_NOCTTY",
        f"{FILES}::test_only_regular_files_are_read",
    ),
    Mutant(
        "append: does not wait",
        "fs/root.py",
        "_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY",
        "_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOCTTY",
        f"{FILES}::test_only_regular_files_are_read",
    ),
    Mutant(
        "read: size",
        "fs/_root_reading.py",
        "if limit is not None and wanted > limit:",
        "if limit is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "read: growth",
        "fs/_content.py",
        "piece = os.read(fd, min(2**16, ceiling + 1 - size))",
        "piece = os.read(fd, 2**16)",
        f"{GROWTH}::test_a_file_that_grows_past_the_limit_is_read_no_further_than_one_byte_past_it",
    ),
    Mutant(
        "read: a slash after a file",
        "fs/_root_reading.py",
        "        flags = _READ | os.O_DIRECTORY if where.must_dir else _READ\n        fd =",
        "        flags = _READ\n        fd =",
        f"{FILES}::test_a_slash_after_a_file_is_refused_by_every_operation",
    ),
    Mutant(
        "stat: a slash after a file",
        "fs/_root_reading.py",
        "        if where.must_dir:\n            flags |= os.O_DIRECTORY\n",
        "        if where is None:\n            flags |= os.O_DIRECTORY\n",
        f"{FILES}::test_a_slash_after_a_file_is_refused_by_every_operation",
    ),
    # Removing and moving
    Mutant(
        "remove, move: a slash after a file",
        "fs/_beneath.py",
        "if where.must_dir and not stat.S_ISDIR(found.st_mode):",
        "if found is None:",
        f"{FILES}::test_a_slash_after_a_file_is_refused_by_every_operation",
    ),
    Mutant(
        "move: a slash after the target of a file",
        "fs/root.py",
        "if target.must_dir and info.kind is not FileKind.DIRECTORY:",
        "if target is None:",
        f"{FILES}::test_a_slash_after_a_file_is_refused_by_every_operation",
    ),
    Mutant(
        "remove, move: the workspace itself",
        "fs/_beneath.py",
        '            self._require_inside(directory, where)\n            raise PathError(f"path',
        "            self._require_inside(directory, where)\n            return directory\n"
        '            raise PathError(f"path',
        f"{FILES}::test_the_workspace_itself_is_neither_removed_nor_moved",
    ),
    Mutant(
        "move: no clobbering",
        "fs/root.py",
        "            if existing is Existing.REPLACE:\n                os.rename(",
        "            if existing:\n                os.rename(",
        f"{FILES}::test_what_appears_after_the_last_look_is_not_clobbered",
    ),
    Mutant(
        "copy: not into itself",
        "workspace/tree_copy.py",
        "if above.inode == top.inode:",
        "if above is None:",
        f"{FILES}::test_a_directory_goes_neither_into_itself_nor_over_another",
    ),
    # Writing
    Mutant(
        "append: other names",
        "fs/_beneath.py",
        "if found.st_nlink != 1:",
        "if found.st_nlink == 0:",
        f"{FILES}::test_an_append_does_not_change_another_name_of_the_file",
    ),
    Mutant(
        "append: regular files only",
        "fs/root.py",
        "            found = os.fstat(held.fd)\n            if not stat.S_ISREG(found.st_mode):\n"
        "                raise not_a_file(found, where)\n            if expect is not None",
        "            found = os.fstat(held.fd)\n            if expect is not None",
        f"{FILES}::test_appending_to_a_fifo_with_a_reader_is_refused",
    ),
    Mutant(
        "append: size",
        "fs/root.py",
        "if limit is not None and after > limit:",
        "if limit is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "append: as long as before",
        "fs/_content.py",
        "    except OSError:\n        os.ftruncate(fd, size)\n        raise",
        "    except OSError:\n        raise",
        f"{DRAFTS}::test_a_failed_append_leaves_the_file_as_long_as_it_was",
    ),
    Mutant(
        "write: read-only files",
        "fs/_beneath.py",
        "if not found.st_mode & 0o222:",
        "if found is None:",
        f"{FILES}::test_a_file_that_nobody_may_write_is_not_written",
    ),
    Mutant(
        "write: regular files only",
        "fs/_beneath.py",
        "if not stat.S_ISREG(before.st_mode):",
        "if before is None:",
        f"{FILES}::test_only_regular_files_are_read",
    ),
    Mutant(
        "write: through an absolute link",
        "fs/_beneath.py",
        "            if where.absolute:\n                raise translate(errno.EXDEV, where)\n",
        "",
        f"{FILES}::test_a_write_goes_through_links_inside_and_through_no_others",
    ),
    Mutant(
        "mkdir: dots in what is missing",
        "fs/_beneath.py",
        'if ".." in parts[known:]:',
        "if parts is None:",
        f"{FILES}::test_directories_are_made_only_below_what_is_there",
    ),
    Mutant(
        "mkdir: no following of what was just made",
        "fs/_beneath.py",
        "here = Handle(self.resolver.open(here.fd, name, PARENT | os.O_NOFOLLOW))",
        "here = Handle(self.resolver.open(here.fd, name, PARENT))",
        f"{FILES}::test_a_directory_that_is_swapped_while_directories_are_made_is_not_followed",
    ),
    Mutant(
        "write: a version that goes meanwhile",
        "fs/_version.py",
        "if version != expect or (now and held and identity(now) != identity(os.fstat(held.fd))):",
        "if not now:",
        f"{FILES}::test_a_version_that_goes_while_another_is_written_is_not_replaced",
    ),
    Mutant(
        "append: a version that goes meanwhile",
        "fs/root.py",
        "if version != expect or version_of(found) != expect:",
        "if version is None:",
        f"{FILES}::test_a_version_that_goes_before_it_is_locked_is_left",
    ),
    Mutant(
        "append: a version that lost its name",
        "fs/root.py",
        "if version != expect or version_of(found) != expect:",
        "if version_of(found) != expect:",
        f"{FILES}::test_a_version_that_loses_its_name_before_it_is_locked_is_left",
    ),
    Mutant(
        "append: one version at a time",
        "fs/root.py",
        "        lock_soon(held.fd)\n",
        "",
        f"{FILES}::test_a_version_that_somebody_else_is_replacing_is_left_to_them",
    ),
    Mutant(
        "remove: the expected version",
        "fs/root.py",
        "held = None if expect is None else locked_version(parent, where, expect)\n"
        "            if info.kind is FileKind.DIRECTORY:",
        "held = None\n            if info.kind is FileKind.DIRECTORY:",
        f"{FILES}::test_a_version_that_goes_before_it_is_locked_is_left",
    ),
    Mutant(
        "remove a tree: the expected version",
        "fs/root.py",
        "held = None if expect is None else locked_version(parent, where, expect)\n"
        "            if info.kind is not FileKind.DIRECTORY:",
        "held = None\n            if info.kind is not FileKind.DIRECTORY:",
        f"{FILES}::test_a_version_that_goes_before_it_is_locked_is_left",
    ),
    Mutant(
        "move: the expected version",
        "fs/root.py",
        "held = None if expect is None else locked_version(parent, where, expect)\n"
        "            self._move_to(",
        "held = None\n            self._move_to(",
        f"{FILES}::test_a_version_that_goes_before_it_is_locked_is_left",
    ),
    Mutant(
        "move to another rule: the expected version",
        "workspace/workspace.py",
        "unchecked(copy.source).remove_tree(where, expect=expect)",
        "unchecked(copy.source).remove_tree(where)",
        "tests/workspace/test_versions.py"
        "::test_what_changes_while_it_moves_to_another_rule_stays_and_its_copy_goes",
    ),
    Mutant(
        "version: only regular files are opened",
        "fs/_version.py",
        "if seen and stat.S_ISREG(seen.st_mode) else None",
        "if seen else None",
        f"{FILES}::test_what_is_no_file_is_not_opened_to_lock_it",
    ),
    Mutant(
        "write: one version at a time",
        "fs/_version.py",
        "    lock_soon(held.fd)\n",
        "",
        f"{FILES}::test_a_version_that_somebody_else_is_replacing_is_left_to_them",
    ),
    Mutant(
        "link: not out",
        "paths/rel.py",
        "        if depth < 0:\n            return True\n",
        "        if depth is None:\n            return True\n",
        f"{FILES}::test_no_link_that_leads_out_is_made_by_copying",
    ),
    Mutant(
        "link: not absolute",
        "paths/rel.py",
        "return then.absolute",
        "return False",
        f"{FILES}::test_no_link_that_leads_out_is_made_by_copying",
    ),
    # Drafts
    Mutant(
        "draft: no clobbering of what appears, unnamed",
        "fs/_draft.py",
        "            _sys.link_held_unchecked(self.fd, directory.fd, name)\n            return\n",
        "            self.replace(directory, name)\n            return\n",
        "tests/fs/test_draft.py::test_a_taken_name_is_left_alone",
    ),
    Mutant(
        "draft: no clobbering of what appears, named",
        "fs/_draft.py",
        "        rename_without_replacing(self._names.fd, self._name, directory.fd, name)",
        "        os.rename(self._name, name, src_dir_fd=self._names.fd, dst_dir_fd=directory.fd)",
        "tests/fs/test_draft.py::test_a_taken_name_is_left_alone",
    ),
    Mutant(
        "draft: no clobbering without flags",
        "fs/_draft.py",
        "    os.link(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir, follow_symlinks=False)\n"
        "    os.unlink(source, dir_fd=source_dir)",
        "    os.rename(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir)",
        "tests/fs/test_draft.py::test_a_rename_to_a_taken_name_is_refused",
    ),
    Mutant(
        "draft: no clobbering of directories without flags",
        "fs/_draft.py",
        "        os.mkdir(target, 0o700, dir_fd=target_dir)\n",
        "",
        "tests/fs/test_draft.py::test_a_rename_to_a_taken_name_is_refused",
    ),
    Mutant(
        "draft: discarded",
        "fs/_draft.py",
        "                os.unlink(self._name, dir_fd=self._names.fd)",
        "                pass",
        f"{FILES}::test_a_write_that_fails_leaves_no_draft_and_no_directory",
    ),
    Mutant(
        "draft: discarded on failure",
        "fs/_draft.py",
        "    def __exit__(self, *exception: object) -> None:\n        self.discard()\n",
        "    def __exit__(self, *exception: object) -> None:\n        pass\n",
        f"{FILES}::test_a_write_that_fails_leaves_no_draft_and_no_directory",
    ),
    Mutant(
        "draft: directories taken away on failure",
        "fs/root.py",
        "                if not unmake(made):\n                    account.spoil()\n                raise\n"
        "            del held",
        "                raise\n            del held",
        f"{FILES}::test_a_write_that_cannot_be_put_in_place_leaves_no_directory",
    ),
    Mutant(
        "draft: locked",
        "fs/_draft.py",
        "            lock_soon(self.fd)",
        "            pass",
        f"{FILES}::test_a_draft_is_locked_as_long_as_it_is_written",
    ),
    Mutant(
        "sweep: not what is locked",
        "fs/_draft.py",
        "        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    finally",
        "        pass\n    finally",
        f"{FILES}::test_a_draft_is_locked_as_long_as_it_is_written",
    ),
    Mutant(
        "sweep: not what is young",
        "fs/_draft.py",
        "if found.st_mtime > oldest:",
        "if found is None:",
        f"{FILES}::test_a_young_draft_is_left_alone_and_an_old_one_is_not",
    ),
    Mutant(
        "sweep: drafts only",
        "fs/_draft.py",
        "        if not name.startswith(PREFIX):\n            continue\n"
        "        with suppress(OSError):\n            if _is_abandoned",
        "        with suppress(OSError):\n            if _is_abandoned",
        f"{FILES}::test_a_young_draft_is_left_alone_and_an_old_one_is_not",
    ),
    Mutant(
        "sweep: trash that somebody removes",
        "fs/scratch.py",
        "if not _is_held(trash.fd, name):",
        "if name:",
        f"{KILLED}::test_a_tree_in_the_trash_is_left_to_its_living_remover",
    ),
    Mutant(
        "draft: named where nothing else can be had",
        "fs/_draft.py",
        "        if error.errno not in _NO_TMPFILE:\n            raise\n        return -1",
        "        raise",
        f"{DRAFTS}::test_files_are_still_created_replaced_and_never_clobbered",
    ),
    # Ledgers, sessions and sweeps
    Mutant(
        "ledger: the quota is asked",
        "workspace/ledger.py",
        "        self._quota.require(disk_bytes, entries, more_bytes, more_entries)\n        position",
        "        position",
        "tests/workspace/test_quota.py::test_a_refusal_says_how_much_and_what_the_limit_is",
    ),
    Mutant(
        "ledger: one at a time",
        "workspace/session_lock.py",
        "                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "                pass\n",
        "tests/workspace/test_ledger.py::test_sixteen_processes_fill_a_session_to_its_limit_and_no_further",
    ),
    Mutant(
        "ledger: a mark is settled",
        "workspace/ledger.py",
        "        if page.mark & _OPEN:\n",
        "        if page is None:\n",
        "tests/workspace/test_ledger.py"
        "::test_a_kill_between_mark_and_change_is_seen_by_all_who_have_the_session_open",
    ),
    Mutant(
        "ledger: a deleted session is told",
        "workspace/ledger.py",
        "        if page is not None and page.mark & _GONE:\n",
        "        if page is None and page:\n",
        "tests/workspace/test_manager.py"
        "::test_who_still_uses_a_deleted_session_hears_of_it_and_nothing_comes_back",
    ),
    Mutant(
        "store: a claim is on what is there now",
        "workspace/store.py",
        "        is_there = _is_at(state, states, session_id)\n",
        "        is_there = True\n",
        "tests/workspace/test_manager.py"
        "::test_a_maker_that_comes_in_the_middle_of_deleting_waits_for_its_end",
    ),
    Mutant(
        "sweep: a session in use stays",
        "workspace/sweeper.py",
        "                if claim.is_in_use():\n",
        "                if claim is None:\n",
        "tests/workspace/test_sweep.py::test_a_session_that_this_process_has_open_is_skipped",
    ),
    Mutant(
        "sweep: the latest use counts",
        "workspace/sweeper.py",
        "        if latest.used_ns > current.used_ns:\n",
        "        if latest is None:\n",
        "tests/workspace/test_sweep.py::test_the_latest_use_that_anything_tells_of_counts",
    ),
    Mutant(
        "journal: bounded",
        "audit/journal.py",
        "        for number in self._numbers()[:-KEPT_FILES]:\n",
        "        for number in ():\n",
        "tests/audit/test_journal.py::test_a_journal_keeps_the_newest_records_in_bounded_space",
    ),
    # Trees
    Mutant(
        "tree: no following",
        "fs/removal.py",
        "SCAN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC",
        "SCAN = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC",
        f"{FILES}::test_a_removal_does_not_follow_a_link_that_was_a_directory",
    ),
    Mutant(
        "tree: no following by a walk",
        "fs/tree.py",
        "return Handle(self._open(parent.fd, os.fsencode(info.name), SCAN))",
        "return Handle(self._open(parent.fd, os.fsencode(info.name), SCAN & ~os.O_NOFOLLOW))",
        f"{FILES}::test_a_walk_does_not_follow_a_link_that_was_a_directory",
    ),
    Mutant(
        "tree: a listing does not ask targets",
        "fs/tree.py",
        "entry.stat(follow_symlinks=False)))",
        "entry.stat()))",
        f"{FILES}::test_a_listing_tells_nothing_about_the_target_of_a_link",
    ),
    Mutant(
        "tree: depth of a walk",
        "fs/tree.py",
        "if self._depth is not None and len(levels) >= self._depth:",
        "if self._depth is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "tree: too deep is told",
        "fs/tree.py",
        "if deeper is not None and self._depth is not None:",
        "if deeper is not None and self._depth is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "tree: entries of a walk",
        "fs/tree.py",
        "if self._entries is not None and seen >= self._entries:",
        "if self._entries is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "tree: entries of a listing",
        "fs/tree.py",
        "if limit is not None and len(found) >= limit:",
        "if limit is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "tree: depth of a removal",
        "fs/removal.py",
        "if len(levels) < LEVELS:",
        "if levels:",
        f"{DEPTH}::test_a_tree_of_20000_levels_is_walked_to_the_limit_and_removed[bare-kernel]",
    ),
    Mutant(
        "tree: shut directories",
        "fs/removal.py",
        "    except PermissionError:\n        unlock(open_child, parent, name)\n"
        "        fd = open_child(parent, name, SCAN)",
        "    except PermissionError:\n        raise",
        f"{DEPTH}::test_shut_directories_at_any_depth_are_removed_without_root",
    ),
    Mutant(
        "tree: what cannot be opened up is not gone",
        "fs/_sys.py",
        "is still there.\n        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None",
        "is still there.\n        raise",
        f"{DEPTH}::test_without_proc_a_shut_directory_is_refused_or_removed_but_never_said_to_be_gone",
    ),
    # Policy
    Mutant(
        "policy: read-only",
        "policy/rules.py",
        "return access is Access.READ or self is AccessMode.READ_WRITE",
        "return True",
        f"{GATE}::test_a_read_only_workspace_is_not_changed",
    ),
    Mutant(
        "policy: outside",
        "policy/rules.py",
        "            reason = _OUTSIDE",
        "            reason = None",
        f"{GATE}::test_what_no_rule_has_is_outside",
    ),
    Mutant(
        "policy: the first match",
        "workspace/areas.py",
        "for index, spellings in enumerate(self._roots):",
        "for index, spellings in reversed(list(enumerate(self._roots))):",
        f"{GATE}::test_the_first_rule_that_has_a_path_decides",
    ),
    Mutant(
        "policy: the first match, explained",
        "policy/rules.py",
        "for index, rule in enumerate(self.allowed_paths):",
        "for index, rule in reversed(list(enumerate(self.allowed_paths))):",
        f"{GATE}::test_the_first_rule_that_has_a_path_decides",
    ),
    Mutant(
        "policy: the workspace is the first rule",
        "policy/rules.py",
        "if self.allowed_paths and self.allowed_paths[0].root != self.workspace_root:",
        "if self.workspace_root is None:",
        f"{GATE}::test_what_no_rule_has_is_outside",
    ),
    Mutant(
        "policy: the place on the host is not a name of the workspace",
        "workspace/areas.py",
        "                if index == 0:\n",
        "                if index is None:\n",
        f"{GATE}::test_what_no_rule_has_is_outside",
    ),
    Mutant(
        "policy: an unclear mode",
        "policy/rules.py",
        "return cls.READ_WRITE if writable else cls.READ_ONLY",
        "return cls.READ_WRITE",
        f"{GATE}::test_a_mode_that_is_not_plainly_read_write_is_read_only",
    ),
    # The gate
    Mutant(
        "gate: asks the policy",
        "workspace/gate.py",
        "if place.rule is None or access not in self._allowed[place.rule]:",
        "if place.rule is None:",
        f"{GATE}::test_a_read_only_workspace_is_not_changed",
    ),
    Mutant(
        "gate: both ends of a move",
        "workspace/workspace.py",
        "        files, where = self.gate.permit(Access.WRITE, source)\n",
        "        files, where = self.gate.permit(Access.READ, source)\n",
        f"{GATE}::test_both_ends_of_a_move_and_the_target_of_a_copy_are_judged",
    ),
    Mutant(
        "gate: refusals are recorded",
        "workspace/gate.py",
        "            self._recorder.record(operation, path, error=error.code)\n",
        "            pass\n",
        f"{GATE}::test_a_refusal_is_recorded_and_logged",
    ),
    Mutant(
        "gate: refusals are logged",
        "workspace/gate.py",
        '            error.code.replace(".", "_"), session_id=self.session_id,',
        '            "something", session_id=self.session_id,',
        f"{GATE}::test_a_refusal_is_recorded_and_logged",
    ),
    Mutant(
        "gate: refusals are noticed",
        "workspace/gate.py",
        "                self.gate.refused(operation, error)\n",
        "",
        f"{GATE}::test_a_refusal_is_recorded_and_logged",
    ),
    Mutant(
        "record: a lost record is not the operation's failure",
        "workspace/record.py",
        "        except (OSError, ClosedError):",
        "        except ZeroDivisionError:",
        "tests/faults/test_full_disk.py::test_a_full_disk_hides_no_refusal",
    ),
    Mutant(
        "gate: depth",
        "workspace/gate.py",
        "if limit is not None and depth > limit:",
        "if limit is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "gate: size of a file",
        "workspace/chunks.py",
        "if limit is not None and size > limit:",
        "if limit is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "gate: size of a file by chunks",
        "workspace/chunks.py",
        "        require_size(size, limit, where)\n        yield chunk",
        "        yield chunk",
        f"{GROWTH}::test_a_source_that_gives_too_much_is_stopped_at_the_limit",
    ),
    Mutant(
        "gate: closed",
        "workspace/gate.py",
        "        if self._closed or (self._base is not None and self._base.is_closed):\n            raise",
        "        if not self:\n            raise",
        f"{CLOSED}::test_every_operation_on_a_closed_workspace_says_so",
    ),
    Mutant(
        "root: closed",
        "fs/_beneath.py",
        '        """Let go of the directory; it closes when the last running operation is done."""\n'
        "        self._directory = None",
        '        """Let go of the directory; it closes when the last running operation is done."""',
        f"{GATE}::test_a_closed_root_says_so",
    ),
    # WorkspaceManager
    Mutant(
        "id: its characters",
        "paths/names.py",
        "if not _ID.fullmatch(session_id):",
        "if not _ID.match(session_id):",
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: how it begins",
        "paths/names.py",
        'r"[A-Za-z0-9_][A-Za-z0-9_-]*',
        'r"[A-Za-z0-9_-]*',
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: ASCII",
        "paths/names.py",
        r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*\", re.ASCII)".replace('\\"', '"'),
        r"\w[\w-]*(?:\.[\w-]+)*" + '")',
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: its length",
        "paths/names.py",
        "if len(session_id) > ID_CHARACTERS:",
        "if session_id is None:",
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: device names",
        "paths/names.py",
        "if _DEVICE.match(session_id):",
        "if session_id is None:",
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: its type",
        "paths/names.py",
        "    if not isinstance(session_id, str):\n"
        '        raise SessionIdError(f"session id must be str, not {type(session_id).__name__}")\n'
        "    session_id = str.__str__(session_id)\n",
        '    session_id = session_id if isinstance(session_id, str) else str(session_id).strip("b\'")\n',
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "session: a link in its place",
        "fs/owned.py",
        "handle = Handle(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent.fd))",
        "handle = Handle(os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=parent.fd))",
        f"{GATE}::test_a_session_is_not_made_of_something_that_is_there",
    ),
    Mutant(
        "session: a file in its place",
        "fs/owned.py",
        "elif not stat.S_ISDIR(found.st_mode):",
        "elif found is None:",
        f"{GATE}::test_a_session_is_not_made_of_something_that_is_there",
    ),
    Mutant(
        "session: somebody else's",
        "fs/owned.py",
        "return None if found.st_uid == os.geteuid() else",
        "return None if found else",
        f"{GATE}::test_a_directory_of_somebody_else_is_not_used",
    ),
    Mutant(
        "session: closed to others",
        "workspace/store.py",
        "os.mkdir(self.session_id, 0o700, dir_fd=self._store.directory.fd)",
        "os.mkdir(self.session_id, dir_fd=self._store.directory.fd)",
        f"{GATE}::test_what_is_made_for_sessions_is_closed_to_others",
    ),
    Mutant(
        "sessions: writable for others",
        "fs/owned.py",
        "if found.st_mode & 0o022:",
        "if found is None:",
        f"{GATE}::test_a_sessions_directory_that_others_may_write_to_is_not_used",
    ),
    Mutant(
        "sessions: a link",
        "fs/owned.py",
        "_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
        "_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
        f"{GATE}::test_a_sessions_directory_that_is_a_link_is_not_used",
    ),
    # Remembering
    Mutant(
        "logger: control characters",
        "audit/printable.py",
        "    if text.isprintable():\n        return text\n",
        "    return text\n",
        f"{GATE}::test_a_log_event_is_one_line_whatever_a_name_holds",
    ),
    Mutant(
        "journal: one line",
        "audit/event.py",
        "from json.encoder import encode_basestring_ascii",
        "from json.encoder import encode_basestring as encode_basestring_ascii",
        f"{GATE}::test_a_journal_has_one_line_a_record_whatever_a_name_holds",
    ),
    Mutant(
        "journal: torn lines",
        "audit/journal.py",
        'line = b"\\n" + event.render()',
        "line = event.render()",
        f"{GATE}::test_a_torn_record_spoils_no_other",
    ),
    Mutant(
        "journal: not through a link",
        "audit/journal.py",
        "flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600",
        "flags | os.O_CLOEXEC, 0o600",
        f"{GATE}::test_a_journal_that_became_a_link_is_not_written",
    ),
    # Editing
    Mutant(
        "edit: one match",
        "workspace/edit.py",
        "if count > 1 and not replace_all:",
        "if count < 0:",
        f"{GATE}::test_an_edit_that_is_not_clear_changes_nothing",
    ),
    Mutant(
        "edit: what changed meanwhile",
        "workspace/workspace.py",
        "expect=if_version or before.version,",
        "expect=if_version,",
        f"{GATE}::test_an_edit_of_what_changed_meanwhile_is_refused",
    ),
    # Errors
    Mutant(
        "errors: nothing of the host behind them",
        "fs/_translate.py",
        "            problem = translate(error.errno, where)\n",
        "            raise translate(error.errno, where) from error\n",
        f"{GATE}::test_an_error_names_no_place_on_the_host",
    ),
    # Archives
    Mutant(
        "archive: a member that climbs",
        "workspace/_archive_member.py",
        'if ".." in where.parts:',
        "if False:",
        MEMBER,
    ),
    Mutant(
        "archive: a name with a backslash",
        "workspace/_archive_member.py",
        'if "\\\\" in name:',
        "if False:",
        MEMBER,
    ),
    Mutant(
        "archive: a member through a link",
        "workspace/_archive_plan.py",
        'raise EscapeError(f"member {path[:80]!r} goes through a link", path=path)',
        "return",
        MEMBER,
    ),
    Mutant(
        "archive: a link that leads out",
        "workspace/_archive_plan.py",
        "require_link(path, member.target)",
        "pass",
        MEMBER,
    ),
    Mutant(
        "archive: a link that climbs after a name",
        "workspace/_archive_member.py",
        ' or ".." in names',
        "",
        MEMBER,
    ),
    Mutant(
        "archive: a hard link to a link",
        "workspace/_archive_plan.py",
        "original is None or original.kind is not FileKind.FILE",
        "original is None",
        f"{ARCHIVE}::test_a_hard_link_leads_to_an_earlier_file_or_nowhere",
    ),
    Mutant(
        "archive: names that differ in case",
        "workspace/_archive_plan.py",
        "elif is_link or self._folded[folded]:",
        "elif False:",
        MEMBER,
    ),
    Mutant(
        "archive: a device",
        "workspace/_archive_tar.py",
        "_SPECIAL = {tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE}",
        "_SPECIAL = {tarfile.FIFOTYPE, tarfile.CHRTYPE}",
        MEMBER,
    ),
    Mutant(
        "archive: how far it expands",
        "workspace/extract_limits.py",
        "self._require_expansion(self._expanded_bytes)",
        "pass",
        f"{ARCHIVE}::test_headers_and_padding_count_to_what_a_compressed_archive_expands_to",
    ),
    Mutant(
        "archive: how many members",
        "workspace/extract_limits.py",
        "self._members += 1",
        "pass",
        f"{ARCHIVE}::test_many_members_are_counted_before_they_are_written",
    ),
    Mutant(
        "archive: judged before anything is made",
        "workspace/extract.py",
        "            deque(content, maxlen=0)\n        return plan",
        "        return plan",
        f"{ARCHIVE}::test_a_zip_archive_that_lies_is_refused",
    ),
    # Guest code: the host's side of a worker, and what a worker gives up
    Mutant(
        "a frame of any size is taken",
        "runtimes/line.py",
        "if head_bytes > HEAD_BYTES or body_bytes > self.body_bytes:",
        "if False:",
        WORKER,
    ),
    Mutant(
        "output is kept without end",
        "runtimes/call.py",
        "kept = data[: self.most_bytes - self._size]",
        "kept = data",
        WORKER,
    ),
    Mutant(
        "file operations are not counted",
        "runtimes/call.py",
        "if self._operations > self._policy.file_operations:",
        "if False:",
        WORKER,
    ),
    Mutant(
        "a worker may send for ever",
        "runtimes/call.py",
        "if self.ending is None and self._is_overdue():",
        "if False:",
        WORKER,
    ),
    Mutant(
        "a worker keeps its files",
        "runtimes/guest/lockdown.py",
        "    _close_files(_python(), directory, own)\n",
        "",
        LOCKDOWN,
    ),
    Mutant(
        "a worker keeps its system calls",
        "runtimes/guest/lockdown.py",
        "own)\n    _close_calls()\n",
        "own)\n",
        LOCKDOWN,
    ),
    # The shell
    Mutant(
        "shell: the output of a command",
        "shell/lexer.py",
        'raise self._refused("$(")',
        'return pieces.append(Text("$", True))',
        "tests/shell/test_requirements.py::test_every_metacharacter_is_refused_and_named",
    ),
    Mutant(
        "shell: one command a line",
        "shell/parser.py",
        "    if not pipelines:\n        _refuse_operators(tokens)\n",
        "",
        "tests/shell/test_requirements.py::test_every_metacharacter_is_refused_and_named",
    ),
    Mutant(
        "shell: only commands that are allowed",
        "shell/execution.py",
        "if command is None or name not in self._shared.allowed:",
        "if command is None:",
        "tests/shell/test_shell.py",
    ),
    Mutant(
        "shell: an operator changes the rules",
        "shell/commands/workspace.py",
        "    if ctx.shared.operator is None:\n        return _refuse(ctx, order)\n",
        "",
        "tests/shell/commands/test_workspace.py",
    ),
    Mutant(
        "shell: what prints too much is stopped",
        "shell/streams.py",
        "            raise self._meter.end_output()\n",
        "            return\n",
        "tests/shell/test_budget.py",
    ),
    Mutant(
        "shell: a redirect that is stopped leaves the old file",
        "shell/redirect.py",
        "            self._writer.abandon()\n",
        "            self._writer.finish()\n",
        "tests/shell/test_redirect.py",
    ),
    Mutant(
        "shell: where the shell is",
        "shell/context.py",
        'return f"{self.cwd}/{operand}"',
        "return operand",
        "tests/shell/test_requirements.py::test_pwd_is_the_path_that_every_command_understands",
    ),
    Mutant(
        "read_tree: no links",
        "fs/_sys.py",
        "LISTED_FILE = os.O_RDONLY | os.O_NOFOLLOW |",
        "LISTED_FILE = os.O_RDONLY |",
        f"{FILES}::test_a_file_swapped_for_a_link_is_not_read_with_its_tree",
    ),
    Mutant(
        "read_tree: what the directory lists",
        "fs/_tree_reading.py",
        "if found.st_ino != inode or found.st_dev != here.device:",
        "if not found.st_ino:",
        f"{FILES}::test_what_is_mounted_on_a_file_is_not_read_with_its_tree",
    ),
    Mutant(
        "touch: regular files and directories only",
        "fs/root.py",
        "                if not stat.S_ISREG(found.st_mode):\n"
        "                    raise not_a_file(found, where)\n                require_one_name",
        "                require_one_name",
        "tests/workspace/test_touch.py",
    ),
    # Callers
    Mutant(
        "keys: compared",
        "service/keys.py",
        "if not hmac.compare_digest(digest, expected) or row is None:",
        "if row is None:",
        f"{KEYS}::test_the_secret_of_one_key_is_none_for_another",
    ),
    Mutant(
        "keys: in force",
        "service/keys.py",
        "if key is None or not key.is_in_force(now):",
        "if key is None:",
        f"{KEYS}::test_a_key_expires_to_the_moment_also_while_it_is_remembered",
    ),
    Mutant(
        "keys: in force while remembered",
        "service/keys.py",
        "return found[0] if found[0].is_in_force(self._clock()) else None",
        "return found[0]",
        f"{KEYS}::test_a_key_expires_to_the_moment_also_while_it_is_remembered",
    ),
    Mutant(
        "keys: not remembered for long",
        "service/keys.py",
        "FRESH_NS = 500 * 10**6",
        "FRESH_NS = 5_000 * 10**6",
        f"{KEYS}::test_a_key_that_another_process_revokes_is_out_of_force_within_a_second",
    ),
    Mutant(
        "keys: forgotten when revoked",
        "service/keys.py",
        "            self._known.clear()\n",
        "            pass\n",
        f"{KEYS}::test_a_revoked_key_is_out_of_force_at_once",
    ),
    Mutant(
        "keys: nobody else could write",
        "service/keys.py",
        "if found.st_mode & 0o022:",
        "if found.st_mode & 0o002:",
        f"{KEYS}::test_keys_that_others_could_have_written_open_nothing",
    ),
    Mutant(
        "keys: revoked",
        "service/api_key.py",
        "return self.revoked_ns is None and (",
        "return (",
        f"{KEYS}::test_a_revoked_key_is_out_of_force_at_once",
    ),
    Mutant(
        "keys: tenant is a name",
        "service/api_key.py",
        '        _require_name("tenant", self.tenant)\n',
        "",
        f"{KEYS}::test_a_tenant_that_could_be_another_directory_is_refused",
    ),
    Mutant(
        "keys: tenant in lower case",
        "service/api_key.py",
        "if self.tenant != self.tenant.lower():",
        "if False:",
        f"{KEYS}::test_a_tenant_that_could_be_another_directory_is_refused",
    ),
    Mutant(
        "tokens: algorithm",
        "service/jwt.py",
        "if not isinstance(name, str) or name not in (self.allowed or ()):",
        "if not isinstance(name, str) or name not in self.algorithms:",
        f"{JWT}::test_only_algorithms_that_are_configured_are_used",
    ),
    Mutant(
        "tokens: issuer",
        "service/jwt.py",
        '"essential": True, "value": serve.jwt_issuer',
        '"essential": True',
        f"{JWT}::test_a_token_that_is_not_for_us_or_not_for_now_is_refused",
    ),
    Mutant(
        "tokens: audience",
        "service/jwt.py",
        '"essential": True, "value": serve.jwt_audience',
        '"essential": True',
        f"{JWT}::test_a_token_that_is_not_for_us_or_not_for_now_is_refused",
    ),
    Mutant(
        "tokens: must expire",
        "service/jwt.py",
        'exp={"essential": True}',
        'exp={"essential": False}',
        f"{JWT}::test_a_token_that_is_not_for_us_or_not_for_now_is_refused",
    ),
    Mutant(
        "tokens: type",
        "service/jwt.py",
        "not in _TYPES:",
        "in ():",
        f"{JWT}::test_a_header_cannot_choose_what_is_not_offered",
    ),
    Mutant(
        "tokens: no role",
        "service/jwt.py",
        " or not tenant or not roles:",
        " or not tenant:",
        f"{JWT}::test_a_token_without_a_role_that_is_configured_is_refused_and_never_the_operators",
    ),
    Mutant(
        "tokens: tenant hashed",
        "service/jwt.py",
        "return plain if _PLAIN.fullmatch(said) and id_problem(plain) is None else self._hashed(said)",
        "return plain",
        f"{JWT}::test_a_tenant_that_is_no_plain_name_is_hashed",
    ),
    Mutant(
        "tokens: no redirection",
        "service/issuer_keys.py",
        "build_opener(_Stay)",
        "build_opener()",
        f"{JWT}::test_a_redirection_is_not_followed",
    ),
    Mutant(
        "tokens: no weak key",
        "service/issuer_keys.py",
        "< RSA_BITS",
        "< 8",
        f"{JWT}::test_a_key_for_something_else_or_too_weak_is_not_used",
    ),
    Mutant(
        "tokens: bounded",
        "service/issuer_keys.py",
        "if len(data) > DOCUMENT_BYTES:",
        "if False:",
        f"{JWT}::test_what_is_no_set_of_keys_is_no_answer",
    ),
    Mutant(
        "tokens: fetched not often",
        "service/issuer_keys.py",
        "if self._age(self._tried) < PAUSE_SECONDS:",
        "if False:",
        f"{JWT}::test_keys_are_fetched_anew_for_a_name_that_is_not_known_but_not_often",
    ),
    Mutant(
        "mcp: tools about sessions by role",
        "fronts/mcp/session_tools.py",
        "return self.needs is None or role.allows(self.needs)",
        "return True",
        f"{MCP_ROLES}::test_a_caller_without_a_role_has_no_tools_about_sessions_but_those_of_that_role",
    ),
    Mutant(
        "mcp: tools about sessions in the role",
        "fronts/mcp/calls.py",
        "if tool.needs is not None:",
        "if False:",
        f"{MCP_ROLES}::test_what_runs_for_a_caller_without_a_role_may_do_what_the_role_may",
    ),
    Mutant(
        "callers: elsewhere",
        "service/callers.py",
        "if peer_is_local and not self.needs_key:",
        "if not self.needs_key:",
        f"{CALLERS}::test_who_comes_with_nothing_is_nobody_elsewhere",
    ),
    Mutant(
        "callers: listening elsewhere",
        "service/callers.py",
        "self._serve.require_key or not is_loopback(self._serve.host)",
        "self._serve.require_key",
        f"{CALLERS}::test_nobody_is_the_operator_where_keys_are_required_or_others_can_come",
    ),
    Mutant(
        "callers: headers of a proxy",
        "service/callers.py",
        "if name.startswith(_FORWARDED) or (",
        "if (",
        f"{CALLERS}::test_what_a_web_page_or_a_proxy_brings_is_not_local",
    ),
    Mutant(
        "callers: name of the host",
        "service/callers.py",
        "(host is None or is_loopback(_host_of(host))) and ",
        "",
        f"{CALLERS}::test_what_a_web_page_or_a_proxy_brings_is_not_local",
    ),
    Mutant(
        "callers: other pages",
        "service/callers.py",
        "        if origin is None:\n            return told",
        "        if True:\n            return told",
        f"{CALLERS}::test_what_a_web_page_or_a_proxy_brings_is_not_local",
    ),
    Mutant(
        "callers: pages without an origin",
        "service/callers.py",
        'return told.get("sec-fetch-site", "none") in _OWN_PAGES',
        "return True",
        f"{CALLERS}::test_what_a_web_page_or_a_proxy_brings_is_not_local",
    ),
    Mutant(
        "callers: sessions of the tenant",
        "service/tenants.py",
        "if tenant is None:\n            return self.own",
        "if True:\n            return self.own",
        f"{TENANTS}::test_the_session_of_another_is_as_one_that_never_was",
    ),
    Mutant(
        "rates: one each",
        "service/rate.py",
        "name = caller.tenant, caller.name",
        'name = caller.tenant, ""',
        f"{RATE}::test_one_caller_takes_nothing_from_another",
    ),
    # Tools
    Mutant(
        "tools: those of the role",
        "tools/table.py",
        " if role.allows(name, tool.along_with)",
        "",
        f"{TOOLBOX}::test_a_tool_that_the_role_does_not_have_answers_like_one_that_does_not_exist",
    ),
    Mutant(
        "tools: a role that may not write",
        "tools/toolbox.py",
        "if self.role.may_write or (",
        "if True or (",
        f"{TOOLBOX}::test_a_role_without_writing_changes_nothing_by_any_tool",
    ),
    Mutant(
        "tools: a view that may not be written",
        "tools/toolbox.py",
        "workspace.narrowed(mode=mode, ",
        "workspace.narrowed(",
        f"{TOOLBOX}::test_a_role_without_writing_changes_nothing_by_any_tool",
    ),
    Mutant(
        "tools: a role with one tool that writes",
        "tools/toolbox.py",
        "tool.effect is Effect.WRITE and tool.name in self.role.tools",
        "tool.effect is not Effect.READ",
        f"{TOOLBOX}::test_a_role_with_just_one_tool_that_writes_writes_with_that_one",
    ),
    Mutant(
        "tools: commands that run code",
        "tools/context.py",
        "if command.effect is not Effect.RUN or self.role.may_run_code",
        "if True",
        "tests/tools/test_roles.py::test_no_command_leads_to_guest_code_that_a_role_may_not_run",
    ),
    Mutant(
        "tools: allowed paths",
        "tools/toolbox.py",
        "within=chosen.allowed_paths, ",
        "",
        "tests/tools/files/test_configuration.py::test_only_allowed_paths_can_be_used",
    ),
    Mutant(
        "tools: the time of a call",
        "tools/toolbox.py",
        ", check=self._deadlines.check)",
        ")",
        "tests/tools/files/test_timeout.py::test_a_recursive_listing_stops",
    ),
    Mutant(
        "tools: a task that is cancelled",
        "tools/toolbox.py",
        "            deadline.stop()\n",
        "",
        f"{TOOLBOX}::test_a_task_that_is_cancelled_stops_the_work_and_waits_until_it_has_ended",
    ),
    Mutant(
        "tools: words of an error of ours",
        "tools/toolbox.py",
        "{loaded.tool.name} failed unexpectedly",
        "{loaded.tool.name} failed unexpectedly: {error}",
        f"{TOOLBOX}::test_a_mistake_of_ours_is_an_answer_that_says_nothing_and_a_log_that_says_where",
    ),
    Mutant(
        "tools: unknown arguments",
        "tools/kind.py",
        "                problems.append(self._unknown(name))\n",
        "",
        "tests/tools/test_kind.py::test_a_value_of_another_kind_is_explained",
    ),
    Mutant(
        "tools: numbers without measure",
        "tools/kind.py",
        "if not -LARGEST < value < LARGEST or (",
        "if (",
        "tests/tools/test_kind.py::test_a_number_without_measure_is_refused",
    ),
    Mutant(
        "tools: a lost update by writing",
        "tools/store.py",
        "parents=create_dirs, if_version=if_match)",
        "parents=create_dirs)",
        "tests/tools/agent/test_file_write.py::test_a_lost_update_is_refused_with_the_current_version",
    ),
    Mutant(
        "tools: a lost update by appending",
        "tools/store.py",
        "return workspace.append(path, content, if_version=if_match)",
        "return workspace.append(path, content)",
        "tests/tools/agent/test_file_write.py::test_a_lost_update_is_refused_with_the_current_version",
    ),
    Mutant(
        "tools: a lost update by editing",
        "tools/agent/file_edit.py",
        ", if_version=args.if_match",
        "",
        "tests/tools/agent/test_file_edit.py::test_a_lost_update_is_refused_with_the_current_version",
    ),
    Mutant(
        "tools: a lost update by deleting",
        "tools/deletion.py",
        ", if_version=if_match",
        "",
        "tests/tools/agent/test_file_delete.py",
    ),
    Mutant(
        "tools: data that is too deep",
        "tools/structure.py",
        "return NOTHING if _is_deep(found) else found",
        "return found",
        "tests/tools/test_structure.py::test_what_is_too_deep_stays_text",
    ),
    Mutant(
        "tools: aliases in YAML",
        "tools/structure.py",
        "isinstance(event, yaml.AliasEvent) or ",
        "",
        "tests/tools/test_structure.py::test_what_is_no_plain_yaml_stays_text",
    ),
    Mutant(
        "tools: a cursor into another version",
        "tools/cut.py",
        "if self.version and self.version != version:",
        "if False:",
        "tests/tools/test_cut.py::test_a_cursor_goes_on_only_in_the_version_that_was_begun",
    ),
    # Programs in containers
    Mutant(
        "contained: what is left running",
        "runtimes/container_run.py",
        "                end_left(self._container)",
        "                pass",
        f"{HOSTILE}::test_a_daemon_that_is_left_behind_ends_with_its_command",
    ),
    Mutant(
        "contained: all that was started",
        "runtimes/container_end.py",
        '"kill -9 -1"',
        '"true"',
        f"{HOSTILE}::test_temporary_files_outlive_a_timeout",
    ),
    Mutant(
        "contained: what a killed process left",
        "runtimes/container.py",
        "        if end_left(container):",
        "        if False:",
        f"{HOSTILE}::test_what_a_killed_process_left_running_ends_before_the_next_call",
    ),
    Mutant(
        "contained: quota while it runs",
        "runtimes/quota_guard.py",
        "            self._thread.start()",
        "            pass",
        f"{HOSTILE}::test_one_that_makes_too_many_entries_is_ended",
    ),
    Mutant(
        "contained: quota before",
        "runtimes/container.py",
        "        use.require_room()\n        container = self._container(home)",
        "        container = self._container(home)",
        f"{CONTAINED}::test_a_session_that_holds_too_much_runs_nothing_until_something_goes",
    ),
    Mutant(
        "contained: quota after",
        "runtimes/container.py",
        "if ending.reason is None and changes.problem is not None:",
        "if False:",
        f"{CONTAINED}::test_what_passes_the_quota_between_two_looks_is_told",
    ),
    Mutant(
        "contained: one file",
        "runtimes/container_home.py",
        "        file_bytes=min(sizes, default=None),\n",
        "",
        f"{CONTAINED}::test_one_file_reaches_the_limit_of_a_file_and_no_byte_more",
    ),
    Mutant(
        "contained: memory of the policy",
        "runtimes/container.py",
        "min(policy.memory_bytes, self._settings.memory_bytes)",
        "self._settings.memory_bytes",
        f"{CONTAINED}::test_the_smaller_of_both_ceilings_for_memory_holds",
    ),
    Mutant(
        "contained: views",
        "workspace/direct.py",
        "        if workspace.within is not None:",
        "        if False:",
        f"{CONTAINED}::test_a_view_of_some_files_gives_no_program_the_rest",
    ),
    Mutant(
        "contained: where it begins",
        "runtimes/container.py",
        "    info = workspace.stat(inside)",
        "    return path\n    info = workspace.stat(inside)",
        f"{CONTAINED}::test_a_command_begins_where_the_gate_allows",
    ),
    Mutant(
        "contained: an earlier session",
        "runtimes/container.py",
        "        if self._seen.get(home.name) == (container.id, identity):",
        "        if True:",
        f"{CONTAINED}::test_a_session_made_again_has_no_files_of_the_earlier_one",
    ),
    Mutant(
        "contained: turns of processes",
        "runtimes/turns.py",
        "            if hold is not None:",
        "            if True:",
        f"{CONTAINED}::test_calls_of_one_session_run_one_after_another_in_all_runtimes",
    ),
    Mutant(
        "contained: nobody for root",
        "runtimes/container_home.py",
        "return NOBODY if os.geteuid() == 0 else ",
        "return ",
        f"{HOSTILE}::test_a_program_is_locked_in",
    ),
    Mutant(
        "contained: a file with other names",
        "fs/ownership.py",
        "found.st_nlink > 1",
        "False",
        f"{BYPASS}::TestHandOver::test_a_file_with_another_name_is_left_and_told",
    ),
    # Containers of sessions and of tools
    Mutant(
        "container: a role that may not write",
        "tools/whereabouts.py",
        "if not (role.may_write and role.may_run_code):",
        "if not role.may_run_code:",
        f"{TOOL_CONTAINERS}::test_the_descriptions_say_where_it_runs",
    ),
    Mutant(
        "container: a role that may not run code",
        "tools/whereabouts.py",
        "if not (role.may_write and role.may_run_code):",
        "if not role.may_write:",
        f"{TOOL_CONTAINERS}::test_a_role_that_may_not_write_or_run_code_stays_here",
    ),
    Mutant(
        "container: some paths of a workspace",
        "tools/whereabouts.py",
        "if workspace.within is not None:",
        "if False:",
        f"{TOOL_CONTAINERS}::test_a_part_of_the_workspace_is_given_to_no_container",
    ),
    Mutant(
        "container: guest code is switched off",
        "tools/options.py",
        "found.image is not None and settings.sandbox else None",
        "found.image is not None else None",
        f"{TOOL_CONTAINERS}::test_without_the_operators_word_nothing_runs_there",
    ),
    Mutant(
        "container: gone with its session",
        "workspace/sessions.py",
        "self._containers.remove(session_id)",
        "pass",
        f"{SESSION_CONTAINERS}::test_a_deleted_session_takes_its_container_along_whoever_uses_it",
    ),
    Mutant(
        "container: only of sessions that are gone",
        "workspace/session_containers.py",
        "if os.path.lexists(self._store.root / session_id):\n            return False",
        "if os.path.lexists(self._store.root / session_id):\n            return do()",
        f"{SESSION_CONTAINERS}::test_a_sweep_removes_what_a_killed_process_left",
    ),
    Mutant(
        "container: the engine's own words",
        "errors.py",
        'self.code = f"engine.{problem}"',
        'message, self.code = f"{message}: {detail}", f"engine.{problem}"',
        "tests/fronts/test_container_errors.py::test_an_error_is_rendered_without_it",
    ),
    # Containers
    Mutant(
        "container: capabilities",
        "containers/spec.py",
        '"CapDrop": ["ALL"]',
        '"CapDrop": []',
        f"{CONTAINER}::test_it_is_locked_down",
    ),
    Mutant(
        "container: new privileges",
        "containers/spec.py",
        '[] if self.new_privileges else ["no-new-privileges:true"]',
        "[]",
        f"{CONTAINER}::test_it_is_locked_down",
    ),
    Mutant(
        "container: read-only root",
        "containers/spec.py",
        '"ReadonlyRootfs": self.read_only',
        '"ReadonlyRootfs": False',
        f"{CONTAINER}::test_it_is_locked_down",
    ),
    Mutant(
        "container: its user",
        "containers/spec.py",
        '"User": self.user',
        '"User": "0:0"',
        f"{CONTAINER}::test_it_is_locked_down",
    ),
    Mutant(
        "container: memory",
        "containers/spec.py",
        '"MemorySwap": self.memory_bytes',
        '"MemorySwap": -1',
        f"{CONTAINER}::test_its_ceilings_are_those_of_the_specification",
    ),
    Mutant(
        "container: processes",
        "containers/spec.py",
        '"PidsLimit": self.pids',
        '"PidsLimit": -1',
        f"{CONTAINER}::test_its_ceilings_are_those_of_the_specification",
    ),
    Mutant(
        "container: size of a file",
        "containers/spec.py",
        "if self.file_bytes is not None:",
        "if False:",
        f"{CONTAINER}::test_its_ceilings_are_those_of_the_specification",
    ),
    Mutant(
        "container: only those that nobody uses are swept",
        "containers/hold.py",
        "fd = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fd = _locked(path, fcntl.LOCK_SH)",
        f"{KEEPER}::test_a_sweep_leaves_what_is_used_and_removes_what_a_killed_process_left",
    ),
    Mutant(
        "container: another's is found, not an error",
        "containers/keeper.py",
        'if error.problem != "conflict":',
        "if True:",
        f"{KEEPER}::test_many_keepers_at_once_get_one_container",
    ),
    Mutant(
        "container: other settings",
        "containers/keeper.py",
        "if not hold.alone():",
        "if False:",
        f"{KEEPER}::test_other_settings_wait_for_those_who_use_the_container",
    ),
]


def run_tests(
    sources: Path, tests: Iterable[str], place: Path, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run tests on the package in *sources*, and be sure that it is that one."""
    path = os.pathsep.join((str(sources), str(TOP)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    # As little as will do: most of the time goes into starting.
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    return subprocess.run(
        [sys.executable, "-c", RUN, str(sources), *options, f"--basetemp={place / 'tmp'}", *tests],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=seconds,
        check=False,
    )


def survives(mutant: Mutant) -> bool:
    """Whether the tests of *mutant* pass on it.

    Raises:
        StaleError: The sources have changed, and the mutant has to follow.
        BrokenError: The tests could not be run.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        place = Path(name)
        sources = place / "src"
        shutil.copytree(SOURCES, sources)
        mutant.apply(sources)
        try:
            done = run_tests(sources, [mutant.tests], place)
        except subprocess.TimeoutExpired:
            return False
    if done.returncode not in (PASSED, FAILED):
        raise BrokenError(f"the tests of mutant {mutant.name!r} were not run\n{done.stdout}{done.stderr}")
    return done.returncode == PASSED


def verdict(mutant: Mutant) -> str:
    """What became of *mutant*."""
    try:
        # Twice, because a test that depends on chance may miss it once.
        return "SURVIVED" if survives(mutant) and survives(mutant) else "killed"
    except StaleError as error:
        return f"STALE: {error}"
    except BrokenError as error:
        return f"BROKEN: {error}"


def unchanged() -> str:
    """What the tests of all mutants say of the sources as they are; nothing if they pass."""
    tests = sorted({mutant.tests for mutant in MUTANTS})
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        done = run_tests(SOURCES, tests, Path(place), seconds=10 * SECONDS)
    return "" if done.returncode == PASSED else f"{done.stdout}{done.stderr}"


def main(names: list[str]) -> int:
    """Run the mutants with these names, or all; the exit status is 1 unless all are killed."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    # Twice, because a machine under load may fail a test that is right.
    if not names and (problem := unchanged()) and (problem := unchanged()):
        print(f"the tests do not even pass on the unchanged sources:\n{problem}", file=sys.stderr)
        return 1
    killed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, became in zip(chosen, pool.map(verdict, chosen), strict=True):
            print(f"{became:10} {mutant.name}", flush=True)
            killed += became == "killed"
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
