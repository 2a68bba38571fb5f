// Package window builds the context: what an agent should see now, in a given number of characters.
// It only reads, through [Source], and the same input gives the same bytes.
//
// # Sections
//
// A context is a list of sections, each with a share of the budget; sections.go has one list for
// each strategy. The next section gets the room that a section does not use.
//
//	strategy  sections
//	hybrid    last user queries 5 %, recent turns 5 %, relevant past and relevant code with all that is left, story so far 10 %, recently accessed files 5 %
//	relevant  last user queries 5 %, recent turns 5 %, relevant past with all that is left
//	levels    last user queries 5 %, story so far 50 %, recent turns with all that is left
//	recent    last user queries 5 %, recent turns with all that is left
//	pruned    the conversation whole up to 10 messages, else the first one, a bridge and the last 9
//
// The relevant past holds messages that a search finds for [Request].Query, or for the newest user
// message, and that no other section shows. The best are chosen first while there is room, shown in
// the order of the log, and a long one is cut to the text around its best passage. Package recall
// ranks them. Summaries are ranked too, by their score times their confidence, but messages have
// priority: a summary gets the room that messages leave, or that of messages ranked below it. It is
// left out if a message that it covers is already there or in the recent turns, if it would split
// two adjacent messages, or if the story so far contains it.
//
// The relevant code holds pieces of files that tools showed or wrote and the recent turns do not
// show. The hundred newest pieces are ranked by how well they match what was said last and the last
// 20 calls, by how recently their file was touched, and by how recently they were shown. Only the
// newest version of a line counts; replaced lines are left out. The section gets at least a tenth
// of the budget. What remains is split between code and the relevant past in the proportion of tool
// output to messages in the recent text. Where tools do the work, steps are long, so the
// recent turns get up to 2,000 characters more. Room that neither needs goes to the recent turns.
// Below 3,000 characters there is no such section.
//
// The story so far is the frontier: the summaries that no other one consolidates and that cover
// something outside of the recent turns. Room that it does not need goes to the recent turns. If it
// exceeds its share, the highest level goes first, then the newest; the first summary that does not
// fit is cut if 60 characters or more of it fit, and the manifest says what is missing. The bridge
// is made of it too, in 10 %.
//
// # Rules
//
//   - No format exceeds the budget, in Unicode code points, headings and marks
//     included. All formats set aside what any of them needs around the sections, so
//     all show the same.
//   - The newest user message and the first instruction (the first user message)
//     always survive. They are cut, with a mark, only if they alone exceed the
//     budget; what they need is set aside before anything else is collected.
//   - A user message is one that a user wrote. A message that a program puts into the
//     user's role has an origin, such as meta for the text of a skill: it belongs to the
//     turn of the user message before it, is cut and left out as other steps are, and is
//     never the query. The search for a user's message reads up to 1,000 in the user's
//     role from either end; if a user wrote none of them, the context has none.
//   - A call is never split from its result: a result is shown with its call or not
//     at all. A call that has no result, and a result that never had a call, are
//     shown as such.
//   - An assistant message is shown with all its calls or not at all. Calls without a
//     message before them in their turn are shown or left out one by one.
//   - Nothing appears twice. Recent turns are the newest turns, without a gap, and
//     carry their turn numbers; the last user queries are those before them. The
//     queries always include the first instruction, unless its turn is a recent one.
//   - No single text fills a section: in recent turns each message, each call's
//     arguments and each result takes at most a quarter of the room, except the two
//     user messages above. Results over 1,000 characters that are older than
//     the last 3 messages are condensed to 800. A step that still does not fit is
//     shown with shorter texts if it is the newest one or an eighth of the room
//     would stay empty.
//   - The budget bounds the reads, not the length of the conversation: pages are
//     read newest first until the budget is full. The first instruction is
//     found by a search over sequences.
//
// A context as of the latest sequence is read as of the conversation's last event, so
// events appended while it is read do not mix in. Files come from another read model,
// which may be slightly ahead or behind.
//
// # Texts inside Markdown
//
// Every line of a text but its first begins with a tab, and each text begins
// after a label ("**User**: "). In Markdown a line that begins with a tab is an indented
// block or continues its paragraph, so a heading, a fence or a forged label in a
// message has no effect, and a line without a tab is always this package's own.
// [FirstLine] tells the model so.
//
// Every line end that some reader knows becomes LF, because a line that only some readers
// see would have no tab. TAB is the only other control character that stays. Newlines
// before and after a text are not shown.
//
// # Messages for models
//
// Package chat gives the same parts as messages that model APIs accept. Their system part is
// one fixed sentence. Recorded text that neither a user nor the assistant said goes into user
// messages, between marks that no recorded text can contain; package marks says why.
//
// # Errors
//
//   - [*InvalidError]: the request breaks a rule; it names the field
//   - graph.ErrNotFound: no such conversation, or not yet as of that sequence
//   - any other: an error of the store
package window
