"""Reading, writing, moving and removing files."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FILES = "tests/faults/test_guards_of_files.py"
GATE = "tests/faults/test_guards_of_the_gate.py"
DRAFTS = "tests/faults/test_drafts.py"
KILLED = "tests/faults/test_killed.py"
GROWTH = "tests/faults/test_growth.py"
DEPTH = "tests/faults/test_depth.py"
ARCHIVE = "tests/attack/test_archive.py"
MEMBER = f"{ARCHIVE}::test_a_hostile_member_refuses_the_whole_archive"

MUTANTS = [
    Mutant(
        "extract: what is announced as too large is not read",
        "workspace/archive/spool.py",
        "    ledger.require_spool(known, coming_bytes=known, replacing=replacing)\n",
        "    ledger.require_spool(0, replacing=replacing)\n",
        "tests/workspace/archive/test_spool.py::test_what_is_announced_as_too_large_is_not_read",
    ),
    Mutant(
        "extract: what is announced beyond a ceiling is not read",
        "workspace/archive/spool.py",
        """    require("archive_bytes", known, limit, "has {} bytes")\n""",
        "",
        "tests/workspace/archive/test_spool.py::test_what_is_announced_as_too_large_is_not_read",
    ),
    Mutant(
        "extract: what is announced leaves enough free",
        "storage/quota.py",
        "        self.require_free(coming_bytes)\n",
        "        self.require_free()\n",
        "tests/faults/test_low_disk.py"
        "::test_an_archive_that_would_leave_too_little_is_refused_before_it_is_read",
    ),
    Mutant(
        "extract: no more is taken in than fits",
        "workspace/archive/spool.py",
        "            ledger.require_spool(size, replacing=replacing)\n",
        "",
        "tests/workspace/archive/test_spool.py::test_an_archive_that_cannot_fit_is_not_taken_in",
    ),
    Mutant(
        "move: depth of the whole tree",
        "workspace/workspace.py",
        "            self._require_moved_depth(files, where, place)\n",
        "",
        "tests/workspace/test_moving.py::test_a_moved_tree_is_held_to_the_depth_of_a_path",
    ),
    # Reading
    Mutant(
        "read: regular files only",
        "fs/local/root_reading.py",
        "            found = os.fstat(fd)\n            if not stat.S_ISREG(found.st_mode):\n"
        "                raise not_a_file(found, where)\n            wanted",
        "            found = os.fstat(fd)\n            wanted",
        f"{FILES}::test_only_regular_files_are_read",
    ),
    Mutant(
        "read by chunks: regular files only",
        "fs/local/root_reading.py",
        "        found = os.fstat(handle.fd)\n        if not stat.S_ISREG(found.st_mode):\n",
        "        found = os.fstat(handle.fd)\n        if found is None:\n",
        f"{FILES}::test_a_device_is_not_read",
    ),
    Mutant(
        "read: does not wait",
        "fs/local/root_reading.py",
        "_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY",
        "_READ = os.O_RDONLY | os.O_NOCTTY",
        f"{FILES}::test_only_regular_files_are_read",
    ),
    Mutant(
        "append: does not wait",
        "fs/local/root.py",
        "_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY",
        "_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOCTTY",
        f"{FILES}::test_only_regular_files_are_read",
    ),
    Mutant(
        "read: size",
        "fs/local/root_reading.py",
        "if limit is not None and wanted > limit:",
        "if limit is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "read: growth",
        "fs/local/content.py",
        "piece = os.read(fd, min(2**16, ceiling + 1 - size))",
        "piece = os.read(fd, 2**16)",
        f"{GROWTH}::test_a_file_that_grows_past_the_limit_is_read_no_further_than_one_byte_past_it",
    ),
    Mutant(
        "read: a slash after a file",
        "fs/local/root_reading.py",
        "        flags = _READ | os.O_DIRECTORY if where.must_dir else _READ\n        fd =",
        "        flags = _READ\n        fd =",
        f"{FILES}::test_a_slash_after_a_file_is_refused_by_every_operation",
    ),
    Mutant(
        "stat: a slash after a file",
        "fs/local/root_reading.py",
        "        if where.must_dir:\n            flags |= os.O_DIRECTORY\n",
        "        if where is None:\n            flags |= os.O_DIRECTORY\n",
        f"{FILES}::test_a_slash_after_a_file_is_refused_by_every_operation",
    ),
    # Removing and moving
    Mutant(
        "remove, move: a slash after a file",
        "fs/local/lookup.py",
        "if where.must_dir and not stat.S_ISDIR(found.st_mode):",
        "if found is None:",
        f"{FILES}::test_a_slash_after_a_file_is_refused_by_every_operation",
    ),
    Mutant(
        "move: a slash after the target of a file",
        "fs/local/root.py",
        "if target.must_dir and info.kind is not FileKind.DIRECTORY:",
        "if target is None:",
        f"{FILES}::test_a_slash_after_a_file_is_refused_by_every_operation",
    ),
    Mutant(
        "remove, move: the workspace itself",
        "fs/local/lookup.py",
        '            self._require_inside(directory, where)\n            raise PathError(f"path',
        "            self._require_inside(directory, where)\n            return directory\n"
        '            raise PathError(f"path',
        f"{FILES}::test_the_workspace_itself_is_neither_removed_nor_moved",
    ),
    Mutant(
        "move: no clobbering",
        "fs/local/root.py",
        "            if existing is Existing.REPLACE:\n                os.rename(",
        "            if existing:\n                os.rename(",
        f"{FILES}::test_what_appears_after_the_last_look_is_not_clobbered",
    ),
    Mutant(
        "copy: not into itself",
        "workspace/copy.py",
        "if above.inode == top.inode:",
        "if above is None:",
        f"{FILES}::test_a_directory_goes_neither_into_itself_nor_over_another",
    ),
    # Writing
    Mutant(
        "append: other names",
        "fs/rules.py",
        "if found.st_nlink != 1:",
        "if found.st_nlink == 0:",
        f"{FILES}::test_an_append_does_not_change_another_name_of_the_file",
    ),
    Mutant(
        "append: regular files only",
        "fs/local/root.py",
        "            found = os.fstat(held.fd)\n            if not stat.S_ISREG(found.st_mode):\n"
        "                raise not_a_file(found, where)\n            if expect is not None",
        "            found = os.fstat(held.fd)\n            if expect is not None",
        f"{FILES}::test_appending_to_a_fifo_with_a_reader_is_refused",
    ),
    Mutant(
        "append: size",
        "fs/local/root.py",
        "if limit is not None and after > limit:",
        "if limit is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "append: as long as before",
        "fs/local/content.py",
        "    except OSError:\n        os.ftruncate(fd, size)\n        raise",
        "    except OSError:\n        raise",
        f"{DRAFTS}::test_a_failed_append_leaves_the_file_as_long_as_it_was",
    ),
    Mutant(
        "write: read-only files",
        "fs/rules.py",
        "if not found.st_mode & 0o222:",
        "if found is None:",
        f"{FILES}::test_a_file_that_nobody_may_write_is_not_written",
    ),
    Mutant(
        "write: regular files only",
        "fs/local/lookup.py",
        "if not stat.S_ISREG(before.st_mode):",
        "if before is None:",
        f"{FILES}::test_only_regular_files_are_read",
    ),
    Mutant(
        "write: through an absolute link",
        "fs/local/lookup.py",
        "            if where.absolute:\n                raise translate(errno.EXDEV, where)\n",
        "",
        f"{FILES}::test_a_write_goes_through_links_inside_and_through_no_others",
    ),
    Mutant(
        "mkdir: dots in what is missing",
        "fs/local/lookup.py",
        'if ".." in parts[known:]:',
        "if parts is None:",
        f"{FILES}::test_directories_are_made_only_below_what_is_there",
    ),
    Mutant(
        "mkdir: no following of what was just made",
        "fs/local/lookup.py",
        "here = Handle(self.resolver.open(here.fd, name, PARENT | os.O_NOFOLLOW))",
        "here = Handle(self.resolver.open(here.fd, name, PARENT))",
        f"{FILES}::test_a_directory_that_is_swapped_while_directories_are_made_is_not_followed",
    ),
    Mutant(
        "write: a version that goes meanwhile",
        "fs/local/version.py",
        "if version != expect or (now and held and inode_id(now) != inode_id(os.fstat(held.fd))):",
        "if not now:",
        f"{FILES}::test_a_version_that_goes_while_another_is_written_is_not_replaced",
    ),
    Mutant(
        "append: a version that goes meanwhile",
        "fs/local/root.py",
        "if version != expect or version_of(found) != expect:",
        "if version is None:",
        f"{FILES}::test_a_version_that_goes_before_it_is_locked_is_left",
    ),
    Mutant(
        "append: a version that lost its name",
        "fs/local/root.py",
        "if version != expect or version_of(found) != expect:",
        "if version_of(found) != expect:",
        f"{FILES}::test_a_version_that_loses_its_name_before_it_is_locked_is_left",
    ),
    Mutant(
        "append: one version at a time",
        "fs/local/root.py",
        "        lock_soon(held.fd)\n",
        "",
        f"{FILES}::test_a_version_that_somebody_else_is_replacing_is_left_to_them",
    ),
    Mutant(
        "remove: the expected version",
        "fs/local/root.py",
        "held = None if expect is None else locked_version(parent, where, expect)\n"
        "            if info.kind is FileKind.DIRECTORY:",
        "held = None\n            if info.kind is FileKind.DIRECTORY:",
        f"{FILES}::test_a_version_that_goes_before_it_is_locked_is_left",
    ),
    Mutant(
        "remove a tree: the expected version",
        "fs/local/root.py",
        "held = None if expect is None else locked_version(parent, where, expect)\n"
        "            if info.kind is not FileKind.DIRECTORY:",
        "held = None\n            if info.kind is not FileKind.DIRECTORY:",
        f"{FILES}::test_a_version_that_goes_before_it_is_locked_is_left",
    ),
    Mutant(
        "move: the expected version",
        "fs/local/root.py",
        "held = None if expect is None else locked_version(parent, where, expect)\n"
        "            self._move_to(",
        "held = None\n            self._move_to(",
        f"{FILES}::test_a_version_that_goes_before_it_is_locked_is_left",
    ),
    Mutant(
        "move to another rule: the expected version",
        "workspace/workspace.py",
        "uncancellable(copy.source).remove_tree(where, expect=expect)",
        "uncancellable(copy.source).remove_tree(where)",
        "tests/workspace/test_versions.py"
        "::test_what_changes_while_it_moves_to_another_rule_stays_and_its_copy_goes",
    ),
    Mutant(
        "version: only regular files are opened",
        "fs/local/version.py",
        "if seen and stat.S_ISREG(seen.st_mode) else None",
        "if seen else None",
        f"{FILES}::test_what_is_no_file_is_not_opened_to_lock_it",
    ),
    Mutant(
        "write: one version at a time",
        "fs/local/version.py",
        "    lock_soon(held.fd)\n",
        "",
        f"{FILES}::test_a_version_that_somebody_else_is_replacing_is_left_to_them",
    ),
    Mutant(
        "link: not out",
        "paths/parsed_path.py",
        "        if depth < 0:\n            return True\n",
        "        if depth is None:\n            return True\n",
        f"{FILES}::test_no_link_that_leads_out_is_made_by_copying",
    ),
    Mutant(
        "link: not absolute",
        "paths/parsed_path.py",
        "return then.absolute",
        "return False",
        f"{FILES}::test_no_link_that_leads_out_is_made_by_copying",
    ),
    # Drafts
    Mutant(
        "draft: no clobbering of what appears, unnamed",
        "fs/local/draft.py",
        "            syscalls.link_held_unchecked(self.fd, directory.fd, name)\n            return\n",
        "            self.replace(directory, name)\n            return\n",
        "tests/fs/local/test_draft.py::test_a_taken_name_is_left_alone",
    ),
    Mutant(
        "draft: no clobbering of what appears, named",
        "fs/local/draft.py",
        "        rename_without_replacing(self._names.fd, self._name, directory.fd, name)",
        "        os.rename(self._name, name, src_dir_fd=self._names.fd, dst_dir_fd=directory.fd)",
        "tests/fs/local/test_draft.py::test_a_taken_name_is_left_alone",
    ),
    Mutant(
        "draft: no clobbering without flags",
        "fs/local/draft.py",
        "    os.link(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir, follow_symlinks=False)\n"
        "    os.unlink(source, dir_fd=source_dir)",
        "    os.rename(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir)",
        "tests/fs/local/test_draft.py::test_a_rename_to_a_taken_name_is_refused",
    ),
    Mutant(
        "draft: no clobbering of directories without flags",
        "fs/local/draft.py",
        "        os.mkdir(target, 0o700, dir_fd=target_dir)\n",
        "",
        "tests/fs/local/test_draft.py::test_a_rename_to_a_taken_name_is_refused",
    ),
    Mutant(
        "draft: discarded",
        "fs/local/draft.py",
        "                os.unlink(self._name, dir_fd=self._names.fd)",
        "                pass",
        f"{FILES}::test_a_write_that_fails_leaves_no_draft_and_no_directory",
    ),
    Mutant(
        "draft: discarded on failure",
        "fs/local/draft.py",
        "    def __exit__(self, *exception: object) -> None:\n        self.discard()\n",
        "    def __exit__(self, *exception: object) -> None:\n        pass\n",
        f"{FILES}::test_a_write_that_fails_leaves_no_draft_and_no_directory",
    ),
    Mutant(
        "draft: directories taken away on failure",
        "fs/local/root.py",
        "                if not unmake(made):\n"
        "                    account.mark_dirty()\n                raise\n"
        "            account.flush_on_exit(*(each.parent for each in made), parent)\n            del held",
        "                raise\n            account.flush_on_exit(parent)\n            del held",
        f"{FILES}::test_a_write_that_cannot_be_put_in_place_leaves_no_directory",
    ),
    Mutant(
        "draft: locked",
        "fs/local/draft.py",
        "            lock_soon(self.fd)",
        "            pass",
        f"{FILES}::test_a_draft_is_locked_as_long_as_it_is_written",
    ),
    Mutant(
        "sweep: not what is locked",
        "fs/local/draft.py",
        "        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    finally",
        "        pass\n    finally",
        f"{FILES}::test_a_draft_is_locked_as_long_as_it_is_written",
    ),
    Mutant(
        "sweep: not what is young",
        "fs/local/draft.py",
        "if found.st_mtime > oldest:",
        "if found is None:",
        f"{FILES}::test_a_young_draft_is_left_alone_and_an_old_one_is_not",
    ),
    Mutant(
        "sweep: drafts only",
        "fs/local/draft.py",
        "        if not name.startswith(DRAFT_PREFIX):\n            continue\n"
        "        with suppress(OSError):\n            if _is_abandoned",
        "        with suppress(OSError):\n            if _is_abandoned",
        f"{FILES}::test_a_young_draft_is_left_alone_and_an_old_one_is_not",
    ),
    Mutant(
        "sweep: trash that somebody removes",
        "fs/local/scratch.py",
        "if not _is_held(trash.fd, name):",
        "if name:",
        f"{KILLED}::test_a_tree_in_the_trash_is_left_to_its_living_remover",
    ),
    Mutant(
        "draft: named where nothing else can be had",
        "fs/local/draft.py",
        "        if error.errno not in _NO_TMPFILE:\n            raise\n        return -1",
        "        raise",
        f"{DRAFTS}::test_files_are_still_created_replaced_and_never_clobbered",
    ),
    # Trees
    Mutant(
        "tree: no following",
        "fs/local/removal.py",
        "SCAN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC",
        "SCAN = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC",
        f"{FILES}::test_a_removal_does_not_follow_a_link_that_was_a_directory",
    ),
    Mutant(
        "tree: no following by a walk",
        "fs/local/walk.py",
        "return Handle(self._open(parent.fd, os.fsencode(info.name), SCAN))",
        "return Handle(self._open(parent.fd, os.fsencode(info.name), SCAN & ~os.O_NOFOLLOW))",
        f"{FILES}::test_a_walk_does_not_follow_a_link_that_was_a_directory",
    ),
    Mutant(
        "tree: a listing does not ask targets",
        "fs/local/walk.py",
        "entry.stat(follow_symlinks=False)))",
        "entry.stat()))",
        f"{FILES}::test_a_listing_tells_nothing_about_the_target_of_a_link",
    ),
    Mutant(
        "tree: depth of a walk",
        "fs/local/walk.py",
        "if self._depth is not None and len(levels) >= self._depth:",
        "if self._depth is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "tree: too deep is told",
        "fs/local/walk.py",
        "if deeper is not None and self._depth is not None:",
        "if deeper is not None and self._depth is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "tree: entries of a walk",
        "fs/local/walk.py",
        "if self._entries is not None and seen >= self._entries:",
        "if self._entries is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "tree: entries of a listing",
        "fs/local/walk.py",
        "if limit is not None and len(found) >= limit:",
        "if limit is None:",
        f"{FILES}::test_a_limit_is_held",
    ),
    Mutant(
        "tree: depth of a removal",
        "fs/local/removal.py",
        "if len(levels) < LEVELS:",
        "if levels:",
        f"{DEPTH}::test_a_tree_of_20000_levels_is_walked_to_the_limit_and_removed[bare-kernel]",
    ),
    Mutant(
        "tree: shut directories",
        "fs/local/removal.py",
        "    except PermissionError:\n        unlock(open_child, parent, name)\n"
        "        fd = open_child(parent, name, SCAN)",
        "    except PermissionError:\n        raise",
        f"{DEPTH}::test_shut_directories_at_any_depth_are_removed_without_root",
    ),
    Mutant(
        "tree: what cannot be opened up is not gone",
        "fs/syscalls.py",
        "is still there.\n        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None",
        "is still there.\n        raise",
        f"{DEPTH}::test_without_proc_a_shut_directory_is_refused_or_removed_but_never_said_to_be_gone",
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
    # Archives
    Mutant(
        "archive: a member that climbs",
        "workspace/archive/members.py",
        'if ".." in where.parts:',
        "if False:",
        MEMBER,
    ),
    Mutant(
        "archive: a name with a backslash",
        "workspace/archive/members.py",
        'if "\\\\" in name:',
        "if False:",
        MEMBER,
    ),
    Mutant(
        "archive: a member through a link",
        "workspace/archive/members.py",
        'raise EscapeError(f"member {path[:80]!r} goes through a link", path=path)',
        "return",
        MEMBER,
    ),
    Mutant(
        "archive: a link that leads out",
        "workspace/archive/members.py",
        "require_link(path, member.target)",
        "pass",
        MEMBER,
    ),
    Mutant(
        "archive: a link that climbs after a name",
        "workspace/archive/members.py",
        ' or ".." in names',
        "",
        MEMBER,
    ),
    Mutant(
        "archive: a hard link to a link",
        "workspace/archive/members.py",
        "original is None or original.kind is not FileKind.FILE",
        "original is None",
        f"{ARCHIVE}::test_a_hard_link_leads_to_an_earlier_file_or_nowhere",
    ),
    Mutant(
        "archive: names that differ in case",
        "workspace/archive/members.py",
        "elif is_link or self._folded[folded]:",
        "elif False:",
        MEMBER,
    ),
    Mutant(
        "archive: a device",
        "workspace/archive/tar.py",
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
        "workspace/archive/extract.py",
        "            deque(content, maxlen=0)\n        return plan",
        "        return plan",
        f"{ARCHIVE}::test_a_zip_archive_that_lies_is_refused",
    ),
]
