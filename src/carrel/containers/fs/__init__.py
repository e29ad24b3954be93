"""How `ContainerFiles` works on files in a container.

The primitives follow no links; they are implemented by a shell script in the container or by Docker's archive
API. Start with `primitives`, then `reading` and `write_target`. Paths are resolved on the host, never by the
container's kernel; quota and journal belong to `carrel.containers.files`.
"""
