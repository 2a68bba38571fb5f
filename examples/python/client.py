"""Publishes a small conversation in four ways and reads the context back: python client.py [CONVERSATION]"""
import asyncio, json, os, sys
from urllib.parse import quote
from urllib.request import Request, urlopen

import nats
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

URL = os.environ.get("MNEME_URL", "http://127.0.0.1:8420")
NATS_URL = os.environ.get("MNEME_NATS_URL", "nats://127.0.0.1:4222")
conversation = sys.argv[1] if len(sys.argv) > 1 else "from-python"

def event(kind, id, **data):
    return CloudEvent({"type": f"dev.mneme.{kind}.v1", "source": "examples/python", "id": f"{conversation}/{id}",
                       "subject": conversation, "datacontenttype": "application/json"}, data)

async def over_nats(stream, kind, message):  # the same headers and body as over HTTP
    subject = f"mneme.default.{quote(conversation, safe=':/@=+').replace('.', '%2E')}.{kind}"
    return (await stream.publish(subject, message.body, headers=message.headers)).seq

def over_http(message):
    return json.load(urlopen(Request(f"{URL}/v1/events", message.body, message.headers)))["seq"]

async def main():
    question = event("message.created", "m1", message_id="m1", role="user", content="Où est le café ? ☕")
    call = event("tool.called", "t1", tool_call_id="t1", tool_name="grep", arguments={"pattern": "café"})
    result = event("tool.returned", "r1", tool_call_id="t1", success=True, result="menu.txt:3: café crème")
    answer = event("message.created", "m2", message_id="m2", role="assistant", content="À la ligne 3 du menu.")
    async with await nats.connect(NATS_URL, max_reconnect_attempts=1) as connection:  # without this it tries for minutes
        stream = connection.jetstream()  # once a sequence is returned, the event is on disk
        await over_nats(stream, "message_created", to_binary_event(question))
        await over_nats(stream, "tool_called", to_structured_event(call))
    over_http(to_binary_event(result))
    seq = over_http(to_structured_event(answer))
    print(urlopen(f"{URL}/v1/conversations/{quote(conversation, safe='')}/context?format=markdown&at_least={seq}").read().decode())

asyncio.run(main())
