// Package window builds the context: what an agent should see now, in so many
// characters. It only reads, through [Source], and the same input gives the same
// bytes.
//
// # Sections
//
// A context is a list of sections, each with its share of the budget; the table
// stands in sections.go, one list for each strategy. What a section does not use
// goes on to the next.
//
//	strategy  sections
//	hybrid    last user queries 5 %, recent turns 5 %, relevant past and relevant code with all that is left, story so far 10 %, recently accessed files 5 %
//	relevant  last user queries 5 %, recent turns 5 %, relevant past with all that is left
//	levels    last user queries 5 %, story so far 50 %, recent turns with all that is left
//	recent    last user queries 5 %, recent turns with all that is left
//	pruned    the conversation whole up to 10 messages, else the first one, a bridge and the last 9
//
// The relevant past are the messages that a search finds for [Request].Query, or for what
// the user said last, and that no other section shows: the best first while there is room,
// in the order of the log, of a long one what stands around its best passage. Package
// recall ranks them. Summaries are ranked beside them, by what they say times how sure one
// can be of it, and turns go first: a summary has the room that messages leave, or that of
// messages which rank below it, if none of the messages that it covers stands there or in
// the recent turns, if it does not part two that follow each other there, and if the story
// so far does not tell it.
//
// The relevant code are pieces of files that tools showed or wrote and the recent turns do
// not show: of the hundred newest pieces those that have most to do with what was said last
// and with the last 20 calls, whose file was touched last, and that were shown last. Of a
// line the newest version counts; what was replaced is left out. It has a tenth of the budget
// at least, and of what is left the share that tools have of the text of late; messages have
// the rest, for the relevant past. Where tools do the work, steps are long, and the recent
// turns have up to 2,000 characters more. What either does not need goes to the recent turns.
// In less than 3,000 characters there is none.
//
// The story so far is the frontier: the summaries that no other one consolidates and that
// cover something which the recent turns do not show. What it does not need goes to the
// recent turns. Over its share the highest level goes first, then the newest; the first
// that does not fit is shown as far as it does, if that is 60 characters or more, and the
// manifest says what is missing. The bridge is made of it too, in 10 %.
//
// # Rules
//
//   - Never over the budget in any format, in Unicode code points, headings and marks
//     included. What each format needs around the sections is set aside in all of
//     them, so all show the same.
//   - The newest user message and the first instruction (the first user message)
//     always survive. They are cut, with a mark, only if they alone exceed the
//     budget; what they need is set aside before anything else is collected.
//   - A user message is one that a user wrote. What a program puts into the role of the
//     user has an origin, such as meta for the text of a skill: it belongs to the turn
//     of the user message before it, is cut and left out as other steps are, and is
//     never the query. To say which messages these are, up to 1,000 in the role of the
//     user are read from either end; if a user wrote none of them there is none.
//   - A call is never split from its result: a result stands with its call or not
//     at all. A call that has no result, and a result that never had a call, are
//     shown as such.
//   - Nothing appears twice. Recent turns are the newest turns, without a gap, and
//     carry their turn numbers; the last user queries go on where they end. Among
//     the queries the first instruction is always one, unless its turn is a recent
//     one.
//   - No one text eats a section: in recent turns each message, each call's
//     arguments and each result takes at most a quarter of the room, the two user
//     messages above excepted. Results over 1,000 characters that are older than
//     the last 3 messages are condensed to 800. A step that still does not fit is
//     shown with shorter texts if it is the newest one or an eighth of the room
//     would stay empty.
//   - Reads are bounded by the budget, not by the length of the conversation:
//     newest first, by pages, until the budget is full. The first instruction is
//     found by a search over sequences.
//
// A context as of the latest sequence is read as of the conversation's last event,
// so what is appended meanwhile does not mix in. Files come from another read
// model, which may be a moment ahead or behind.
//
// # Texts inside of Markdown
//
// Every line of a text but its first begins with a tab, and each text begins
// after a label ("**User**: "). In Markdown a line after a tab is an indented
// block or goes on with its paragraph, so a heading, a fence or a forged label in a
// message means nothing; and a line without a tab is always this package's own.
// [FirstLine] says so to the model that reads it.
//
// Every line end that some reader knows becomes LF, since a line that only some readers see
// would have no tab. Other control characters but TAB are dropped. Newlines before and
// after a text are not shown.
//
// # Messages for models
//
// [Context.OpenAI] and [Context.Anthropic] give the same parts as messages that these APIs
// accept; chat.go says how. The system part is [ChatSystem] and nothing else. What neither
// a user nor the assistant said, and what has no role of its own, stands in messages of the
// user between marks that no recorded text can contain; marks.go says why.
//
// # Errors
//
//   - [*InvalidError]: the request breaks a rule; it names the field
//   - graph.ErrNotFound: no such conversation, or not yet as of that sequence
//   - anything else: the store's trouble
package window
