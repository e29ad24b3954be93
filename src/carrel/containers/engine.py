"""`Engine`: one connection to a Docker engine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from carrel.containers.docker_errors import translate_docker_errors
from carrel.containers.stream import HijackedConnection, connect_socket
from carrel.errors import ContainerError, EngineError

if TYPE_CHECKING:
    from docker import APIClient

OLDEST = "1.41"
"""Oldest supported version of the Docker API: that of Docker 20.10."""
TIMEOUT_SECONDS = 30.0


class Engine:
    """One connection to a Docker engine; threads may share it."""

    def __init__(self, api: APIClient, address: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Take over a client; most callers want `Engine.connect`."""
        self.api = api
        self.address = address
        self.timeout_seconds = timeout_seconds

    @classmethod
    def connect(cls, address: str | None = None, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Engine:
        """Connect to the engine at *address*, at `DOCKER_HOST`, or at the default socket.

        Raises:
            EngineError: The Docker client is not installed, or no usable engine responds.
        """
        try:
            from docker import APIClient
            from docker.utils import kwargs_from_env
        except ImportError:
            raise EngineError(
                "missing", "the Docker client is not installed: pip install 'carrel[docker]'"
            ) from None
        options = kwargs_from_env(environment=dict(os.environ))
        if address is not None:
            options["base_url"] = address
        options.setdefault("base_url", "unix:///var/run/docker.sock")
        found = str(options["base_url"])
        if urlsplit(found).scheme not in ("unix", "http+unix", "tcp", "http", "https"):
            raise EngineError(
                "address", f"a Docker engine is reached by unix:// or tcp://, not by {found[:80]!r}"
            )
        with translate_docker_errors("connecting to it"):
            # The client leaks its socket if it cannot connect.
            connect_socket(found, timeout_seconds).close()
            api = APIClient(version=OLDEST, timeout=timeout_seconds, **options)
        try:
            _agree_on_version(api)
        except BaseException:
            api.close()
            raise
        return cls(api, found, timeout_seconds=timeout_seconds)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; containers keep running."""
        self.api.close()

    def facts(self) -> dict[str, Any]:
        """Return version and features of the engine."""
        with translate_docker_errors("reading its version and features"):
            version, info = self.api.version(), self.api.info()
        return {
            "version": version.get("Version"),
            "api_version": version.get("ApiVersion"),
            "system": info.get("OperatingSystem"),
            "storage": info.get("Driver"),
            "security": info.get("SecurityOptions") or [],
            "memory_limit": bool(info.get("MemoryLimit")),
            "pids_limit": bool(info.get("PidsLimit")),
            "cpu_quota": bool(info.get("CpuCfsQuota")),
        }

    def has_image(self, image: str) -> bool:
        """Whether the engine has an image of that name."""
        try:
            with translate_docker_errors(f"inspecting the image {image!r}"):
                self.api.inspect_image(image)
        except ContainerError as error:
            if error.problem in ("image", "missing"):
                return False
            raise
        return True

    def image_volumes(self, image: str) -> list[str]:
        """Return the directories that an image declares as volumes.

        Raises:
            ContainerError: The image does not exist.
        """
        with translate_docker_errors(f"inspecting the image {image!r}"):
            return list(self.api.inspect_image(image)["Config"].get("Volumes") or ())

    def pull(self, image: str) -> None:
        """Pull an image from its registry.

        Raises:
            ContainerError: The image does not exist or cannot be pulled.
        """
        from docker.utils import parse_repository_tag

        repository, tag = parse_repository_tag(image)
        with translate_docker_errors(f"pulling {image!r}"):
            for line in self.api.pull(repository, tag=tag or "latest", stream=True, decode=True):
                if "error" in line:
                    raise ContainerError(
                        "image", f"the image {image!r} cannot be pulled", detail=str(line["error"])
                    )

    def listed(self, labels: dict[str, str], *, volume: str | None = None) -> list[dict[str, Any]]:
        """List the containers with these labels and, if given, that *volume*, running or not."""
        filters = {"label": [f"{name}={value}" for name, value in labels.items()]}
        if volume is not None:
            filters["volume"] = [volume]
        with translate_docker_errors("listing containers"):
            return list(self.api.containers(all=True, filters=filters))

    def hijack(self, path: str, body: dict[str, object]) -> HijackedConnection:
        """Open a bidirectional connection.

        Raises:
            EngineError: The engine does not respond, or with something else than HTTP.
            ContainerError: The engine refuses.
        """
        with translate_docker_errors("opening a stream"):
            return HijackedConnection.open(
                self.address,
                f"/v{self.api.api_version}{path}",
                json.dumps(body).encode(),
                timeout_seconds=self.timeout_seconds,
                context=self._tls(),
            )

    def _tls(self) -> Any:
        """Return the TLS settings of the client; `None` if it does not use TLS."""
        if not str(self.api.base_url).startswith("https"):
            return None
        import ssl

        context = ssl.create_default_context()
        if self.api.verify is False:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif isinstance(self.api.verify, str):
            context.load_verify_locations(self.api.verify)
        if self.api.cert:
            context.load_cert_chain(*self.api.cert)
        return context

    def stream(self, path: str, parameters: dict[str, str]) -> Iterator[bytes]:
        """Yield the body of a response in chunks."""
        url = f"{self.api.base_url}/v{self.api.api_version}{path}"
        with translate_docker_errors("reading a stream"):
            response = self.api.get(url, params=parameters, stream=True, timeout=self.timeout_seconds)
            self.api._raise_for_status(response)
        try:
            with translate_docker_errors("reading a stream"):
                yield from response.iter_content(2**16)
        finally:
            response.close()


def _agree_on_version(api: APIClient) -> None:
    """Use the newest API version that both sides support.

    Raises:
        EngineError: The engine is too old or does not respond.
    """
    from docker.constants import DEFAULT_DOCKER_API_VERSION

    with translate_docker_errors("reading its version"):
        response = api.version(api_version=False)
    version = str(response.get("ApiVersion")) if isinstance(response, dict) else ""
    if not re.fullmatch(r"\d{1,4}\.\d{1,4}", version):
        raise EngineError("failed", "the server at that address is not a Docker engine")
    newest = min(version, DEFAULT_DOCKER_API_VERSION, key=_numbers)
    if _numbers(newest) < _numbers(OLDEST):
        raise EngineError(
            "version", f"the Docker engine supports API version {version}; {OLDEST} or newer is required"
        )
    api._version = newest


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
