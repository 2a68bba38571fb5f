// Package transcript reads an agent's own recordings of its conversations and turns them
// into events, in the order of the recording.
//
//	paths ──Find──▶ files ──Read──▶ items: an event, or a line that was refused
//
// # Formats
//
// The formats are a table; [Auto] picks one by the first lines.
//
//   - neutral: one JSON object per line with kind, conversation_id, id, parent_ids,
//     seq, role, content, reasoning, tool_name, arguments, result, success, error,
//     duration_ms, time, meta. Each line is an event.
//   - cloudevents: one CloudEvent per line in JSON format, as an export writes it.
//     The event is taken unchanged: id, source, time, extensions and data.
//   - claude-code: what Claude Code writes to ~/.claude/projects/…/<session>.jsonl.
//     A message can span several lines, and most lines hold no message at all.
//
// The neutral form and Claude Code's format name the same things alike. A session imported
// from either, or again after it has grown, is the same conversation with the same events:
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
// The source of these events is import/ and the agent, as in import/claude_code. The agent
// is the part of the conversation id before the first colon.
//
// # What is left out
//
// From the neutral form: files (labels for evaluation, not facts of the log), seq (the
// order of the lines replaces it), and members of meta that have no place in the
// vocabulary.
//
// From Claude Code's format: lines about progress, hooks, snapshots, the queue and modes;
// side chains, which are a sub-agent's own conversation (its report is the result of the
// call that started it, and is imported); encrypted reasoning; images, replaced by
// "[image]".
//
// # Errors
//
// A line that can't be imported yields an [Item] with a [*LineError], and reading continues.
// [Read] itself returns an error only if no format fits, the reader fails, the context
// ends, or yield returns one.
package transcript
