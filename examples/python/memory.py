"""An agent whose model keeps its notes in mneme: python memory.py "What to do" (needs ANTHROPIC_API_KEY)"""
import json, os, sys
from urllib.parse import quote
from urllib.request import Request, urlopen

API = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
MODEL = os.environ.get("MODEL", "claude-sonnet-4-5")
PROJECT = os.environ.get("PROJECT", os.getcwd())  # every session of the project has the same files
MEMORY = f"{os.environ.get('MNEME_URL', 'http://127.0.0.1:8420')}/v1/projects/{quote(PROJECT, safe='')}/memory"

def post(url, body, **headers):
    request = Request(url, json.dumps(body).encode(), {"content-type": "application/json", **headers})
    with urlopen(request, timeout=300) as response:
        return json.load(response)

def ask(messages):
    return post(f"{API}/v1/messages", {
        "model": MODEL, "max_tokens": 4096, "messages": messages,
        "tools": [{"type": "memory_20250818", "name": "memory"}],  # the model knows its commands
    }, **{"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01",
          "anthropic-beta": "context-management-2025-06-27"})

def use(call):
    """Has mneme carry out a command: once it answers, a change is in the log."""
    answer = post(MEMORY, call["input"])
    print(f"  {call['input']['command']}: {answer['content'].splitlines()[0]}", file=sys.stderr)
    return {"type": "tool_result", "tool_use_id": call["id"], "content": answer["content"], "is_error": answer["is_error"]}

def main(task):
    messages = [{"role": "user", "content": task}]
    while True:
        answer = ask(messages)
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            print("\n".join(block["text"] for block in answer["content"] if block["type"] == "text"))
            return
        messages.append({"role": "user", "content": [use(call) for call in calls]})

main(" ".join(sys.argv[1:]) or "What do you remember about this project?")
