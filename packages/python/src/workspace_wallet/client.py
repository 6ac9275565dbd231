"""A client of the public API for one API key."""

from collections.abc import Mapping
from dataclasses import replace

from .events import Events
from .holds import Holds
from .request import Query, Requests, Response
from .settings import Settings
from .transfers import Transfers
from .transport import HttpTransport, Transport
from .wallets import Wallets
from .webhooks import Webhooks


class WalletClient:
    """The public API for one API key: signs requests, and sends them again if that is safe.

    Several threads can use one client. It keeps connections for the next requests; `close`, or the end of a `with` block, closes
    them.
    """

    wallets: Wallets
    transfers: Transfers
    holds: Holds
    events: Events
    webhooks: Webhooks

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        api_secret: str,
        locale: str = "en-US",
        timeout: float = 15.0,
        max_retries: int = 4,
        transport: Transport | None = None,
    ) -> None:
        """
        Args:
            base_url: where the service is, such as `https://wallet.example.com`: scheme, host and port, without a path
            locale: the language of `detail` in errors, as a language tag
            timeout: how long one attempt may take, in seconds. The service itself gives up on a command after about 10 seconds (S003).
            max_retries: how often a request that failed is sent again: 4 times within about 4 seconds if the service asks for no pause
            transport: Default: HttpTransport().

        Raises:
            ValueError: an option is invalid. The text never contains the secret.
        """
        settings = Settings(
            base_url=base_url,
            api_key=api_key,
            api_secret=api_secret,
            locale=locale,
            timeout=timeout,
            max_retries=max_retries,
            transport=transport or HttpTransport(),
        )
        self._use(Requests(settings))

    def with_options(
        self, *, locale: str | None = None, timeout: float | None = None, max_retries: int | None = None
    ) -> "WalletClient":
        """A client with other options, which shares the connections of this one: `client.with_options(timeout=60).transfers.…`."""
        changed = {"locale": locale, "timeout": timeout, "max_retries": max_retries}
        settings = self._requests.settings
        for name, value in changed.items():
            if value is not None:
                settings = replace(settings, **{name: value})
        other = object.__new__(WalletClient)
        other._use(Requests(settings, self._requests.clock))
        return other

    def _use(self, requests: Requests) -> None:
        self._requests = requests
        self.wallets = Wallets(requests)
        self.transfers = Transfers(requests)
        self.holds = Holds(requests)
        self.events = Events(requests)
        self.webhooks = Webhooks(requests)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, object] | bytes | None = None,
        is_repeatable: bool | None = None,
    ) -> Response:
        """Signs and sends a request to any endpoint, with retries. See `Requests.request`."""
        return self._requests.request(method, path, query=query, body=body, is_repeatable=is_repeatable)

    def close(self) -> None:
        """Closes the connections that are kept. The client can still be used."""
        transport = self._requests.settings.transport
        if isinstance(transport, HttpTransport):
            transport.close()

    def __enter__(self) -> "WalletClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
