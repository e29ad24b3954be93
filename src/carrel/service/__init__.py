"""Operations on behalf of authenticated callers, independent of any protocol.

Authentication, roles, sessions, executions, the journal, rate and concurrency limits. Start with `service`,
then `authentication` and `sessions`. Nothing here knows HTTP, gRPC, MCP or the command line: a front
translates requests and results, and adds no rules of its own.
"""
