"""`carrel serve` over TLS: who is trusted, what is refused, and a certificate that is replaced."""

from __future__ import annotations

import asyncio
import datetime
import http.client
import ipaddress
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from carrel import AsyncClient, Toolbox, connect
from carrel.audit.logger import SandboxLogger
from carrel.config.load import load
from carrel.errors import ConfigError, UnreachableError
from carrel.fronts.certificate import Certificate
from tests.fronts.test_server import environ

PROTOCOLS = ("http", "grpc")


class Authority:
    """Vouches for certificates."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        signs = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        authority = x509.BasicConstraints(ca=True, path_length=0)
        self.pem = self._signed(1, self._key, self.name, authority, signs)

    def issue(self, serial: int, encryption: KeySerializationEncryption | None = None) -> tuple[bytes, bytes]:
        """A certificate for 127.0.0.1 alone, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        chain = self._signed(serial, key, x509.Name([]), names)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
        return chain, secret

    def _signed(
        self, serial: int, key: ec.EllipticCurvePrivateKey, name: x509.Name, *extensions: x509.ExtensionType
    ) -> bytes:
        day = datetime.timedelta(days=1)
        now = datetime.datetime.now(datetime.UTC)
        own, public = x509.SubjectKeyIdentifier.from_public_key, self._key.public_key()
        built = (
            x509.CertificateBuilder(self.name, name, key.public_key(), serial, now - day, now + day)
            .add_extension(own(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        )
        for extension in extensions:
            built = built.add_extension(extension, critical=True)
        return built.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secure:
    """A service that speaks TLS, with the files of its certificate."""

    process: subprocess.Popen[str]
    http: str
    grpc: str
    authority: Authority
    directory: Path

    @property
    def ca(self) -> Path:
        return self.directory / "ca.pem"

    def url(self, protocol: str) -> str:
        return self.http if protocol == "http" else self.grpc

    def reload(self, cert: bytes, key: bytes) -> str:
        """Replace the files; what the service says about it."""
        write(self.directory, cert, key)
        self.process.send_signal(signal.SIGHUP)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "certificate." in line:
                return line
        raise AssertionError("the service ended")

    def handshake(self, protocol: str, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> tuple[int, str]:
        """The serial number that a new connection is shown, and the version of TLS."""
        context = ssl.create_default_context(cafile=self.ca)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = newest
        context.set_alpn_protocols(["h2"] if protocol == "grpc" else ["http/1.1"])
        at = ("127.0.0.1", port_of(self.url(protocol)))
        with (
            socket.create_connection(at, timeout=30) as plain,
            context.wrap_socket(plain, server_hostname=at[0]) as secured,
        ):
            shown = secured.getpeercert(binary_form=True)
            assert shown is not None
            return x509.load_der_x509_certificate(shown).serial_number, secured.version() or ""


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def write(directory: Path, cert: bytes, key: bytes) -> None:
    (directory / "cert.pem").write_bytes(cert)
    (directory / "key.pem").write_bytes(key)


def command(directory: Path) -> list[str]:
    files = ("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    options = ("--port", "0", "--grpc-port", "0", "--json", "--no-access-log", *files)
    return [sys.executable, "-m", "carrel", "-v", "--sessions-dir", str(directory / "s"), "serve", *options]


@contextmanager
def serving(directory: Path) -> Iterator[Secure]:
    authority = Authority()
    (directory / "ca.pem").write_bytes(authority.pem)
    write(directory, *authority.issue(100))
    pipe = subprocess.PIPE
    env = environ() | {"CARREL_SERVE_SHUTDOWN_SECONDS": "300"}
    with subprocess.Popen(
        command(directory), cwd=directory, env=env, stdout=pipe, stderr=pipe, text=True
    ) as started:
        assert started.stdout is not None
        try:
            told = json.loads(started.stdout.readline())
            yield Secure(
                process=started,
                http=told["http"],
                grpc=told["grpc"],
                authority=authority,
                directory=directory,
            )
        finally:
            started.kill()


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    with serving(tmp_path_factory.mktemp("tls")) as served:
        yield served


# Clients


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_clients_that_trust_the_authority_call_it_with_the_local_token(secure: Secure, protocol: str) -> None:
    async def listed() -> list[str]:
        async with AsyncClient(secure.url(protocol), ca=secure.ca) as client:
            return await client.list_workspaces()

    assert secure.url(protocol).startswith(("https://127.0.0.1:", "grpcs://127.0.0.1:"))
    with connect(secure.url(protocol), ca=secure.ca) as client:
        client.get_workspace(protocol).write("a.txt", "a")
    assert protocol in asyncio.run(listed())


def test_a_toolbox_calls_it_with_the_configured_authority(
    secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_SANDBOX_ADDR", secure.grpc)
    with Toolbox(None, session_id="tools") as distrusting:
        assert distrusting.call("file_write", {"path": "a.txt", "content": "a"}).code == "service.unreachable"
    monkeypatch.setenv("CARREL_SANDBOX_CA", str(secure.ca))
    with Toolbox(None, session_id="tools") as toolbox:
        assert toolbox.call("file_write", {"path": "a.txt", "content": "a"}).success


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_refuses_a_certificate_of_another_authority_or_for_another_name(
    secure: Secure, protocol: str, tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(Authority().pem)
    url = secure.url(protocol)
    for address, ca in ((url, None), (url, other), (url.replace("127.0.0.1", "localhost"), secure.ca)):
        with connect(address, ca=ca) as client, pytest.raises(UnreachableError, match="is not trusted"):
            client.list_workspaces()


@pytest.mark.parametrize(
    ("scheme", "content", "problem"),
    [
        ("http", b"", "the address must begin with https:// or grpcs://"),
        ("grpc", b"", "the address must begin with https:// or grpcs://"),
        ("https", None, "ca.pem as ca: No such file or directory"),
        ("grpcs", b"", "ca.pem as ca: it holds no PEM certificate"),
        ("https", b"nonsense", "ca.pem as ca: it holds no PEM certificate"),
    ],
)
def test_a_client_refuses_a_file_of_authorities_that_it_cannot_use(
    tmp_path: Path, scheme: str, content: bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    with pytest.raises(ConfigError, match=problem):
        connect(f"{scheme}://127.0.0.1:1", ca=tmp_path / "ca.pem")


# The service


def test_nothing_but_tls_is_spoken(secure: Secure) -> None:
    with pytest.raises(httpx2.TransportError):
        httpx2.get(secure.http.replace("https", "http", 1))
    with connect(secure.grpc.replace("grpcs", "grpc", 1)) as client, pytest.raises(UnreachableError):
        client.list_workspaces()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tls_is_1_2_at_least(secure: Secure, protocol: str) -> None:
    assert secure.handshake(protocol)[1] == "TLSv1.3"
    assert secure.handshake(protocol, ssl.TLSVersion.TLSv1_2)[1] == "TLSv1.2"
    with pytest.raises(OSError):  # noqa: PT011  # an alert, or the end of the connection
        secure.handshake(protocol, ssl.TLSVersion.TLSv1_1)


def test_new_connections_see_the_new_certificate_and_open_ones_go_on(secure: Secure) -> None:
    context = ssl.create_default_context(cafile=secure.ca)
    states: list[grpc.ChannelConnectivity] = []
    credentials = grpc.ssl_channel_credentials(secure.ca.read_bytes())
    with (
        closing(http.client.HTTPSConnection(secure.http.removeprefix("https://"), context=context)) as old,
        grpc.secure_channel(secure.grpc.removeprefix("grpcs://"), credentials) as channel,
    ):
        old.connect()
        connection = old.sock
        grpc.channel_ready_future(channel).result(30)
        channel.subscribe(states.append)
        assert "certificate.reloaded" in secure.reload(*secure.authority.issue(201))
        assert [secure.handshake(protocol)[0] for protocol in PROTOCOLS] == [201, 201]
        old.request("GET", "/healthz")
        assert old.getresponse().read()
        assert old.sock is connection
        health: Any = channel.unary_unary("/grpc.health.v1.Health/Check")  # Any: bytes for bytes
        assert health(b"", timeout=30) == b"\x08\x01"
        assert set(states) <= {grpc.ChannelConnectivity.READY}


def test_a_new_pair_that_cannot_be_used_is_told_and_the_old_one_stays(secure: Secure) -> None:
    assert "certificate.reloaded" in secure.reload(*secure.authority.issue(301))
    cert, key = secure.authority.issue(302)[0], secure.authority.issue(303)[1]
    told = secure.reload(cert, key)
    assert "certificate.failed" in told
    assert f"{secure.directory / 'key.pem'} does not have the key of the certificate in" in told
    assert [secure.handshake(protocol)[0] for protocol in PROTOCOLS] == [301, 301]


def test_a_service_that_is_told_to_stop_does_not_wait_for_idle_clients(tmp_path: Path) -> None:
    with serving(tmp_path) as secure, connect(secure.http, ca=secure.ca) as client:
        assert client.list_workspaces() == []
        secure.process.send_signal(signal.SIGTERM)
        # Less than TLS waits for the end of a client, and far less than the service for what runs.
        assert secure.process.wait(25) == 0


# Files that cannot be used

CERT, KEY = "serve.tls_cert must name a PEM file: CERT ", "serve.tls_key must name a PEM file: KEY "
AUTHORITY = Authority()
CHAIN, SECRET = AUTHORITY.issue(400)
PROBLEMS = {
    "no certificate": (None, SECRET, CERT + "does not exist"),
    "no key": (CHAIN, None, KEY + "does not exist"),
    "a certificate that is none": (b"nonsense", SECRET, CERT + "has no certificate that can be read"),
    "a certificate in DER": (b"\x30\x82\xff", SECRET, CERT + "is not UTF-8 text"),
    "an empty certificate": (b"", SECRET, CERT + "has no certificate that can be read"),
    "two keys": (SECRET, SECRET, CERT + "has no certificate that can be read"),
    "two certificates": (CHAIN, CHAIN, KEY + "has no key that can be used"),
    "a key that is none": (CHAIN, b"nonsense", KEY + "has no key that can be used"),
    "another key": (CHAIN, AUTHORITY.issue(1)[1], KEY + "does not have the key of the certificate in CERT"),
    "an encrypted key": (
        CHAIN,
        AUTHORITY.issue(2, BestAvailableEncryption(b"word"))[1],
        KEY + "is encrypted; a password cannot be entered here",
    ),
}


@pytest.mark.parametrize(("cert", "key", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, cert: bytes | None, key: bytes | None, problem: str
) -> None:
    files = tmp_path / "c.pem", tmp_path / "k.pem"
    for file, content in zip(files, (cert, key), strict=True):
        if content is not None:
            file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        Certificate(*files, SandboxLogger())
    told = str(refused.value).replace(str(files[0]), "CERT").replace(str(files[1]), "KEY")
    assert told.startswith(problem)


def test_a_directory_is_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"serve.tls_cert must name a PEM file: {tmp_path} is a directory"):
        Certificate(tmp_path, tmp_path, SandboxLogger())


@pytest.mark.parametrize(("given", "other"), [("cert", "key"), ("key", "cert")])
def test_a_certificate_needs_its_key_and_a_key_its_certificate(given: str, other: str) -> None:
    settings = load({"CARREL_CONFIG": "/dev/null", f"CARREL_SERVE_TLS_{given.upper()}": "/x.pem"})
    problem = f"serve.tls_{given} is /x.pem, but serve.tls_{other} is not set; TLS needs both"
    with pytest.raises(ConfigError, match=problem):
        Certificate.of(settings.serve, SandboxLogger())


def test_a_service_with_files_that_cannot_be_used_does_not_start(tmp_path: Path) -> None:
    write(tmp_path, CHAIN, AUTHORITY.issue(1)[1])
    done = subprocess.run(
        command(tmp_path), cwd=tmp_path, env=environ(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "config.invalid"
    assert error["message"].startswith(f"serve.tls_key must name a PEM file: {tmp_path / 'key.pem'} ")
