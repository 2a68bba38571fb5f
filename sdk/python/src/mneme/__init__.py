"""Memory for AI agents: record what an agent does, read what it should see now.

    from mneme import Memory

    memory = Memory()
    conversation = memory.conversation("my-conversation")
    conversation.user("Where is the checkpoint written?")
    print(conversation.context(max_chars=20_000))

AsyncMemory has the same methods, to be awaited. It belongs to the event loop in which it is
first used: make one in each asyncio.run(). Threads may share a Memory.
"""

from ._async import AsyncConversation, AsyncMemory, AsyncProject
from ._core import Entry, Event, Recorded, assistant, tool_call, tool_result, user
from ._sync import Conversation, Memory, Project
from .errors import (
    BehindError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    LogFullError,
    MnemeError,
    NotFoundError,
    ProblemError,
    UnauthorizedError,
    UnavailableError,
    UnreachableError,
)

__all__ = [
    "AsyncConversation",
    "AsyncMemory",
    "AsyncProject",
    "BehindError",
    "ConflictError",
    "Conversation",
    "Entry",
    "Event",
    "ForbiddenError",
    "InvalidError",
    "LogFullError",
    "Memory",
    "MnemeError",
    "NotFoundError",
    "ProblemError",
    "Project",
    "Recorded",
    "UnauthorizedError",
    "UnavailableError",
    "UnreachableError",
    "assistant",
    "tool_call",
    "tool_result",
    "user",
]
