"""Webhooks of the workspace."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from .pages import Page, all_pages, items_of
from .records import CreateWebhook, DeletedWebhook, EventType, IssuedWebhook, ListWebhooksQuery, RotatedWebhook, Webhook
from .request import Query, Requests, segment

_WEBHOOKS = "/api/v1/webhook/query/webhooks"


class WebhookChanges(TypedDict, total=False):
    """What `update` changes. What is left out does not change."""

    url: str
    types: Sequence[EventType]
    status: Literal["ACTIVE", "PAUSED"]
    concurrency: int


class Webhooks:
    """The webhooks of the workspace: URLs to which the service sends events.

    `verify_webhook` verifies what arrives there. All methods need the scope `webhook:manage`.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def list(self, **query: Unpack[ListWebhooksQuery]) -> Page[Webhook]:
        """One page of webhooks."""
        return self._list(query)

    def list_all(self, **query: Unpack[ListWebhooksQuery]) -> Iterator[Webhook]:
        """All webhooks, the oldest first. There are at most 16."""
        return items_of(lambda page: self._list({**all_pages(query), "page": page}))

    def _list(self, query: Query) -> Page[Webhook]:
        return self._requests.request("GET", _WEBHOOKS, query=query).data

    def get(self, webhook_id: str) -> Webhook:
        return self._requests.request("GET", f"{_WEBHOOKS}/{segment(webhook_id)}").data

    def create(self, **body: Unpack[CreateWebhook]) -> IssuedWebhook:
        """Creates a webhook, which gets the events from now on. Store its `secret`, which is returned once.

        The same bizId with the same terms returns the same webhook, with `secret` None: if the first response was lost, `rotate` returns
        another secret.
        """
        return self._command("create", body)

    def update(self, webhook_id: str, **changes: Unpack[WebhookChanges]) -> Webhook:
        """Changes a webhook, pauses it (`status="PAUSED"`), or resumes it (`"ACTIVE"`) after the last delivered event."""
        return self._command("update", {"webhookId": webhook_id, **changes}, is_repeatable=True)

    def rotate(self, webhook_id: str, *, grace_seconds: int | None = None) -> RotatedWebhook:
        """Returns a new secret.

        For `grace_seconds` (default: a day), deliveries are also signed with the previous one. If the outcome is `UNKNOWN`, rotate again.
        """
        grace = {} if grace_seconds is None else {"graceSeconds": grace_seconds}
        return self._command("rotate", {"webhookId": webhook_id, **grace})

    def seek(self, webhook_id: str, after: int) -> Webhook:
        """Continues after another position: a lower one sends events again, a higher one skips events."""
        return self._command("seek", {"webhookId": webhook_id, "after": after}, is_repeatable=True)

    def delete(self, webhook_id: str) -> DeletedWebhook:
        """Deletes a webhook. Deleting it again has no effect."""
        return self._command("delete", {"webhookId": webhook_id}, is_repeatable=True)

    def _command(self, name: str, body: Mapping[str, object], *, is_repeatable: bool | None = None) -> Any:
        path = f"/api/v1/webhook/command/{name}"
        return self._requests.request("POST", path, body=body, is_repeatable=is_repeatable).data
