"""Who calls a service, and what they may do."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

KEYS = "tests/service/test_keys.py"
JWT = "tests/service/test_jwt.py"
CALLERS = "tests/service/test_callers.py"
LOCAL_TOKEN = "tests/remote/test_local_token.py"
RATE = "tests/service/test_rate.py"
MCP_ROLES = "tests/fronts/mcp/test_roles.py"
TENANTS = "tests/service/test_two_tenants.py"
MCP_LINES = "tests/fronts/mcp/test_lines.py"
GRPC_CALLERS = "tests/fronts/grpc/test_callers.py"

MUTANTS = [
    # Callers
    Mutant(
        "sessions: no longer life than configured",
        "service/session_info.py",
        "    if most is not None and asked > most:",
        "    if asked < 0:",
        "tests/service/test_service.py::test_only_the_operator_lets_a_session_live_longer_than_configured",
    ),
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
        "metrics: not for tenants",
        "fronts/http/status.py",
        "    call.who.require_metrics()\n",
        "",
        "tests/fronts/http/test_callers.py::test_metrics_are_not_for_tenants",
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
        "local token: compared",
        "service/callers.py",
        "hmac.compare_digest(secret.encode(), self._local_token)",
        "secret",
        f"{CALLERS}::test_who_has_another_local_token_is_nobody",
    ),
    Mutant(
        "local token: of this user",
        "remote/local_token.py",
        " and found.st_uid == os.geteuid()",
        "",
        f"{LOCAL_TOKEN}::test_a_token_of_another_user_is_refused",
    ),
    Mutant(
        "local token: for nobody else",
        "remote/local_token.py",
        " and not found.st_mode & 0o077",
        "",
        f"{LOCAL_TOKEN}::test_a_token_that_others_could_read_or_write_is_refused",
    ),
    Mutant(
        "local token: to loopback alone",
        "remote/local_token.py",
        'if place is None or not is_loopback(host.strip("[]")):',
        "if place is None:",
        f"{LOCAL_TOKEN}::test_a_token_is_not_sent_to_other_machines",
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
        "if name.startswith(_FORWARDED) or name",
        "if name",
        f"{CALLERS}::test_what_a_web_page_or_a_proxy_brings_is_not_local",
    ),
    Mutant(
        "callers: headers twice",
        "service/callers.py",
        " or name in told:",
        ":",
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
        "admission: a tenant leaves threads to others",
        "service/admission.py",
        "                if self._busy[tenant] < self._free:\n",
        "                if self._free:\n",
        "tests/service/test_admission.py::test_a_tenant_that_has_much_to_do_leaves_threads_to_others",
    ),
    Mutant(
        "admission: half of the places for one tenant",
        "service/admission.py",
        '            _require(self._of_tenants[tenant] + 1, -(-self._most // 2), "of yours ")\n',
        "",
        "tests/service/test_admission.py"
        "::test_half_of_the_places_are_for_one_tenant_and_an_eighth_for_one_caller",
    ),
    Mutant(
        "admission: requests over MCP are counted",
        "fronts/mcp/app.py",
        "            self._admission.take(visit.caller)\n",
        "            pass\n",
        "tests/fronts/http/test_waiting.py::test_requests_over_mcp_are_counted_with_those_of_their_tenant",
    ),
    Mutant(
        "executions: output of a caller is bounded",
        "service/executions.py",
        "        self._drop_beyond(of_caller, KEPT_BYTES_OF_CALLER - execution.kept_bytes)\n",
        "",
        "tests/service/test_executions.py::test_only_so_much_output_is_kept",
    ),
    Mutant(
        "executions: a reader is told that the rest is gone",
        "service/executions.py",
        "            if self._is_dropped:\n                raise self._dropped()\n",
        "            if self._is_dropped:\n                return\n",
        "tests/service/test_executions.py::test_a_reader_is_told_that_the_rest_is_gone",
    ),
    Mutant(
        "callers: sessions of the tenant",
        "service/tenants.py",
        "if tenant is None:\n            return self.own\n        with",
        "if True:\n            return self.own\n        with",
        f"{TENANTS}::test_the_session_of_another_is_as_one_that_never_was",
    ),
    Mutant(
        "rates: one each",
        "service/rate.py",
        "name = caller.tenant, caller.name",
        'name = caller.tenant, ""',
        f"{RATE}::test_one_caller_takes_nothing_from_another",
    ),
    Mutant(
        "grpc: the caller before the message",
        "fronts/grpc/door.py",
        """                call = await self._let_in(context, visit)
                request = await _only(requests, visit)
                return""",
        """                request = await _only(requests, visit)
                call = await self._let_in(context, visit)
                return""",
        f"{GRPC_CALLERS}::test_nobody_is_refused_later_than_by_the_head_of_a_call",
    ),
    Mutant(
        "grpc: the size of a message",
        "fronts/grpc/server.py",
        "min(serve.max_body_bytes, MESSAGE_BYTES)",
        "serve.max_body_bytes",
        "tests/fronts/grpc/test_server.py::test_no_message_is_larger_than_four_mib_however_large_a_request_may_be",
    ),
    Mutant(
        "grpc: questions of anybody",
        "fronts/grpc/introspection.py",
        "            self._reading.pop(0).cancel()",
        "            pass",
        f"{GRPC_CALLERS}::test_questions_that_do_not_come_make_room_for_others",
    ),
    Mutant(
        "mcp: numbers that are none",
        "fronts/mcp/lines.py",
        "if isinstance(number, int | str) and number in self._awaited:",
        "if number in self._awaited:",
        f"{MCP_LINES}::test_a_cancellation_of_nothing_that_is_a_number_changes_nothing",
    ),
    Mutant(
        "mcp: requests wait for answers",
        "fronts/mcp/lines.py",
        "if not self._answers.is_full and self._answers.awaited + self.more_running() < RUNNING:",
        "if not self._answers.is_full:",
        f"{MCP_LINES}::test_requests_wait_for_answers_and_what_is_no_request_goes_before_them",
    ),
]
