"""Sessions: their rules, their quota, their journal and their end."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FILES = "tests/faults/test_guards_of_files.py"
GATE = "tests/faults/test_guards_of_the_gate.py"
CLOSED = "tests/faults/test_closed.py"
GROWTH = "tests/faults/test_growth.py"
FLUSHING = "tests/faults/test_flushing_fails.py"
POWER = (
    "tests/faults/test_power_loss.py"
    "::test_an_acknowledged_change_is_on_the_disk_and_one_in_the_middle_is_made_or_not"
)

MUTANTS = [
    Mutant(
        "lease: not in a forked child",
        "storage/local/store.py",
        "        self._lock = RLock()\n        self._handle = None\n\n",
        "        self._lock = RLock()\n\n",
        "tests/storage/local/test_at_fork.py::test_a_forked_child_keeps_no_session_in_use",
    ),
    # Ledgers, sessions and sweeps
    Mutant(
        "ledger: the quota is asked",
        "storage/local/ledger.py",
        "        self._quota.require(disk_bytes, entries, more_bytes, more_entries)\n        self._dura",
        "        self._dura",
        "tests/storage/test_quota.py::test_a_refusal_says_how_much_and_what_the_limit_is",
    ),
    Mutant(
        "ledger: one at a time",
        "storage/local/lock.py",
        "            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            pass\n",
        "tests/storage/local/test_ledger.py::test_sixteen_processes_fill_a_session_to_its_limit_and_no_further",
    ),
    Mutant(
        "ledger: a lock of others is not waited for at once",
        "storage/local/lock.py",
        "        require_may_block()\n        with blocking():\n            self._poll",
        "        with blocking():\n            self._poll",
        "tests/workspace/test_nonblocking.py"
        "::test_what_another_process_holds_is_not_waited_for_and_nothing_is_changed",
    ),
    Mutant(
        "ledger: what must be counted is not counted at once",
        "storage/local/ledger.py",
        "            require_may_block()\n            self.flush_unmediated()\n            self._settle",
        "            self.flush_unmediated()\n            self._settle",
        "tests/workspace/test_nonblocking.py::test_a_session_that_must_be_counted_first_is_left_to_a_thread",
    ),
    Mutant(
        "ledger: a mark is settled",
        "storage/local/ledger.py",
        "        if page.mark & OPEN:\n",
        "        if page is None:\n",
        "tests/storage/local/test_ledger.py"
        "::test_a_kill_between_mark_and_change_is_seen_by_all_who_have_the_session_open",
    ),
    Mutant(
        "ledger: a deleted session is told",
        "storage/local/ledger.py",
        "        if page is not None and page.mark & DELETED:\n",
        "        if page is None and page:\n",
        "tests/sessions/test_manager.py"
        "::test_who_still_uses_a_deleted_session_hears_of_it_and_nothing_comes_back",
    ),
    Mutant(
        "store: a claim is on what is there now",
        "storage/local/store.py",
        "        is_in_place = _is_at(state, states, session_id)\n",
        "        is_in_place = True\n",
        "tests/sessions/test_manager.py::test_a_maker_that_comes_in_the_middle_of_deleting_waits_for_its_end",
    ),
    Mutant(
        "sweep: a session in use stays",
        "sessions/sweeper.py",
        "                if claim.is_in_use():\n",
        "                if claim is None:\n",
        "tests/sessions/test_sweeper.py::test_a_session_that_this_process_has_open_is_skipped",
    ),
    Mutant(
        "sweep: the latest use counts",
        "sessions/sweeper.py",
        "        if latest.used_ns > current.used_ns:\n",
        "        if latest is None:\n",
        "tests/sessions/test_sweeper.py::test_the_latest_use_that_anything_tells_of_counts",
    ),
    Mutant(
        "sweep: few look at every session",
        "sessions/sweeper.py",
        "not last <= now < last + FULL_SWEEP_SECONDS * 10**9",
        "now > 0",
        "tests/sessions/test_sweeper.py"
        "::test_a_later_sweep_with_nothing_to_do_takes_the_same_steps_however_many_sessions_there_are",
    ),
    Mutant(
        "sweep: one of an hour looks at every session",
        "sessions/sweeper.py",
        "not last <= now < last + FULL_SWEEP_SECONDS * 10**9",
        "now < last",
        "tests/sessions/test_sweeper.py::test_only_the_first_sweep_of_an_hour_looks_at_every_session",
    ),
    Mutant(
        "sweep: the time of a look is kept for directories that are opened again",
        "sessions/manager.py",
        "        other._full_sweeps = self._full_sweeps\n",
        "",
        "tests/sessions/test_sweeper.py"
        "::test_each_tenant_is_looked_at_once_an_hour_however_often_its_directory_is_opened",
    ),
    Mutant(
        "ledger: what programs did is counted",
        "storage/local/ledger.py",
        "        if page.mark & UNMEDIATED and not self._lock.has_unmediated():\n",
        "        if page is None:\n",
        "tests/storage/local/test_ledger.py"
        "::test_a_change_does_not_take_away_the_count_that_killed_programs_need",
    ),
    Mutant(
        "ledger: no change in the middle of another",
        "storage/local/ledger.py",
        "        self._reentry.require_none()\n",
        "",
        "tests/storage/local/test_ledger.py::test_a_signal_handler_in_the_middle_of_a_change_is_told_so",
    ),
    Mutant(
        "journal: bounded",
        "audit/journal_files.py",
        "            for number in self.numbers(directory)[:-KEPT_FILES]:\n",
        "            for number in ():\n",
        "tests/audit/test_journal.py::test_a_journal_keeps_the_newest_records_in_bounded_space",
    ),
    Mutant(
        "journal: what is missing at the end",
        "audit/journal.py",
        "                    chain.require_end(head, until.sequence)\n",
        "",
        "tests/audit/test_chain.py::test_a_record_that_is_not_as_it_was_written_is_named",
    ),
    Mutant(
        "journal: an edited record",
        "audit/chain.py",
        "        if line.digest != last.digest:\n",
        "        if not last:\n",
        "tests/audit/test_chain.py::test_a_record_that_is_not_as_it_was_written_is_named",
    ),
    # Refusals that are repeated
    Mutant(
        "repeats: by the path",
        "storage/repeats.py",
        "event.operation, event.path, event.other_path",
        "event.operation, event.other_path",
        "tests/storage/test_repeats.py::test_nothing_that_differs_is_a_repeat",
    ),
    Mutant(
        "repeats: counted, not recorded",
        "storage/repeats.py",
        "                counted.repeats += 1\n                return due\n",
        "                return [*due, event]\n",
        "tests/storage/test_recorder.py"
        "::test_twenty_thousand_refusals_of_the_same_are_one_record_and_a_number",
    ),
    Mutant(
        "repeats: recorded at the end",
        "storage/recorder.py",
        "        self.record_repeats()\n        self._journal.close()",
        "        self._journal.close()",
        "tests/storage/test_recorder.py::test_what_was_counted_is_recorded_when_the_workspace_is_closed",
    ),
    # Durability
    Mutant(
        "durability: the content before its name",
        "fs/local/publish.py",
        "    account.flush(draft.fd)\n    with",
        "    with",
        POWER + "[write over]",
    ),
    Mutant(
        "durability: the directory of a change",
        "storage/local/ledger.py",
        "                self._durability.flush_held(held.fd)\n",
        "                pass\n",
        POWER + "[mkdir with parents]",
    ),
    Mutant(
        "durability: the mark before the record",
        "storage/local/ledger.py",
        "            self._flush_page()\n            self._recorded",
        "            self._recorded",
        POWER + "[move over]",
    ),
    Mutant(
        "durability: the record",
        "audit/journal.py",
        "                self._flush(series.fd)\n",
        "                pass\n",
        POWER + "[append]",
    ),
    Mutant(
        "durability: the head of the journal",
        "audit/journal.py",
        "series.last)\n        self._flush_data(self._heads.fd)\n",
        "series.last)\n",
        POWER + "[write over]",
    ),
    Mutant(
        "durability: an append",
        "fs/local/content.py",
        "        flush(fd)\n",
        "",
        POWER + "[append]",
    ),
    Mutant(
        "durability: what programs changed",
        "workspace/unmediated_run.py",
        "        self._gate.ledger.flush_unmediated()\n",
        "",
        POWER + "[programs]",
    ),
    Mutant(
        "durability: a session that is deleted",
        "storage/local/store.py",
        "        self._flush(directory, scratch.trash)\n",
        "",
        "tests/faults/test_power_loss.py"
        "::test_a_session_stays_deleted_and_comes_back_whole_if_that_was_not_acknowledged",
    ),
    Mutant(
        "durability: the registry",
        "storage/local/database.py",
        'Durability.DISK: "EXTRA"',
        'Durability.DISK: "NORMAL"',
        "tests/faults/test_power_loss.py::test_a_longer_life_is_on_the_disk",
    ),
    Mutant(
        "durability: a failed flush leaves its mark",
        "storage/local/ledger.py",
        "            for held in self._changed:\n",
        "            write_page(self._lock.fd, self._next or self._current)\n"
        "            for held in self._changed:\n",
        FLUSHING + "::test_a_change_whose_flush_fails_is_an_error_and_settled_by_whoever_comes_next",
    ),
    Mutant(
        "durability: a record that cannot be flushed",
        "storage/recorder.py",
        "if self._durability is Durability.PROCESS or all(",
        "if self._durability or all(",
        FLUSHING + "::test_a_record_that_cannot_be_flushed_refuses_the_change_and_says_so",
    ),
    Mutant(
        "durability: an event loop does not wait",
        "storage/local/ledger.py",
        "        self._durability.require_waiting()\n        position",
        "        position",
        FLUSHING + "::test_an_event_loop_does_not_wait_for_the_disk",
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
        "workspace/views.py",
        "for index, spellings in enumerate(self.roots):",
        "for index, spellings in reversed(list(enumerate(self.roots))):",
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
        "workspace/views.py",
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
        "if location.rule is None or access not in self._allowed[location.rule]:",
        "if location.rule is None:",
        f"{GATE}::test_a_read_only_workspace_is_not_changed",
    ),
    Mutant(
        "gate: both ends of a move",
        "workspace/writing.py",
        "        files, parsed = self.gate.permit(Access.WRITE, source)\n",
        "        files, parsed = self.gate.permit(Access.READ, source)\n",
        f"{GATE}::test_both_ends_of_a_move_and_the_target_of_a_copy_are_judged",
    ),
    Mutant(
        "gate: a view shows no records of the rest",
        "workspace/gate.py",
        "return found if shown is None else filter(shown.includes, found)",
        "return found",
        "tests/workspace/test_views.py::test_a_part_shows_only_records_of_what_it_shows",
    ),
    Mutant(
        "service: a role is shown no records of other paths",
        "service/journal_stream.py",
        "        if view is None or view.includes(event):\n",
        "        if True:\n",
        "tests/service/test_service.py::test_a_role_is_told_only_of_the_paths_that_it_may_use",
    ),
    Mutant(
        "gate: refusals are recorded",
        "workspace/gate.py",
        "        self._recorder.refuse(operation, _cut(error), error.code)\n",
        "",
        f"{GATE}::test_a_refusal_is_recorded_and_logged",
    ),
    Mutant(
        "gate: refusals are logged",
        "storage/recorder.py",
        '                (event.error or "").replace(".", "_"),',
        '                "something",',
        f"{GATE}::test_a_refusal_is_recorded_and_logged",
    ),
    Mutant(
        "gate: refusals are noticed",
        "workspace/gate.py",
        "                self.gate.record_refusal(operation, error)\n",
        "",
        f"{GATE}::test_a_refusal_is_recorded_and_logged",
    ),
    Mutant(
        "record: a lost record is not the operation's failure",
        "storage/recorder.py",
        "        except (OSError, ClosedError) as error:",
        "        except ZeroDivisionError as error:",
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
        "        require_size(size, limit, path)\n        yield chunk",
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
        "fs/local/lookup.py",
        '        """Release the directory; it closes when the last running operation is done."""\n'
        "        self._base = None",
        '        """Release the directory; it closes when the last running operation is done."""',
        f"{GATE}::test_a_closed_root_says_so",
    ),
    # WorkspaceManager
    Mutant(
        "id: its characters",
        "paths/session_id.py",
        "if not _ID.fullmatch(session_id):",
        "if not _ID.match(session_id):",
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: how it begins",
        "paths/session_id.py",
        'r"[A-Za-z0-9_][A-Za-z0-9_-]*',
        'r"[A-Za-z0-9_-]*',
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: ASCII",
        "paths/session_id.py",
        r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*\", re.ASCII)".replace('\\"', '"'),
        r"\w[\w-]*(?:\.[\w-]+)*" + '")',
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: its length",
        "paths/session_id.py",
        "if len(session_id) > ID_CHARACTERS:",
        "if session_id is None:",
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: device names",
        "paths/session_id.py",
        "if _DEVICE.match(session_id):",
        "if session_id is None:",
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "id: its type",
        "paths/session_id.py",
        "    if not isinstance(session_id, str):\n"
        '        raise SessionIdError(f"session id must be str, not {type(session_id).__name__}")\n'
        "    session_id = str.__str__(session_id)\n",
        '    session_id = session_id if isinstance(session_id, str) else str(session_id).strip("b\'")\n',
        f"{GATE}::test_what_is_no_session_id_is_refused",
    ),
    Mutant(
        "session: a link in its place",
        "fs/host/trusted_dirs.py",
        "handle = Handle(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent.fd))",
        "handle = Handle(os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=parent.fd))",
        f"{GATE}::test_a_session_is_not_made_of_something_that_is_there",
    ),
    Mutant(
        "session: a file in its place",
        "fs/host/trusted_dirs.py",
        "elif not stat.S_ISDIR(found.st_mode):",
        "elif found is None:",
        f"{GATE}::test_a_session_is_not_made_of_something_that_is_there",
    ),
    Mutant(
        "session: somebody else's",
        "fs/host/trusted_dirs.py",
        "return None if found.st_uid == os.geteuid() else",
        "return None if found else",
        f"{GATE}::test_a_directory_of_somebody_else_is_not_used",
    ),
    Mutant(
        "session: closed to others",
        "storage/local/store.py",
        "os.mkdir(self.session_id, 0o700, dir_fd=directory.fd)",
        "os.mkdir(self.session_id, dir_fd=directory.fd)",
        f"{GATE}::test_what_is_made_for_sessions_is_closed_to_others",
    ),
    Mutant(
        "sessions: writable for others",
        "fs/host/trusted_dirs.py",
        "if found.st_mode & 0o022:",
        "if found is None:",
        f"{GATE}::test_a_sessions_directory_that_others_may_write_to_is_not_used",
    ),
    Mutant(
        "sessions: a link",
        "fs/host/trusted_dirs.py",
        "_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
        "_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
        f"{GATE}::test_a_sessions_directory_that_is_a_link_is_not_used",
    ),
    # Remembering
    Mutant(
        "logger: control characters",
        "audit/logger.py",
        "    if text.isprintable():\n        return text\n",
        "    return text\n",
        f"{GATE}::test_a_log_event_is_one_line_whatever_a_name_holds",
    ),
    Mutant(
        "journal: one line",
        "audit/event.py",
        "from json.encoder import encode_basestring_ascii as _quote",
        "from json.encoder import encode_basestring as _quote",
        f"{GATE}::test_a_journal_has_one_line_a_record_whatever_a_name_holds",
    ),
    Mutant(
        "journal: torn lines",
        "audit/journal_files.py",
        '_write(self.fd, b"\\n" + line)',
        "_write(self.fd, line)",
        f"{GATE}::test_a_torn_record_spoils_no_other",
    ),
    Mutant(
        "journal: not through a link",
        "audit/journal_files.py",
        "flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600",
        "flags | os.O_CLOEXEC, 0o600",
        f"{GATE}::test_a_journal_that_became_a_link_is_not_written",
    ),
    # Errors
    Mutant(
        "errors: nothing of the host behind them",
        "fs/errors.py",
        "            problem = translate(error.errno, path)\n",
        "            raise translate(error.errno, path) from error\n",
        f"{GATE}::test_an_error_names_no_place_on_the_host",
    ),
]
