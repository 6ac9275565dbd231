"""The options of a client."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .transport import Transport


@dataclass(frozen=True)
class Settings:
    """Valid options."""

    base_url: str
    api_key: str
    api_secret: str = field(repr=False)
    locale: str
    timeout: float
    max_retries: int
    transport: Transport

    def __post_init__(self) -> None:
        """Raises ValueError that says which option is invalid, and how to correct it. It never contains the secret."""
        if not _is_origin(self.base_url):
            raise ValueError(
                f"base_url must be a URL without a path, such as https://wallet.example.com, not {self.base_url!r}"
            )
        for name in ("api_key", "api_secret", "locale"):
            text: object = getattr(self, name)
            if text == "":
                raise ValueError(f"{name} is empty: check where it comes from")
            if not isinstance(text, str) or not re.fullmatch(r"[!-~]+", text):
                raise ValueError(f"{name} must be text without spaces and line breaks: check where it comes from")
        if not 0 < self.timeout <= 86_400:
            raise ValueError(f"timeout must be more than 0 and at most 86400 seconds, not {self.timeout}")
        if self.max_retries < 0:
            raise ValueError(f"max_retries must be 0 or more, not {self.max_retries}")


def _is_origin(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # Reading an invalid port raises ValueError.
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_complete and url == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc and url.isascii()
