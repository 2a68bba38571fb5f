// Package transcript reads what an agent recorded of its own conversations and
// gives it as events of the vocabulary, in the order of the recording.
//
//	paths ──Find──▶ files ──Read──▶ items: an event, or a line that was refused
//
// # Formats
//
// The formats are a table; [Auto] chooses by the first lines.
//
//   - neutral: one JSON object a line with kind, conversation_id, id, parent_ids,
//     seq, role, content, reasoning, tool_name, arguments, result, success, error,
//     duration_ms, time, meta. A line is an event.
//   - cloudevents: one CloudEvent a line in the JSON format, as an export writes
//     it. The event is taken as it is: id, source, time, extensions and data.
//   - claude-code: what Claude Code writes to ~/.claude/projects/…/<session>.jsonl.
//     Several lines can be pieces of one message, and most lines are none at all.
//
// The neutral form and Claude Code's name the same things alike, so a session that is imported from either
// form, or again after it has grown, is the same conversation with the same
// events:
//
//	what             event and payload id          in the neutral form   in Claude Code's
//	conversation     claude_code:<session>         kind conversation     the file's name, else sessionId
//	user message     msg:<uuid>                    kind message          a user line with text
//	agent's message  msg:<uuid of its first line>  kind message          all lines with one message.id
//	compaction       sum:<uuid>                    kind summary          isCompactSummary
//	failed request   sys:<uuid>                    kind message, system  system line, subtype api_error
//	tool call        toolu_…                       kind tool_call        a tool_use block
//	tool result      res:toolu_…                   kind tool_result      a tool_result block
//
// The source of these events is import/ and the agent, import/claude_code: the
// part of the conversation id before its first colon.
//
// # What is left out
//
// Of the neutral form: files (labels for evaluation, not facts of the log), seq
// (the order of the lines stands for it) and the members of meta that the
// vocabulary has no place for.
//
// Of Claude Code's: lines that show progress, hooks, snapshots, the queue, modes;
// side chains, which are a sub-agent's own conversation (its report is the result
// of the call that started it, and that is here); the encrypted reasoning; the
// images, of which "[image]" stays.
//
// # Errors
//
// A line that can't be imported is an [Item] with a [*LineError]; the lines after
// it are read. [Read] itself returns an error only if no format fits, the reader
// fails, the context ends, or yield returns one.
package transcript
