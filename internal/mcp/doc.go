// Package mcp serves mneme to agents by the Model Context Protocol: five tools over the view of a
// conversation and of a project, on streamable HTTP ([New]) and on stdio ([Proxy]).
//
// A request is about one project and one conversation. The first source that names them counts: the tool's
// arguments, the parameters project and conversation of the URL, the headers Mneme-Project and
// Mneme-Conversation. If nothing names a project, the tools that need one refuse, and list the newest:
// an agent that is told about the wrong project is worse off than one that has to ask. With a token of
// one project it is always that project.
//
// Every answer names its project, has a limited size, and says how to continue if something was left
// out. What was recorded is in a frame, which says that it is data, and in texts every line of a record
// after its first begins with a tab, as in a context.
//
// People reach the same answers without the model: as resources, by prompts, and with completion of names.
//
// Answers are texts, lists as JSON. None has structuredContent: Claude Code, Codex and others then show a model
// nothing else, so it would not see the frame; Qwen Code, Cline and others show both, so it would read all twice.
package mcp
