"""Uses the client in ways that only a type checker judges: make lint-sdk. It is never run."""

from contextlib import aclosing, closing

from mneme import AsyncMemory, Event, Memory


def read(memory: Memory, seq: int) -> str:
    conversation = memory.conversation("typed")
    with closing(memory.stream()) as events:
        first: Event = next(events)
    project = memory.project("typed").context(format="json", explain=True, at_least=seq)
    failed = [call["tool_name"] for call in conversation.tool_calls(success=False)]
    return conversation.context(explain=True, rerank=False, at_least=first["seq"]) + "".join(failed) + str(project["chars"])


async def read_async(memory: AsyncMemory) -> None:
    conversation = memory.conversation("typed")
    async with aclosing(conversation.stream()) as events, aclosing(conversation.messages()) as messages:
        first = await anext(events)
        await conversation.context(format="openai", explain="candidates", at_least=first["seq"])
        await messages.aclose()
