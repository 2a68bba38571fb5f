"""Records without waiting for what was recorded before: together.py URL."""

import asyncio
import sys
from typing import Any

import mneme


async def main() -> None:
    async with mneme.AsyncMemory(sys.argv[1], tenant="python") as memory:
        conversation = memory.conversation("together")

        async def refused(entry: str) -> None:
            try:
                await getattr(conversation, entry)("lost", references=[{"file": ""}])
            except mneme.InvalidError:
                return
            raise AssertionError("no error")

        def call(id: str) -> Any:
            return conversation.tool_call("ls", {}, id=id)

        await asyncio.gather(conversation.user("Where is it?"), call("t1"), conversation.assistant("I look.", id="m1"), call("t2"), call("t3"))
        await call("t4")
        await asyncio.gather(refused("assistant"), refused("assistant"), refused("user"))
        await call("t5")
        await asyncio.gather(refused("assistant"), conversation.assistant("I look again.", id="m2"), refused("user"))
        await call("t6")
        await asyncio.gather(refused("assistant"), conversation.user("And now?", id="m3"), refused("assistant"))
        await call("t7")

        made = {row["tool_call_id"]: row.get("message_id") async for row in conversation.tool_calls()}
        assert made == {"t1": None, "t2": "m1", "t3": "m1", "t4": "m1", "t5": "m1", "t6": "m2", "t7": None}, made


asyncio.run(main())
