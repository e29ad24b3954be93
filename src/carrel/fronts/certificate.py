"""The TLS certificate of the service: checked before use, and reloaded on SIGHUP.

Not covered: the permissions of the key file, and the expiry of the certificate.
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
    """A certificate and its key, for HTTP and gRPC; a connection keeps the one it was opened with."""

    def __init__(self, cert: Path, key: Path, logger: SandboxLogger) -> None:
        """Use the certificate chain in *cert* and the private key in *key*.

        Raises:
            ConfigError: A file cannot be used.
        """
        self._cert = cert
        self._key = key
        self._logger = logger
        self._newest: dict[str, ssl.SSLContext] = {}
        """What new connections use, by their protocol."""
        _read(cert, key)

    @classmethod
    def of(cls, settings: ServeSettings, logger: SandboxLogger) -> Certificate | None:
        """Return the configured certificate, or `None`.

        Raises:
            ConfigError: A file cannot be used, or only one is configured.
        """
        cert, key = settings.tls_cert, settings.tls_key
        if cert is not None and key is not None:
            return cls(cert, key, logger)
        if cert is None and key is None:
            return None
        given, other = (TLS_CERT, TLS_KEY) if key is None else (TLS_KEY, TLS_CERT)
        raise ConfigError(f"{given.name} is {cert or key}, but {other.name} is not set; TLS needs both")

    def context(self, protocol: str) -> ssl.SSLContext:
        """Return a server's context for *protocol* (an ALPN name) that shows the newest certificate."""
        context = self._newest[protocol] = _read(self._cert, self._key, protocol)

        def use_newest(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
            connection.context = self._newest[protocol]

        context.sni_callback = use_newest  # called for clients that name no server too
        return context

    def reload(self) -> None:
        """Read the files again, for new connections; if they cannot be used, keep the old certificate."""
        try:
            self._newest = {each: _read(self._cert, self._key, each) for each in self._newest}
        except ConfigError as error:
            self._logger.log_event("certificate.failed", logging.ERROR, problem=error.message)
        else:
            self._logger.log_event("certificate.reloaded")


class _EncryptedError(Exception):
    """A private key is encrypted."""


def _read(cert: Path, key: Path, *protocols: str) -> ssl.SSLContext:
    """Return a context with the chain and the key that accepts *protocols*."""
    chain = _text(TLS_CERT.name, cert)
    _text(TLS_KEY.name, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not _has_certificate(chain):
        raise _unusable(TLS_CERT.name, cert, "has no certificate that can be read")
    try:
        context.load_cert_chain(cert, key, _refuse_password)
    except _EncryptedError:
        problem = "is encrypted; a password cannot be entered here"
    except ssl.SSLError as error:
        if error.reason in _MISMATCHES:
            problem = f"does not have the key of the certificate in {cert}"
        else:
            problem = f"has no key that can be used ({error.reason})"
    else:
        if protocols:
            context.set_alpn_protocols(protocols)
        return context
    raise _unusable(TLS_KEY.name, key, problem)


def _text(setting: str, file: Path) -> str:
    try:
        text = read_document(file)
    except UnreadableDocumentError as error:
        raise _unusable(setting, file, str(error)) from None
    if text is None:
        raise _unusable(setting, file, "does not exist")
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
