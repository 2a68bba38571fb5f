"""The asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from contextlib import closing
from typing import Any, Literal, cast, overload
from uuid import uuid4

import httpx

from . import types as t
from ._core import FIRST_PAUSE, SILENCE, Entry, Event, EventParser, Lines, Position, Recorded, Recorder, Settings, Unpack
from ._core import assistant, check_type, checked, decode, encode, moved, path, recorded, started, tool_call, tool_result, user
from .errors import MnemeError, UnreachableError, problem


class AsyncMemory:
    """A server of mneme.

    url, token and tenant default to the variables MNEME_URL, MNEME_TOKEN and MNEME_TENANT, then
    to http://127.0.0.1:8420, no token, and the token's tenant or "default". Pass token="" for none.

    source names your program. Conversation, source and id identify what is recorded, so recording
    it again is harmless: after a connection error, 429, 502, 503 or 504 each call is tried again, up
    to retries times, waiting longer each time or as long as the server asks.

    timeout is in seconds, for each wait on the network. Pass your own http client for proxies or
    certificates; you close it then.

    Everything that is read includes what was recorded through the same object.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        tenant: str | None = None,
        source: str = "mneme-sdk",
        retries: int = 4,
        timeout: float = 30.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._settings = Settings(url, token, tenant, retries)
        self._timeout, self._source, self._position = timeout, source, Position()
        self._http, self._own = http or httpx.AsyncClient(mounts=self._settings.mounts), http is None

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._own:
            await self._http.aclose()

    @property
    def seq(self) -> int:
        """The highest sequence recorded through this object, 0 if there is none."""
        return self._position.seq

    def conversation(self, id: str | None = None) -> AsyncConversation:
        """Return a conversation, which need not exist; without an id, a new one. It sends nothing."""
        return AsyncConversation(self, uuid4().hex if id is None else checked("id of a conversation", id), self._source)

    def project(self, name: str) -> AsyncProject:
        """Return a project: what conversations have in common. Name it when a conversation starts."""
        return AsyncProject(self, checked("name of a project", name))

    def conversations(self, **options: Unpack[t.ConversationsOptions]) -> AsyncGenerator[t.ConversationInfo, None]:
        """Iterate over conversations, by default those with the newest events first."""
        return self._pages(path("conversations"), "conversations", options)

    async def search(self, query: str, **options: Unpack[t.SearchAllOptions]) -> list[t.FoundConversation]:
        """Find conversations, each with its best messages, best first."""
        answer = await self._get(path("search"), options, {"query": query})
        return cast("list[t.FoundConversation]", answer["conversations"])

    async def import_events(self, export: str | bytes | AsyncIterable[str]) -> t.ImportReport:
        """Record exported events again, here or in another tenant, from a text or line by line. Known ones are skipped.

        An import line by line is not tried again by itself, because its lines are gone.
        """
        once = not isinstance(export, (str, bytes))
        content = _with_line_ends(export) if isinstance(export, AsyncIterable) and not isinstance(export, (str, bytes)) else export
        response = await self._send("POST", path("import"), content=content, media="application/x-ndjson", once=once)
        report: t.ImportReport = decode(response.content)
        self._position.reached(report["seq"])
        return report

    async def stream(
        self, *, conversation: str | None = None, kinds: Iterable[str] | None = None, from_seq: int | None = None
    ) -> AsyncGenerator[Event, None]:
        """Iterate over the events of the log as they come, without end, from a sequence or from now on.

        When the connection breaks, it continues after the last event, so that none is missed and none comes twice.
        """
        if from_seq is None:  # fixed now: events that come while the connection is broken count
            status = await self._send("GET", path("status"), bare=True)
            from_seq = decode(status.content)["stream"]["head"] + 1
        options = {"conversation": conversation, "kind": list(kinds or [])}
        while True:
            response = await self._send("GET", path("stream"), options, {"from": from_seq}, expected="text/event-stream", stream=True)
            lines, parser = Lines(), EventParser()
            try:
                async for piece in response.aiter_bytes():
                    for line in lines.feed(piece):
                        if event := parser.line(line):
                            from_seq = event["seq"] + 1
                            yield event
            except httpx.RequestError:
                pass  # the next request tells whether the server is there
            finally:
                await response.aclose()
            await asyncio.sleep(FIRST_PAUSE)

    async def _record(self, recorder: Recorder, entries: Iterable[Entry]) -> list[Recorded]:
        done: list[Recorded] = []
        try:
            with closing(recorder.batches(entries)) as batches:
                for batch, body in batches:
                    response = await self._send("POST", path("events"), content=body, media="application/cloudevents-batch+json")
                    answer = decode(response.content)
                    self._position.reached(answer["seq"])
                    done += recorded(batch, answer)
        except MnemeError as error:
            error.recorded = done
            raise
        return done

    async def _change(self, method: str, to: str, change: Mapping[str, Any], *options: Mapping[str, Any]) -> dict[str, Any]:
        body = encode(change) if change or method == "PATCH" else None  # a change of nothing is refused for what it is
        response = await self._send(method, to, *options, content=body, media="application/json", key=uuid4().hex)
        written: dict[str, Any] = decode(response.content)
        self._position.reached(written["seq"])
        return written

    async def _get(self, to: str, *options: Mapping[str, Any]) -> Any:
        return decode((await self._read(to, *options)).content)

    async def _context(self, to: str, format: str, options: Mapping[str, Any]) -> Any:
        expected = "text/markdown" if format == "markdown" else "application/json"
        response = await self._read(to, options, {"format": format}, expected=expected)
        return response.text if format == "markdown" else decode(response.content)

    async def _read(
        self, to: str, *options: Mapping[str, Any], expected: str = "application/json", stream: bool = False
    ) -> httpx.Response:
        at_least = {"at_least": self.seq} if self.seq and not any("at_least" in given for given in options) else {}
        return await self._send("GET", to, *options, at_least, expected=expected, stream=stream)

    async def _pages(self, to: str, member: str, options: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        cursor: str | None = None
        while True:
            page = await self._get(to, options, {"cursor": cursor})
            for row in page[member]:
                yield row
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    async def _send(
        self,
        method: str,
        to: str,
        *options: Mapping[str, Any],
        content: str | bytes | AsyncIterable[bytes] | None = None,
        media: str | None = None,
        key: str | None = None,
        expected: str = "application/json",
        stream: bool = False,
        once: bool = False,
        bare: bool = False,
    ) -> httpx.Response:
        settings, tried = self._settings, 0
        params = "" if bare else settings.query(*options)  # the status is of the whole log, and takes no tenant
        headers = {**settings.headers, **({"Content-Type": media} if content is not None and media else {})}
        if key:
            headers["Idempotency-Key"] = key
        waits = sum(o.get("wait_ms") or 0 for o in options) / 1000
        timeout = httpx.Timeout(self._timeout, read=SILENCE if stream else self._timeout + waits)
        while True:
            tried += 1
            failure: MnemeError
            try:
                request = self._http.build_request(
                    method, settings.url + to, params=params, headers=headers, content=content, timeout=timeout
                )
                response = await self._http.send(request, stream=True)
                media, wait = (response.headers.get(name, "") for name in ("Content-Type", "Retry-After"))
                try:
                    if response.is_success:
                        check_type(settings.url, media, expected)
                    if not stream or not response.is_success:
                        await response.aread()
                except BaseException:
                    await response.aclose()
                    raise
                if response.is_success:
                    return response
                if response.is_redirect:
                    raise moved(settings.url, response.status_code, response.headers.get("Location", ""))
                failure = problem(method, response.status_code, media, response.text, wait)
            except (httpx.LocalProtocolError, httpx.InvalidURL) as error:
                raise MnemeError(f"this request cannot be sent to {settings.url}: {error}") from error
            except httpx.RequestError as error:
                failure = UnreachableError(f"no answer from {settings.url}: {error or type(error).__name__}")
                failure.__cause__ = error
            pause = None if once else settings.pause(failure, tried)
            if pause is None:
                raise failure
            await asyncio.sleep(pause)


class AsyncConversation:
    """A conversation. One agent at a time should record in it, because order is the order of arrival."""

    def __init__(self, memory: AsyncMemory, id: str, source: str) -> None:
        self.id = id
        self._memory, self._source, self._recorder = memory, source, Recorder(id, source)

    async def start(self, **fields: Unpack[t.ConversationFields]) -> None:
        """Describe a new conversation: its title, project, working directory. It is optional; call it first, and once.

        Another description later is refused, or has no effect; update() changes title and tags.
        """
        await self.record([started(fields)])

    async def user(self, text: str, *, id: str | None = None, **fields: Unpack[t.MessageFields]) -> Recorded:
        """Record a message of the user, which begins a turn."""
        return (await self.record([user(text, id=id, **fields)]))[0]

    async def assistant(self, text: str, *, id: str | None = None, **fields: Unpack[t.MessageFields]) -> Recorded:
        """Record a message of the model: before its next tool calls, or as its answer."""
        return (await self.record([assistant(text, id=id, **fields)]))[0]

    async def tool_call(self, tool: str, arguments: Any, *, id: str | None = None, **fields: Unpack[t.CallFields]) -> Recorded:
        """Record a call of a tool. The id is the one that the model's API gave it; arguments are any JSON.

        It belongs to the message of the model that was last recorded through this object. To record a call again
        through another object, record that message again first, or pass its id as message_id.
        """
        return (await self.record([tool_call(tool, arguments, id=id, **fields)]))[0]

    async def tool_result(self, call: str | Recorded, result: Any = None, **fields: Unpack[t.ResultFields]) -> Recorded:
        """Record what a tool returned, a text or any JSON. If there is an error, the call counts as failed."""
        return (await self.record([tool_result(call, result, **fields)]))[0]

    async def record(self, entries: Iterable[Entry]) -> list[Recorded]:
        """Record several entries, in order.

        Up to 1,000 entries of up to 16 MiB are sent in one request, more in several. A request is stored whole or not at
        all, unless one of its ids was recorded in the last 30 seconds: then its entries are stored up to the first whose
        id has other content, which raises a ConflictError. The error's recorded lists what the requests before it stored.
        To continue, record the same entries again.
        """
        return await self._memory._record(self._recorder, entries)

    @overload
    async def context(self, *, format: Literal["markdown"] = "markdown", **options: Unpack[t.ContextOptions]) -> str: ...
    @overload
    async def context(self, *, format: Literal["openai"], **options: Unpack[t.ContextOptions]) -> t.OpenAIChat: ...
    @overload
    async def context(self, *, format: Literal["anthropic"], **options: Unpack[t.ContextOptions]) -> t.AnthropicChat: ...
    @overload
    async def context(self, *, format: Literal["json"], **options: Unpack[t.ContextOptions]) -> t.Context: ...

    async def context(self, *, format: str = "markdown", **options: Any) -> Any:
        """Return what an agent should see now, in max_chars characters (100,000): as a text, as arguments of a call
        of OpenAI's or Anthropic's client, or as data."""
        return await self._memory._context(path("conversations", self.id, "context"), format, options)

    async def search(self, query: str, **options: Unpack[t.SearchOptions]) -> list[t.Found]:
        """Find messages, best first."""
        answer = await self._memory._get(path("conversations", self.id, "search"), options, {"query": query})
        return cast("list[t.Found]", answer["messages"])

    async def search_tools(self, query: str = "", **options: Unpack[t.SearchOptions]) -> list[t.FoundResult]:
        """Find results of tools, best first; without a query the newest."""
        asked = {"query": query or None, "kind": "tool"}
        answer = await self._memory._get(path("conversations", self.id, "search"), options, asked)
        return cast("list[t.FoundResult]", answer.get("tool_results", []))

    async def info(self) -> t.ConversationInfo:
        """Return its title, status, counts and so on. A NotFoundError means that nothing is recorded yet."""
        return cast("t.ConversationInfo", await self._memory._get(path("conversations", self.id)))

    def messages(self, **options: Unpack[t.MessagesOptions]) -> AsyncGenerator[t.Message, None]:
        """Iterate over messages, newest first unless order is "oldest"."""
        return self._memory._pages(path("conversations", self.id, "messages"), "messages", options)

    def turns(self, **options: Unpack[t.TurnsOptions]) -> AsyncGenerator[t.Turn, None]:
        """Iterate over turns, newest first unless order is "oldest"."""
        return self._memory._pages(path("conversations", self.id, "turns"), "turns", options)

    def tool_calls(self, **options: Unpack[t.ToolCallsOptions]) -> AsyncGenerator[t.ToolCall, None]:
        """Iterate over tool calls, newest first unless order is "oldest"."""
        return self._memory._pages(path("conversations", self.id, "tool-calls"), "tool_calls", options)

    def summaries(self, **options: Unpack[t.SummariesOptions]) -> AsyncGenerator[t.Summary, None]:
        """Iterate over summaries, those written last first unless order is "oldest"."""
        return self._memory._pages(path("conversations", self.id, "summaries"), "summaries", options)

    async def files(self, **options: Unpack[t.FilesOptions]) -> list[t.File]:
        """Return the files that its tools touched, the newest access first."""
        answer = await self._memory._get(path("conversations", self.id, "files"), options)
        return cast("list[t.File]", answer["files"])

    async def similar(self, **options: Unpack[t.SimilarOptions]) -> list[t.FoundConversation]:
        """Return conversations about the same subject, each with its best messages, best first."""
        answer = await self._memory._get(path("conversations", self.id, "similar"), options)
        return cast("list[t.FoundConversation]", answer["conversations"])

    async def branch(self, message: str | Recorded, *, id: str | None = None, **fields: Unpack[t.BranchFields]) -> AsyncConversation:
        """Begin a conversation that sees this one up to a message, and continues differently; without an id, a new one."""
        at = message if isinstance(message, str) else message.id
        given = {"message_id": at, "id": uuid4().hex if id is None else checked("id of a conversation", id), **fields}
        change = {name: value for name, value in given.items() if value is not None}
        written = await self._memory._change("POST", path("conversations", self.id, "branches"), change)
        return AsyncConversation(self._memory, written["conversation_id"], self._source)

    def stream(self, *, kinds: Iterable[str] | None = None, from_seq: int | None = None) -> AsyncGenerator[Event, None]:
        """Iterate over its events as they come, as stream() of the memory does."""
        return self._memory.stream(conversation=self.id, kinds=kinds, from_seq=from_seq)

    async def export(self) -> AsyncGenerator[str, None]:
        """Iterate over its events, one line each, for import_events() or a file. An error means that lines are missing."""
        response = await self._memory._read(path("conversations", self.id, "export"), expected="application/x-ndjson", stream=True)
        lines = Lines()
        try:
            async for piece in response.aiter_bytes():
                for line in lines.feed(piece):
                    yield line
        except httpx.RequestError as error:
            raise UnreachableError(f"the export broke off: {error}") from error
        finally:
            await response.aclose()

    async def update(
        self, *, title: str | None = None, tags: list[str] | None = None, status: Literal["active", "archived"] | None = None
    ) -> None:
        """Change its title, tags or status."""
        given = {"title": title, "tags": tags, "status": status}
        change = {name: value for name, value in given.items() if value is not None}
        await self._memory._change("PATCH", path("conversations", self.id), change)

    async def delete(self, reason: str | None = None) -> None:
        """Delete it: nothing shows it any more, nor what is recorded in it afterwards, which raises no error.

        The log keeps its events until an operator runs `mneme erase`.
        """
        await self._memory._change("DELETE", path("conversations", self.id), {}, {"reason": reason})


class AsyncProject:
    """A project: what its conversations have in common."""

    def __init__(self, memory: AsyncMemory, name: str) -> None:
        self.name = name
        self._memory = memory

    @overload
    async def context(self, *, format: Literal["markdown"] = "markdown", **options: Unpack[t.ProjectContextOptions]) -> str: ...
    @overload
    async def context(self, *, format: Literal["openai"], **options: Unpack[t.ProjectContextOptions]) -> t.OpenAIChat: ...
    @overload
    async def context(self, *, format: Literal["anthropic"], **options: Unpack[t.ProjectContextOptions]) -> t.AnthropicChat: ...
    @overload
    async def context(self, *, format: Literal["json"], **options: Unpack[t.ProjectContextOptions]) -> t.Context: ...

    async def context(self, *, format: str = "markdown", **options: Any) -> Any:
        """Return what a new conversation should know of earlier ones, in max_chars characters (8,000), in the
        formats that a conversation's context has."""
        return await self._memory._context(path("projects", self.name, "context"), format, options)


async def _with_line_ends(lines: AsyncIterable[str]) -> AsyncGenerator[bytes, None]:
    async for line in lines:
        yield line.rstrip("\n").encode() + b"\n"
