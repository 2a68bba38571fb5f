"""Frameworks make tools of functions by the types of their parameters, which they read at run time."""

import inspect
import typing

import mneme

for cls in (mneme.Memory, mneme.Conversation, mneme.Project, mneme.AsyncMemory, mneme.AsyncConversation, mneme.AsyncProject):
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        typing.get_type_hints(method)
for function in (mneme.user, mneme.assistant, mneme.tool_call, mneme.tool_result):
    assert typing.get_type_hints(function)["return"] is mneme.Entry
