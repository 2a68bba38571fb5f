"""Records more than one request holds: batches.py URL, where the second request about "many" fails."""

import sys
from typing import Any

import mneme

memory = mneme.Memory(sys.argv[1], tenant="python")

many = memory.conversation("many-python")
entries = [mneme.assistant(f"message {i}", id=f"m{i}") for i in range(1001)]
try:
    many.record(entries)
    raise AssertionError("no error")
except mneme.ProblemError as error:
    assert [done.id for done in error.recorded] == [f"m{i}" for i in range(1000)], error.recorded
    assert memory.seq == error.recorded[-1].seq
many.tool_call("ls", {})
assert [row["message_id"] for row in many.tool_calls()] == ["m999"]

# The API stores all or none of up to 16 MiB, and takes no more than 64.
large = memory.conversation("large-python")
done = large.record(mneme.user("x" * (6 << 20)) for _ in range(3))
assert [one.duplicate for one in done] == [False] * 3, done

# What is no entry is said to be none, and a change of nothing to be one.
no_entries: list[Any] = [{"role": "user", "content": "x"}]
try:
    many.record(no_entries)
    raise AssertionError("no error")
except mneme.MnemeError as error:
    assert "record takes what user()" in str(error), error
try:
    many.update()
    raise AssertionError("no error")
except mneme.InvalidError as error:
    assert "nothing to change" in str(error), error

memory.close()
