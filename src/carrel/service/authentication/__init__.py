"""Authenticate callers by API key, by a JWT of a trusted issuer, or as the local operator.

Start with `authenticator`, which turns the credentials of a request into a `Principal`. What a caller may do
is decided in `principal` and in `sessions`, not here.
"""
