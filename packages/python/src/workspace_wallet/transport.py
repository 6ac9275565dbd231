"""How requests travel: one at a time on a connection, which is kept for the next one."""

import http.client
import io
import os
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit


@dataclass(frozen=True)
class HttpResponse:
    """A response. `headers`: by their names in lower case; the last one if a name is repeated. `body`: empty if it is longer than
    a response of the service can be."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectError(OSError):
    """No connection could be made, so that nothing was sent."""


class Transport(Protocol):
    """Sends a request once. Pass your own to a client for a proxy, or for tests."""

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> HttpResponse:
        """Sends a request and returns the complete response. Follows no redirect: the signature is valid for this URL only.

        Raises:
            ConnectError: nothing was sent
            TimeoutError: there was no complete response within `timeout` seconds
            OSError, http.client.HTTPException: the connection was lost, or the response is not HTTP
        """
        ...


MAX_RESPONSE_BYTES = 16 * 1024 * 1024
"""More than the service sends. This bounds the memory that another server can make a client use."""

_KEPT_SECONDS = 3.0
"""Shorter than servers and load balancers keep a connection without requests."""


class HttpTransport:
    """HTTP/1.1 by the standard library. Several threads can use it at once, each request on a connection of its own."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        """`ssl_context`: which certificates are trusted. Default: those that Python trusts."""
        self._ssl_context = ssl_context
        self._lock = threading.Lock()
        self._kept: dict[str, list[tuple[float, _Connection]]] = {}
        self._pid = os.getpid()

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> HttpResponse:
        deadline = time.monotonic() + timeout
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        connection = self._take(origin) or self._connect(origin, deadline)
        try:
            target = url[len(origin) :]
            response, is_reusable = connection.exchange(method, target, headers, body, deadline)
        except BaseException:
            connection.close()
            raise
        if is_reusable:
            self._keep(origin, connection)
        else:
            connection.close()
        return response

    def close(self) -> None:
        """Closes the connections that are kept."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for connections in kept.values():
            for _, connection in connections:
                connection.close()

    def _take(self, origin: str) -> "_Connection | None":
        with self._lock:
            if self._pid != os.getpid():
                # A forked process has the same connections as its parent, which goes on using them.
                self._kept, self._pid = {}, os.getpid()
            connections = self._kept.get(origin, [])
            while connections:
                since, connection = connections.pop()
                if time.monotonic() - since < _KEPT_SECONDS and connection.is_open():
                    return connection
                connection.close()
        return None

    def _keep(self, origin: str, connection: "_Connection") -> None:
        with self._lock:
            self._kept.setdefault(origin, []).append((time.monotonic(), connection))

    def _connect(self, origin: str, deadline: float) -> "_Connection":
        parts = urlsplit(origin)
        host = parts.hostname or ""
        is_secure = parts.scheme == "https"
        port = parts.port or (443 if is_secure else 80)
        try:
            plain = socket.create_connection((host, port), max(deadline - time.monotonic(), 0.001))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not is_secure:
                return _Connection(parts.netloc, plain)
            if self._ssl_context is None:
                self._ssl_context = ssl.create_default_context()
            try:
                return _Connection(parts.netloc, self._ssl_context.wrap_socket(plain, server_hostname=host))
            except BaseException:
                plain.close()
                raise
        except OSError as error:
            raise ConnectError(str(error)) from error


class _Connection:
    """A connection that was made."""

    def __init__(self, netloc: str, connected: socket.socket) -> None:
        self._http = http.client.HTTPConnection(netloc)
        self._socket = connected

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> tuple[HttpResponse, bool]:
        """Sends a request. Returns its response, and whether another request can follow."""
        # http.client only ever writes to this and makes a file of it.
        self._http.sock = _DeadlineSocket(self._socket, deadline)  # pyright: ignore[reportAttributeAccessIssue]
        self._http.request(method, target, body, dict(headers))
        response = self._http.getresponse()
        content = response.read(MAX_RESPONSE_BYTES + 1)
        is_too_long = len(content) > MAX_RESPONSE_BYTES
        if not is_too_long and not response.isclosed():
            raise http.client.IncompleteRead(content)
        received = {name.lower(): value for name, value in response.getheaders()}
        is_reusable = not is_too_long and not response.will_close
        return HttpResponse(response.status, received, b"" if is_too_long else content), is_reusable

    def is_open(self) -> bool:
        """Whether the server has neither closed a connection without requests nor sent anything on it."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._socket, selectors.EVENT_READ)
                return not selector.select(0)
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        self._http.sock = None  # pyright: ignore[reportAttributeAccessIssue]
        self._http.close()
        self._socket.close()


class _DeadlineSocket:
    """A socket whose operations end at one time altogether: a socket's own time-out begins anew with each byte that arrives."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._socket = connected
        self._deadline = deadline

    def sendall(self, data: Any) -> None:
        self._limit()
        self._socket.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self))

    def recv_into(self, buffer: Any) -> int:
        self._limit()
        return self._socket.recv_into(buffer)

    def close(self) -> None:
        """http.client closes it after a response that is the last one. `_Connection` owns the socket."""

    def _limit(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)


class _DeadlineReader(io.RawIOBase):
    def __init__(self, source: _DeadlineSocket) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._source.recv_into(buffer)
