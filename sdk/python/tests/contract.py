"""Makes the calls of the contract and prints what each returned: contract.py sync|async CONTRACT URL TENANT."""

import asyncio
import inspect
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import mneme

kind, contract, url, tenant = sys.argv[1:]
Memory: Any = mneme.Memory if kind == "sync" else mneme.AsyncMemory


async def plain(result: Any, take: int | None) -> Any:
    """Return a result of either client as JSON, and what an iterator gives as a list."""
    if inspect.isawaitable(result):
        result = await result
    rows: list[Any] = []
    if hasattr(result, "__aiter__"):
        async for row in result:
            rows.append(row)
            if len(rows) == take:
                break
        return rows
    if hasattr(result, "__next__"):
        for row in result:
            rows.append(row)
            if len(rows) == take:
                break
        return rows
    if isinstance(result, mneme.Recorded):
        return result._asdict()
    return [await plain(one, None) for one in result] if isinstance(result, list) else result


def method(memory: Any, conversation: Any, name: str, args: list[Any]) -> tuple[Any, list[Any]]:
    """Return the method that a call names, and its arguments."""
    where, _, verb = name.rpartition(".")
    if where == "project":
        return getattr(memory.project(args[0]), verb), []
    if verb == "record":
        return conversation.record, [[getattr(mneme, e["entry"])(*e["args"], **e.get("options", {})) for e in args[0]]]
    if verb == "copy":
        other = Memory(url, tenant=f"{tenant}-{args[0]}", token=os.environ["ELSEWHERE_TOKEN"])
        return other.import_events, [conversation.export()]
    return getattr(memory if where == "memory" else conversation, verb), args


async def run(case: dict[str, Any]) -> list[dict[str, Any]]:
    memory = Memory(url, **{"tenant": tenant, "source": "contract", **case.get("memory", {})})
    conversation = memory.conversation(case.get("conversation", case["name"]))
    results: list[dict[str, Any]] = []
    for call in case["calls"]:
        if call["call"] == "reopen":
            conversation = memory.conversation(conversation.id)
            results.append({})
            continue
        try:
            verb, args = method(memory, conversation, call["call"], call.get("args", []))
            answer = await plain(verb(*args, **call.get("options", {})), call.get("take"))
            if call["call"] == "branch":
                conversation, answer = answer, {"id": answer.id}
            results.append({"answer": answer})
        except mneme.MnemeError as raised:
            error = pickle.loads(pickle.dumps(raised))  # pools of processes pass errors on like this
            results.append({"error": {"type": type(error).__name__, "message": str(error), **vars(error)}})
    await plain(memory.close() if kind == "sync" else memory.aclose(), None)
    return results


async def main() -> None:
    for case in json.loads(Path(contract).read_text()):
        print(json.dumps(await run(case)))


asyncio.run(main())
