"""Docker containers."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONTAINER = "tests/containers/test_container.py"
HOSTILE = "tests/containers/test_hostile.py"
CONTAINED = "tests/sandbox/test_container.py"
BYPASS = "tests/fs/test_bypass.py"
KEEPER = "tests/containers/test_keeper.py"
SESSION_CONTAINERS = "tests/workspace/test_session_containers.py"
TOOL_CONTAINERS = "tests/tools/test_containers.py"

MUTANTS = [
    # Programs in containers
    Mutant(
        "contained: what is left running",
        "runtimes/container_run.py",
        "        end_left(self._container)",
        "        pass",
        f"{HOSTILE}::test_a_daemon_that_is_left_behind_ends_with_its_command",
    ),
    Mutant(
        "contained: all that was started",
        "containers/ending.py",
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
        "contained: what a killed process left, before files are counted",
        "workspace/ledger.py",
        "is_calm = self._end_programs()",
        "is_calm = True",
        f"{HOSTILE}::test_what_a_killed_process_left_running_ends_before_its_files_are_counted",
    ),
    Mutant(
        "contained: quota while it runs",
        "runtimes/quota_guard.py",
        "            self._thread.start()",
        "            pass",
        f"{HOSTILE}::test_one_that_makes_too_many_entries_is_ended",
    ),
    Mutant(
        "contained: blocks without a size",
        "fs/rules.py",
        "return held if held > size + size // 16 + _UNCOUNTED_BYTES else size",
        "return size",
        "tests/workspace/test_listing.py::test_usage_counts_blocks_that_are_reserved_beyond_the_size",
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
        f"{CONTAINED}::test_a_call_waits_for_one_that_runs_in_another_runtime",
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
        "containers/container.py",
        '"User": user or self._user or ""',
        '"User": user or ""',
        f"{CONTAINER}::test_it_is_locked_down",
    ),
    Mutant(
        "container: another user for what keeps it waiting",
        "containers/spec.py",
        '"User": next(user for user in _WAITING_USERS if _number(user) != _number(self.user))',
        '"User": self.user',
        f"{HOSTILE}::test_what_keeps_a_container_running_is_out_of_reach",
    ),
    Mutant(
        "container: whose processes are left",
        "containers/ending.py",
        " and len(set(users)) == 1",
        "",
        f"{HOSTILE}::test_calm_is_asked_by_whose_processes_are_there_not_by_how_many",
    ),
    Mutant(
        "container: volumes of the image",
        "containers/spec.py",
        '{"/tmp", *map(normpath, volumes)}',
        '{"/tmp"}',
        f"{HOSTILE}::test_an_image_declares_no_volume_and_no_check_of_its_own",
    ),
    Mutant(
        "container: a check of the image",
        "containers/spec.py",
        '"Healthcheck": {"Test": ["NONE"]},\n',
        "",
        f"{HOSTILE}::test_an_image_declares_no_volume_and_no_check_of_its_own",
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
