"""What schemathesis must know about this API in addition to its description."""
import json
import re

import schemathesis
from hypothesis import strategies as st

# Permitted refusals of requests that the document allows: the location, or else the message, in the problem document.
WHERE = re.compile(
    r"query\.(at_least|as_of)"  # beyond the end of the log
    r"|query\.cursor"  # not one that the API gave
    r"|query\.file"  # neither file nor name, or a line of no file
    r"|(query|body)\.tenant"  # a conversation without its tenant
    r"|header\.content-type"  # JSON without ce- headers, which would make it binary mode
    r"|body\.message_id"  # not one of the conversation
    r"|body(\[\d+\])?\.data\.(first|last)_(seq|turn)"  # a range that ends before it begins
)
WHAT = re.compile(
    r"is \d+ bytes long, the limit is \d+"  # a schema counts characters
    r"|one of seq, conversation and all is needed"
)


def event(conversation, id, content):
    data = {"message_id": id, "role": "user", "content": content}
    return json.dumps({
        "specversion": "1.0", "type": "dev.mneme.message.created.v1", "source": "schemathesis", "id": id, "subject": conversation, "data": data,
    }).encode()


# The body of an import. The document describes it only as bytes.
EVENT = st.builds(event, st.text(min_size=1), st.text(min_size=1), st.text())
LINES = st.lists(EVENT | st.binary(), min_size=1).map(b"\n".join).filter(len)
schemathesis.openapi.media_type("application/x-ndjson", LINES)


@schemathesis.check
def accepts_what_the_document_allows(ctx, response, case):
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code not in (400, 413, 415, 422):
        return
    for error in response.json().get("errors") or [{}]:
        allowed = WHERE.fullmatch(error.get("location", "")) or WHAT.fullmatch(error.get("message", "")) or fraction(error, case.body)
        assert allowed, f"the document allows what is refused: {response.text}"


def fraction(error, body):
    """Reports whether the refused value is an integer to the schema, but written as 5.0."""
    value = body.get(error.get("location", "").removeprefix("body.")) if isinstance(body, dict) else None
    return error.get("message") == "expected integer" and isinstance(value, float) and value.is_integer()


@schemathesis.hook
def filter_case(ctx, case):
    return case.operation.path != "/v1/events" or not read_otherwise(case.body)


def read_otherwise(value):
    """Reports whether mneme reads part of an event differently from its schema:
    null in a list of strings is "", and 1.0 is not an integer."""
    if isinstance(value, dict):
        return any(map(read_otherwise, value.values()))
    if isinstance(value, list):
        return None in value or any(map(read_otherwise, value))
    return isinstance(value, float) and value.is_integer()
