"""What the synchronous and the asynchronous client have in common; nothing here does I/O."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypedDict
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

from .errors import MnemeError, ProblemError, UnavailableError
from .types import CallFields, ConversationFields, MessageFields, ResultFields

# At run time too: what makes tools of functions reads the types of their parameters.
if sys.version_info >= (3, 11):
    from typing import Unpack as Unpack
else:
    from typing_extensions import Unpack as Unpack

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0  # seconds between tries
LONGEST_RETRY_AFTER = 60.0
BATCH, BATCH_BYTES = 1000, 16 << 20  # events that the server stores all or none
SILENCE = 45.0  # seconds without a word, not even a comment, after which a stream is dead


class Recorded(NamedTuple):
    """What was recorded."""

    id: str  #: of the message or the tool call
    seq: int  #: its sequence in the log
    duplicate: bool  #: the log had it already, nothing was stored again
    deleted: bool = False  #: the conversation was deleted before: the log has it, but nothing shows it


class Event(TypedDict):
    """An event of the log, as a stream gives it."""

    seq: int
    conversation_id: str
    kind: str  #: such as message_created, tool_called, tool_returned
    id: str
    source: str
    time: str  #: "" if its producer gave none
    data: Any  #: None if it is over 64 KiB or not readable


@dataclass(frozen=True)
class Entry:
    """Something to record: made by user(), assistant(), tool_call() and tool_result()."""

    type: str
    event_id: str
    id: str
    data: Mapping[str, Any]


def user(text: str, *, id: str | None = None, **fields: Unpack[MessageFields]) -> Entry:
    """A message of the user, which begins a turn."""
    return _message("user", text, id, fields)


def assistant(text: str, *, id: str | None = None, **fields: Unpack[MessageFields]) -> Entry:
    """A message of the model: before its next tool calls, or as its answer."""
    return _message("assistant", text, id, fields)


def tool_call(tool: str, arguments: Any, *, id: str | None = None, **fields: Unpack[CallFields]) -> Entry:
    """A call of a tool. The id is the one that the model's API gave it; arguments are any JSON."""
    id = id or uuid4().hex
    given = _given(fields, CallFields)
    return Entry("tool.called", f"tool_call/{id}", id, {"tool_call_id": id, "tool_name": tool, "arguments": arguments, **given})


def tool_result(call: str | Recorded, result: Any = None, **fields: Unpack[ResultFields]) -> Entry:
    """What a tool returned, a text or any JSON. If there is an error, the call counts as failed."""
    id = call if isinstance(call, str) else call.id
    error = fields.get("error")
    given = {name: value for name, value in _given(fields, ResultFields).items() if name != "error" or value}
    data = {"success": not error, **given, "tool_call_id": id, "result": error if result is None and error else result}
    return Entry("tool.returned", f"tool_result/{id}", id, data)


def started(fields: ConversationFields) -> Entry:
    return Entry("conversation.started", "started", "started", _given(fields, ConversationFields))


def _given(fields: Mapping[str, Any], known: type) -> dict[str, Any]:
    """Refuse a mistyped option: the server would store it, and nothing would read it."""
    names = known.__annotations__
    for name in fields:
        if name not in names:
            raise MnemeError(f"there is no option {name} here, only {', '.join(names)}")
    return {name: value for name, value in fields.items() if value is not None}


def _message(role: str, text: str, id: str | None, fields: MessageFields) -> Entry:
    id = id or uuid4().hex
    return Entry("message.created", f"message/{id}", id, {"message_id": id, "role": role, "content": text, **_given(fields, MessageFields)})


def _maker(entry: Entry, message: str | None) -> str | None:
    """Return the message that makes the calls after an entry; before it, it was message."""
    if entry.type != "message.created":
        return message
    return entry.id if entry.data["role"] == "assistant" else None


@dataclass
class _Caller:
    """What a request with messages says of the next calls."""

    message: str | None = None  # that makes them
    failed: bool = False  # the request
    before: _Caller | None = None  # what was so before it, until it has succeeded


class Recorder:
    """Makes the events of one conversation from entries."""

    def __init__(self, conversation: str, source: str) -> None:
        self._conversation, self._source = conversation, source
        self._caller = _Caller()  # of the last request that has not failed

    def batches(self, entries: Iterable[Entry]) -> Generator[tuple[list[Entry], bytes], None, None]:
        """Yield bodies of requests; to ask for the next one says that this one was recorded, to close that it failed.

        A call belongs to the message of the model before it, unless it says otherwise. That message may still be on its
        way, but not have failed.
        """
        message, size = self._caller.message, 0
        batch: list[Entry] = []
        events: list[bytes] = []
        for entry in list(entries):
            if not isinstance(entry, Entry):
                kind = type(entry).__name__
                raise MnemeError(f"record takes what user(), assistant(), tool_call() and tool_result() return, and was given a {kind}")
            event = encode(self._event(entry, message))
            message = _maker(entry, message)
            if batch and (len(batch) == BATCH or size + len(event) > BATCH_BYTES):
                yield from self._request(batch, events)
                batch, events, size = [], [], 0
            batch.append(entry)
            events.append(event)
            size += len(event)
        if batch:
            yield from self._request(batch, events)

    def _request(self, batch: list[Entry], events: list[bytes]) -> Generator[tuple[list[Entry], bytes], None, None]:
        body = b"[" + b",".join(events) + b"]"
        messages = [entry for entry in batch if entry.type == "message.created"]
        if not messages:
            yield batch, body
            return
        caller = self._caller = _Caller(_maker(messages[-1], None), before=self._caller)
        try:
            yield batch, body
            caller.before = None
        except GeneratorExit:
            caller.failed = True
            while self._caller.failed and self._caller.before:
                self._caller = self._caller.before
            raise

    def _event(self, entry: Entry, message: str | None) -> dict[str, Any]:
        data = dict(entry.data)
        if entry.type == "tool.called":
            message = data.pop("message_id", message)
            if message is not None:  # always the last member, because their order is part of the content
                data["message_id"] = message
        return {
            "specversion": "1.0",
            "type": f"dev.mneme.{entry.type}.v1",
            "source": self._source,
            "id": entry.event_id,
            "subject": self._conversation,
            "time": datetime.now(timezone.utc).isoformat(),
            "datacontenttype": "application/json",
            "data": data,
        }


class Position:
    """The highest sequence that a client has recorded: what it reads includes everything up to there."""

    def __init__(self) -> None:
        self._lock, self.seq = threading.Lock(), 0

    def reached(self, seq: int) -> None:
        with self._lock:
            self.seq = max(self.seq, seq)


class Settings:
    """Where the server is, and how to speak to it. A server on this machine is not reached through the proxies of HTTP_PROXY."""

    def __init__(self, url: str | None, token: str | None, tenant: str | None, retries: int) -> None:
        self.url = (url or os.environ.get("MNEME_URL") or "http://127.0.0.1:8420").rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise MnemeError(f"the url of mneme must begin with http:// or https://, and is {self.url}")
        try:
            host = (urlsplit(self.url).hostname or "").lower()
        except ValueError as error:
            raise MnemeError(f"the url of mneme is invalid: {error}") from error
        local = host == "localhost" or host.endswith(".localhost") or host == "::1" or host.startswith("127.")
        self.mounts: dict[str, None] = {f"all://[{host}]" if ":" in host else f"all://{host}": None} if local else {}  # past every proxy
        self.tenant = tenant or os.environ.get("MNEME_TENANT") or None
        self.retries = retries
        token = os.environ.get("MNEME_TOKEN") if token is None else token
        self.headers = {"Authorization": f"Bearer {token.strip()}"} if token else {}

    def query(self, *options: Mapping[str, Any]) -> str:
        """Return the query parameters of a request. None is the same as absent; except_ stands for except."""
        pairs: list[tuple[str, str]] = []
        for name, value in [("tenant", self.tenant)] + [pair for o in options for pair in o.items()]:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                if one is not None:
                    pairs.append((name.rstrip("_"), str(one).lower() if isinstance(one, bool) else str(one)))
        return urlencode(pairs)

    def pause(self, failure: MnemeError, tried: int) -> float | None:
        """Return how many seconds to wait before the next try, None if there is none."""
        if tried > self.retries or isinstance(failure, ProblemError) and not isinstance(failure, UnavailableError):
            return None
        asked = retry_after(failure.retry_after) if isinstance(failure, UnavailableError) else None
        if asked is not None:
            return asked if asked <= LONGEST_RETRY_AFTER else None
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (tried - 1))
        return random.uniform(longest / 2, longest)


def retry_after(text: str) -> float | None:
    """Return the seconds of a header Retry-After, which has a number or a date."""
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(timezone.utc)).total_seconds())
    except (TypeError, ValueError):
        return None


def path(*parts: str) -> str:
    """Return a path of the API; what is between the slashes of the parts may be any text."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def checked(what: str, text: str) -> str:
    """Return an id that a path can carry. A URL loses the segments . and .., also if they are escaped."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MnemeError(f"the {what} has half a character, a lone surrogate") from error
    if text in (".", ".."):
        raise MnemeError(f'the {what} cannot be "{text}", because no address of the API can hold that')
    return text


def check_type(url: str, got: str, expected: str) -> None:
    """Check the media type of an answer: a proxy may have answered, such as with its page to sign in."""
    if got.partition(";")[0].strip().lower() != expected:
        raise MnemeError(f"mneme did not answer at {url}: an answer of the type {expected} was expected, and it is {got or 'of none'}")


def moved(url: str, status: int, location: str) -> MnemeError:
    """Return the error for a redirect. It is not followed, because it would take a token, and what is recorded, elsewhere."""
    where = location.partition("?")[0] or "nowhere"
    return MnemeError(f"mneme did not answer at {url}: HTTP {status} leads to {where}; if mneme is there, give that address as the url")


def decode(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise MnemeError(f"mneme did not answer: what came is not JSON: {error}") from error


def encode(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        try:
            return text.encode()
        except UnicodeEncodeError:  # half a character: the server replaces it in texts, and refuses it in ids
            return json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise MnemeError(f"this cannot be recorded, because it has no form in JSON: {error}") from error


def recorded(entries: Sequence[Entry], answer: Mapping[str, Any]) -> list[Recorded]:
    deleted = bool(answer.get("deleted"))  # the events are of one conversation
    return [Recorded(entry.id, one["seq"], one["duplicate"], deleted) for entry, one in zip(entries, answer["events"])]


class Lines:
    """Splits bytes into lines at line feeds alone: JSON may hold every other line end that str.splitlines knows."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # pieces of the line that has not ended; joined once, as it may be long

    def feed(self, piece: bytes) -> list[str]:
        """Return the lines that end in this piece."""
        first, *others = piece.split(b"\n")
        self._begun.append(first)
        if not others:
            return []
        whole = [b"".join(self._begun), *others[:-1]]
        self._begun = others[-1:]
        return [line.decode() for line in whole]


class EventParser:
    """Reads server-sent events line by line."""

    def __init__(self) -> None:
        self._name = ""
        self._data: list[str] = []

    def line(self, line: str) -> Event | None:
        """Take the next line; return the event that it ends, if it does."""
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        if line:
            return None
        name, data = self._name, "\n".join(self._data)
        self._name, self._data = "", []
        if name != "event":
            return None
        sent = decode(data)
        event = sent.get("event") or {}
        return {
            "seq": sent["seq"],
            "conversation_id": sent["conversation_id"],
            "kind": sent["kind"],
            "id": event.get("id", ""),
            "source": event.get("source", ""),
            "time": event.get("time", ""),
            "data": event.get("data"),
        }
