"""Find out who calls.

By an API key, by a token (JWT) of a trusted issuer, or as the operator of this machine. Start with
`authenticator`, which turns what a request carries into a `Principal`. What a caller may do is decided in
`principal` and in `sessions`, not here.
"""
