"""An agent that records itself and remembers: python agent.py CONVERSATION QUESTION"""

import json
import os
import sys
from pathlib import Path

import httpx
from mneme import Memory

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MODEL = os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")
HEADERS = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"}
SYSTEM = {"role": "system", "content": "Answer briefly. Look at files with the tools; do not guess."}
TOOLS = [{
    "type": "function",
    "function": {
        "name": "list_files",
        "description": "Lists the files of a folder below the current one.",
        "parameters": {"type": "object", "properties": {"folder": {"type": "string"}}, "required": ["folder"]},
    },
}]


def call_model(messages):
    body = {"model": MODEL, "messages": [SYSTEM, *messages], "tools": TOOLS, "max_tokens": 400}
    answer = httpx.post(f"{URL}/chat/completions", json=body, headers=HEADERS, timeout=300)
    answer.raise_for_status()
    return answer.json()["choices"][0]["message"]


def run_tool(name, arguments):
    """Returns a result, or None and what went wrong, which the model reads."""
    try:
        if name != "list_files":
            raise ValueError(f"there is no tool {name}")
        folder = Path(arguments["folder"]).resolve()
        if not folder.is_relative_to(Path.cwd()):
            raise ValueError("this folder is not below the current one")
        return sorted(file.name for file in folder.iterdir()), None
    except Exception as error:
        return None, str(error)


def answer(conversation, question):
    conversation.user(question)
    for _ in range(10):
        # What the model sees is what mneme chooses: this turn, and what matters of all the turns before.
        context = conversation.context(format="openai", max_chars=20_000)
        message = call_model(context["messages"])
        text, calls = message.get("content") or "", message.get("tool_calls") or []
        conversation.assistant(text, model=MODEL)
        if not calls:
            return text
        for call in calls:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            recorded = conversation.tool_call(name, arguments)
            result, error = run_tool(name, arguments)
            conversation.tool_result(recorded, result, error=error)
    return "I found no answer in 10 steps."


with Memory(source="examples/start") as memory:  # MNEME_URL says where it is
    print(answer(memory.conversation(sys.argv[1]), sys.argv[2]))
