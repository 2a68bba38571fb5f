"""Moves events more slowly than the limits of a client: slow.py URL DEAD_URL."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator

import mneme
import mneme._sync

url, dead = sys.argv[1:]
vars(mneme._sync)["SILENCE"] = 0.3  # seconds after which a silent stream is dead, otherwise 45


def slowly(lines: Iterable[str]) -> Iterator[str]:
    """Pause at each line for longer than a client waits for the network."""
    for line in lines:
        yield line
        time.sleep(0.5)


with mneme.Memory(url, tenant="python") as memory:
    conversation = memory.conversation("slow")
    conversation.record([mneme.user("one", id="m1"), mneme.assistant("two", id="m2"), mneme.user("three", id="m3")])
    export = list(slowly(conversation.export()))
    assert len(export) == 3, export

with mneme.Memory(url, tenant="python-copy", timeout=0.3) as memory:
    report = memory.import_events(slowly(export))
    assert report["published"] == 3, report



def broken() -> Iterator[str]:
    """What the lines themselves raise is no failure of the network."""
    yield export[0]
    raise KeyError("half a file")


with mneme.Memory(url, tenant="python-copy") as memory:
    try:
        memory.import_events(broken())
    except KeyError:
        pass
    else:
        raise AssertionError("half a file was imported")

# A server that takes nothing and says nothing is still given up.
with mneme.Memory(dead, timeout=0.3, retries=0) as memory:
    conversation = memory.conversation("slow")
    calls: dict[str, Callable[[], object]] = {
        "an answer": conversation.info,
        "an upload": lambda: memory.import_events("x" * (64 << 20)),
        "an upload line by line": lambda: memory.import_events("x" * (1 << 20) for _ in range(64)),
        "an export": lambda: next(conversation.export()),
    }
    for what, call in calls.items():
        try:
            call()
        except mneme.UnreachableError:
            continue
        raise AssertionError(f"{what} came from nobody")
