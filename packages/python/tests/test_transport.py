"""HttpTransport and servers that misbehave, on real sockets."""

import socket
import threading
import time
import unittest
from collections.abc import Callable

from workspace_wallet import ConnectError, HttpTransport, NoResponseError, ResponseTimeoutError, WalletClient
from workspace_wallet.transport import MAX_RESPONSE_BYTES

Handler = Callable[[socket.socket], None]
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\n\r\n{}"


class Transport(unittest.TestCase):
    def setUp(self) -> None:
        self.transport = HttpTransport()
        self.addCleanup(self.transport.close)

    def serve(self, *handlers: Handler) -> tuple[str, list[socket.socket]]:
        """A server that gives each connection to the next handler, and the last one all further ones."""
        server = socket.create_server(("127.0.0.1", 0))
        accepted: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                accepted.append(connection)
                handler = handlers[min(len(accepted), len(handlers)) - 1]
                threading.Thread(target=self.handle, args=(handler, connection), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        self.addCleanup(server.close)
        self.addCleanup(lambda: [each.close() for each in accepted])
        return f"http://127.0.0.1:{server.getsockname()[1]}", accepted

    @staticmethod
    def handle(handler: Handler, connection: socket.socket) -> None:
        try:
            handler(connection)
        except OSError:
            pass

    @staticmethod
    def respond(response: bytes = RESPONSE) -> Handler:
        def handler(connection: socket.socket) -> None:
            while connection.recv(65_536):
                connection.sendall(response)

        return handler

    def get(self, url: str, timeout: float = 60.0) -> bytes:
        return self.transport("GET", f"{url}/a", {}, None, timeout).body

    def test_a_connection_is_kept_for_the_next_request(self) -> None:
        url, accepted = self.serve(self.respond())
        for _ in range(5):
            self.assertEqual(self.get(url), b"{}")
        self.assertEqual(len(accepted), 1)

    def test_a_connection_that_the_server_has_closed_is_not_used_again(self) -> None:
        def once(connection: socket.socket) -> None:
            connection.recv(65_536)
            connection.sendall(RESPONSE)
            connection.shutdown(socket.SHUT_RDWR)

        url, accepted = self.serve(once)
        for count in range(1, 4):
            self.assertEqual(self.get(url), b"{}")
            # The end of the connection has arrived when it can be read.
            accepted[-1].settimeout(60)
            self.assertEqual(len(accepted), count)
            while not self.has_ended():
                time.sleep(0.001)

    def has_ended(self) -> bool:
        kept = [each for kept in self.transport._kept.values() for each in kept]  # pyright: ignore[reportPrivateUsage]
        return not any(connection.is_open() for _, connection in kept)

    def test_threads_use_connections_of_their_own(self) -> None:
        barrier = threading.Barrier(4, timeout=60)

        def together(connection: socket.socket) -> None:
            connection.recv(65_536)
            barrier.wait()
            connection.sendall(RESPONSE)

        url, accepted = self.serve(together)
        threads = [threading.Thread(target=self.get, args=(url,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(len(accepted), 4)

    def test_nobody_listens(self) -> None:
        with self.assertRaises(ConnectError):
            # The system gives this port to no program.
            self.get("http://127.0.0.1:2")

    def test_no_tls_where_it_is_expected(self) -> None:
        url, _ = self.serve(self.respond())
        with self.assertRaises(ConnectError):
            self.get(url.replace("http:", "https:"))

    def test_one_deadline_holds_for_the_whole_response_also_if_each_byte_arrives_in_time(self) -> None:
        heads = [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"]
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for head, part in [*((head, b"x") for head in heads), (chunked, b"1\r\nx\r\n")]:

            def trickle(connection: socket.socket, head: bytes = head, part: bytes = part) -> None:
                connection.sendall(head)
                while True:
                    connection.sendall(part)
                    time.sleep(0.01)

            url, _ = self.serve(trickle)
            with self.subTest(head), self.assertRaises(TimeoutError):
                self.get(url, timeout=0.3)

    def test_a_response_that_ends_early_or_is_not_http_is_no_response(self) -> None:
        for text in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"SSH-2.0-x\r\n", b"HTTP/1.1 x\r\n\r\n"):

            def cut(connection: socket.socket, text: bytes = text) -> None:
                connection.recv(65_536)
                connection.sendall(text)
                connection.shutdown(socket.SHUT_RDWR)

            url, _ = self.serve(cut)
            client = WalletClient(base_url=url, api_key="ak_1", api_secret="s", max_retries=0)
            with self.subTest(text), self.assertRaises(NoResponseError) as raised:
                client.wallets.create(name="A", currency="USD", bizId="b")
            self.assertNotIsInstance(raised.exception, ResponseTimeoutError)
            self.assertEqual(raised.exception.outcome, "UNKNOWN")

    def test_a_body_that_is_longer_than_a_response_can_be_is_not_kept(self) -> None:
        def flood(connection: socket.socket) -> None:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            for _ in range(MAX_RESPONSE_BYTES // 65_536 + 2):
                connection.sendall(bytes(65_536))
            connection.shutdown(socket.SHUT_RDWR)

        url, _ = self.serve(flood)
        self.assertEqual(self.get(url), b"")

    def test_redirects_are_not_followed(self) -> None:
        location = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:2/\r\nContent-Length: 0\r\n\r\n"
        url, accepted = self.serve(self.respond(location))
        self.assertEqual(self.transport("GET", f"{url}/a", {}, None, 60).status, 302)
        self.assertEqual(len(accepted), 1)


if __name__ == "__main__":
    unittest.main()
