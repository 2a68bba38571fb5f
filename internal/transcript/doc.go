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
//
//   - cloudevents: one CloudEvent per line in JSON format, as an export writes it.
//     The event is taken unchanged: id, source, time, extensions and data.
//
//   - claude-code: what Claude Code writes to ~/.claude/projects/…/<session>.jsonl.
//     A message can span several lines, and most lines hold no message at all.
//
//   - codex: what Codex writes to ~/.codex/sessions/…/rollout-<time>-<thread>.jsonl, also
//     compressed with Zstandard.
//
//   - pi: what pi and older versions of OpenClaw write to ~/.pi/agent/sessions/…/<time>_<session>.jsonl, versions 1 to 3.
//
//   - gemini-cli, qwen-code, kimi-code, droid, cline, opencode, goose, crush, hermes, openclaw, cursor, zed, vscode-chat, copilot-cli, continue, openhands, aider, swe-agent: what these agents write, see their
//     descriptions in the table. Cline's is that of Roo Code and Kilo Code too, opencode's that of newer versions of Kilo.
//
//   - messages: lists of messages of the APIs of OpenAI, Anthropic and Gemini.
//
// A recording can also be one JSON value over several lines. It is read as a whole, up to [MaxDocumentBytes], and its
// items count as being on line 1. opencode, Kilo, goose, Crush, Hermes Agent, OpenClaw, Cursor and Zed have databases of SQLite, which [ReadDatabase] reads.
//
// The neutral form and Claude Code's format name the same things alike. A session imported
// from either, or again after it has grown, is the same conversation with the same events:
//
//	what             event and payload id          in the neutral form   in Claude Code's
//	conversation     claude_code:<session>         kind conversation     the file's name, else sessionId
//	user message     msg:<uuid>                    kind message          a user line with text
//	agent's message  msg:<uuid of its first line>  kind message          all lines with one message.id
//	queued prompt    msg:queued:<hash>             -                     shown to the agent within its turn, see claudeQueue
//	editor's text    ide:<uuid>                    -                     what an editor told in a user line
//	compaction       sum:<uuid>                    kind summary          isCompactSummary
//	failed request   sys:<uuid>                    kind message, system  system line, subtype api_error
//	tool call        toolu_…                       kind tool_call        a tool_use block
//	tool result      res:toolu_…                   kind tool_result      a tool_result block
//
// So do the neutral form and Codex's rollouts. A place is the line number, or o and the
// line's ordinal where Codex writes one:
//
//	what             event and payload id            in Codex's rollouts
//	conversation     codex:<thread>                  the first session_meta, else the file's name
//	message          codex:<thread>:<place>          a message or agent_message item
//	calls' message   codex:<thread>:<place>:m        reasoning, or the first call, without a message
//	editor's text    codex:<thread>:<place>:ide      what an editor told in a user's message
//	compaction       codex:<thread>:<place>          a compacted line with a text
//	tool call        call_… or <message's place>:c   an item that ends in _call
//	tool result      res:call_…                      an item that ends in _output
//
// And pi's sessions. A place is the entry's id, or in version 1 the line number:
//
//	what             event and payload id             in pi's sessions
//	conversation     pi:<session>                     the session line, else the file's name
//	message          pi:<session>:<place>             a message line of user or assistant
//	compaction       pi:<session>:<place>:compaction  a compaction line
//	tool call        toolu_… or <message's id>:c1     a toolCall block
//	tool result      res:<tool call>                  a message line of a toolResult
//	user's command   pi:<session>:<place>:bash        a message line of a bashExecution
//
// A row in the database of OpenClaw is a line as in pi's sessions; its conversation is openclaw:<session>, and so on.
//
// The others in short. Where it says <conversation>: before an id, that id is unique in the conversation only:
//
//	format       conversation                 message                                     tool call
//	gemini-cli   gemini_cli:<session>         its UUID, else <conversation>:<its id>      its id
//	qwen-code    qwen_code:<session>          <conversation>:<its UUID>                   <conversation>:<its id>
//	kimi-code    kimi_code:<session>          <conversation>:<its id, step or line>       <conversation>:<its id>
//	cline        cline:, roo: or kilo:<task>  <conversation>:<its id, else a hash>        <conversation>:<its id>
//	opencode     opencode: or kilo:<session>  its id                                      the id of its part
//	goose        goose:<session>              <conversation>:<its id, else its row>       <conversation>:<its id>
//	crush        crush:<session>              its id                                      <conversation>:<its id>
//	hermes       hermes:<session>             <conversation>:<a hash>                     <conversation>:<its id>
//	cursor       cursor:<chat>                <conversation>:<its id, or its hash>        <conversation>:<its id>
//	zed          zed:<thread>                 <conversation>:<a hash>                     <conversation>:<its id>
//	vscode-chat  vscode_chat:<session>        <conversation>:<request>, :<n> its answers  <conversation>:<its id>
//	copilot-cli  copilot_cli:<session>        <conversation>:<id of the event>            <conversation>:<its id>
//	openhands    openhands:<conversation>     <conversation>:<id of the event>            <conversation>:<its id>
//	aider        aider:<folder>:<its start>   <conversation>:<number>                     none
//	swe-agent    swe_agent:<run>/<instance>   <conversation>:<step>, :h<n> before         <conversation>:<step>:call
//	messages     chat:<file>-<hash>           px:<end of a chain of hashes>               <conversation>:<its id>
//
// A result has the id of its call behind res:, and in SWE-agent's trajectories :res behind its step.
//
// A session of pi is a tree whose branches the user can leave. All of its entries are imported, in
// the order in which they were written.
//
// A subagent of Claude Code, whose file is agent-<id>.jsonl, is a conversation of its own,
// claude_code:<session>:agent-<id>. It is not a branch: it has not seen what the session has. Those of Copilot CLI and
// Qwen Code are named likewise, by their session and their own id.
//
// A fork of Claude Code, Qwen Code or Factory Droid begins with copies of the lines of its session. They give the events of that session, once more
// and marked, see [Item]; the fork is a branch that begins behind them.
//
// The source of these events is import/ and the agent, as in import/claude_code. The agent
// is the part of the conversation id before the first colon.
//
// A session of VS Code's chat is a value and the changes that it has seen, one on each line; its items count as being where
// their request was added. The folder that was open is in the file workspace.json beside the folder of the sessions.
//
// An answer of the editor Cursor is a row of bubbles, each with a text or a call. A call belongs to the last bubble with a text;
// without one, its own bubble is a message, too. In the databases of Cursor's CLI, messages that a compaction took from the
// model come first.
//
// A branch of a session of Hermes Agent begins where it left the session, with what was said from there on. A compaction
// writes what the model still sees a second time; these copies are left out.
//
// # What is left out
//
// From the neutral form: files (labels for evaluation, not facts of the log), seq (the
// order of the lines replaces it), and members of meta that have no place in the
// vocabulary.
//
// From Claude Code's format: lines about progress, hooks, snapshots and modes;
// side chains inside a session's file (the subagent's report is the result of the call that
// started it, and is imported); titles of other sessions; encrypted reasoning; images, replaced with "[image]".
//
// From Codex's rollouts: event_msg lines, which repeat what response items say; snapshots;
// encrypted reasoning; the history that a compaction leaves; images. The texts that Codex puts
// into the user's messages have the origin meta.
//
// From pi's sessions: changes of the model and of the thinking level, labels, and an extension's own
// state; what a request cost; images. Summaries of branches that were left, and what an extension puts
// into the user's messages, have the origin meta.
//
// From the others: what the program tells only the user, snapshots, costs and images; what Cline and Roo add to a prompt
// about their environment; the results that Gemini CLI repeats as messages; the demonstration of SWE-agent has the origin meta.
//
// Lines of an unknown type are left out too, and told to [OnSkip]: agents add types with every
// release.
//
// # Errors
//
// A line that can't be imported yields an [Item] with a [*LineError], and reading continues.
// [Read] itself returns an error only if no format fits, the reader fails, the context
// ends, or yield returns one.
package transcript
