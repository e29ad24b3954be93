"""The TLS certificate of the service: checked before use, and reloaded on SIGHUP.

Not covered: who may read the file of the key, and when a certificate expires.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from carrel.audit.logger import SandboxLogger
from carrel.config.document import UnreadableDocumentError, read_document
from carrel.config.serve_keys import TLS_CERT, TLS_KEY
from carrel.config.settings import ServeSettings
from carrel.errors import ConfigError

_MISMATCHES = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")


class Certificate:
    """A certificate with its key, for HTTP and gRPC; a connection keeps the one that it began with."""

    def __init__(self, cert: Path, key: Path, logger: SandboxLogger) -> None:
        """Use the chain in the file *cert* and the private key in the file *key*.

        Raises:
            ConfigError: They cannot be used.
        """
        self._cert = cert
        self._key = key
        self._logger = logger
        self.pem, self.context = _read(cert, key)
        """The key and the chain as they stand in the files, and what a server listens with."""
        self._newest = self.context
        self.context.sni_callback = self._use_newest

    @classmethod
    def of(cls, settings: ServeSettings, logger: SandboxLogger) -> Certificate | None:
        """The one that is configured, if one is.

        Raises:
            ConfigError: It cannot be used.
        """
        cert, key = settings.tls_cert, settings.tls_key
        if cert is not None and key is not None:
            return cls(cert, key, logger)
        if cert is None and key is None:
            return None
        given, other = (TLS_CERT, TLS_KEY) if key is None else (TLS_KEY, TLS_CERT)
        raise ConfigError(f"{given.name} is {cert or key}, but {other.name} is not set; TLS needs both")

    def reload(self) -> None:
        """Read the files again, for new connections; if they cannot be used, what was in use stays."""
        try:
            self.pem, self._newest = _read(self._cert, self._key)
        except ConfigError as error:
            self._logger.log_event("certificate.failed", logging.ERROR, problem=error.message)
        else:
            self._logger.log_event("certificate.reloaded")

    def _use_newest(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Called for every connection, also of a client that names no server."""
        connection.context = self._newest


class _EncryptedError(Exception):
    """A key wants a password."""


def _read(cert: Path, key: Path) -> tuple[tuple[bytes, bytes], ssl.SSLContext]:
    """The key and the chain, and a context that shows them."""
    chain, secret = _text(TLS_CERT.name, cert), _text(TLS_KEY.name, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not _has_certificate(chain):
        raise _unusable(TLS_CERT.name, cert, "has no certificate that can be read")
    try:
        context.load_cert_chain(cert, key, _refuse_password)
    except _EncryptedError:
        problem = "is encrypted, and nobody can be asked for its password"
    except ssl.SSLError as error:
        if error.reason in _MISMATCHES:
            problem = f"does not have the key of the certificate in {cert}"
        else:
            problem = f"has no key that can be used ({error.reason})"
    else:
        return (secret.encode(), chain.encode()), context
    raise _unusable(TLS_KEY.name, key, problem)


def _text(setting: str, file: Path) -> str:
    try:
        text = read_document(file)
    except UnreadableDocumentError as error:
        raise _unusable(setting, file, str(error)) from None
    if text is None:
        raise _unusable(setting, file, "is not there")
    return text


def _has_certificate(text: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(
            cadata=text.encode("ascii", "ignore").decode()
        )
    except (ssl.SSLError, ValueError):
        return False
    return True


def _refuse_password() -> str:
    # Otherwise OpenSSL asks at the terminal.
    raise _EncryptedError


def _unusable(setting: str, file: Path, problem: str) -> ConfigError:
    return ConfigError(f"{setting} must name a PEM file: {file} {problem}")
