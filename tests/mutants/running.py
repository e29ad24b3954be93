"""What runs: guest code, commands of the shell, and tools."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FILES = "tests/faults/test_guards_of_files.py"
WORKER = "tests/attack/test_guest_worker.py"
LOCKDOWN = "tests/runtimes/test_lockdown.py"
TOOLBOX = "tests/tools/test_toolbox.py"

MUTANTS = [
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
        "shell: a long line is charged before it is kept",
        "shell/records.py",
        "        self._meter.hold(charge)\n",
        "",
        "tests/attack/test_shell_bombs.py",
    ),
    Mutant(
        "shell: the words of braces are charged before they are made",
        "shell/expand.py",
        "        self._charge(sys.getsizeof(text))\n",
        "",
        "tests/attack/test_shell_bombs.py",
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
]
