"""Docker containers.

The Docker API, one container per key shared by all processes of the host, and files that exist only in a
container. Start with `engine`, `container` and `manager`; `files` is the `Files` implementation whose parts
are in `fs`. Nothing here knows about workspaces, sessions or runtimes, and the Docker client is imported in
`engine` and `docker_errors` only.
"""
