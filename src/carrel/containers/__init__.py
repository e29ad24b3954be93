"""Docker containers.

The engine's API, one container per key shared by all processes of the host, and files that live only in a
container. Start with `engine`, `container` and `manager`; `files` is the `Files` implementation whose parts
are in `fs`. Nothing here knows workspaces, sessions or runtimes, and the Docker client is imported in
`engine` and `docker_errors` only.
"""
