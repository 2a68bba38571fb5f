package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/pkg/window"
)

// SearchCmd searches conversations, or the messages of one.
type SearchCmd struct {
	Query        []string `arg:"" optional:"" help:"What to search for, in words; several arguments make one query." sep:"none"`
	Conversation string   `help:"Search the messages of this conversation; without it, search all conversations." placeholder:"ID" complete:"conversation"`
	Project      string   `help:"Search only conversations of this project; . means the project of this folder." placeholder:"NAME" complete:"directory"`
	Limit        int      `help:"Maximum number of conversations; with --conversation or --kind, of messages or tool results." default:"10"`
	MaxChars     int      `help:"Maximum number of characters of each message or result." default:"400"`
	Rewrite      bool     `help:"Let the server's model add other words to the query; what it added is printed."`
	filterFlags
	searchFlags
	waitFlags
}

// filterFlags choose what is searched, and which part of it.
type filterFlags struct {
	Kind     string   `help:"What to search: message, or with --conversation or --project, tool (the results of tools) or all. Defaults to tool with --tool or --file, else to message." enum:",message,tool,all" default:"" placeholder:"KIND"`
	Tool     string   `help:"With --conversation or --project: only results of this tool, such as Bash, in any case." placeholder:"NAME"`
	File     string   `help:"With --conversation or --project: only results of calls that name this file: a path, or its last components." placeholder:"PATH"`
	Contains []string `help:"Only texts that contain this phrase, in any case, as whole words; * at its end stands for the rest of a word. May be given more than once." placeholder:"TEXT" sep:"none"`
	Without  []string `help:"Only texts that do not contain this phrase; may be given more than once." placeholder:"TEXT" sep:"none"`
	Role     string   `help:"Only messages of user or assistant, or with --conversation, of system." placeholder:"ROLE"`
	Speaker  string   `help:"Only messages of this speaker." placeholder:"NAME"`
	FromTurn int      `help:"With --conversation: only what is from this turn on." placeholder:"N"`
	ToTurn   int      `help:"With --conversation: only what is up to this turn." placeholder:"N"`
	Since    instant  `help:"Only what is from this time or later: RFC 3339, a date, which means its local midnight, or how long ago, such as 7d." placeholder:"TIME"`
	Until    instant  `help:"Only what is before this time." placeholder:"TIME"`
	Plain    bool     `help:"Treat quotes, dashes and asterisks in the query like any other character."`
}

func (f filterFlags) query() parameters {
	all := parameters{"kind": f.Kind, "tool": f.Tool, "file": f.File, "role": f.Role, "speaker": f.Speaker, "since": f.Since.query, "until": f.Until.query}
	if f.Plain {
		all["syntax"] = "plain"
	}
	for name, turn := range map[string]int{"from_turn": f.FromTurn, "to_turn": f.ToTurn} {
		if turn != 0 {
			all[name] = turn
		}
	}
	for name, list := range map[string][]string{"contains": f.Contains, "without": f.Without} {
		if len(list) > 0 {
			all[name] = list
		}
	}
	return all
}

func (*SearchCmd) Help() string {
	return `Searches all conversations by their titles and by what user and assistant said, and ranks them by the words and the meaning of their best and their first messages.

With --conversation, messages are ranked as a context ranks the relevant past: by their words, their meaning and their surroundings, and by the speaker or time that the query names. Results of tools are ranked by their words. With --project, --kind tool finds the results of tools in the newest conversations of the project, and says how many older ones were not searched.

A "phrase in quotes" in the query must be in a text, a -word must not, and the end of a word* is open. Filters exclude messages or results: a search over all conversations then finds only messages that pass, and titles only affect the ranking. Without a query, a search lists everything that passes the filters, newest first. A query that begins with a dash comes last, after --.

Examples:

    mneme search "the session in which we fixed the parser"
    mneme search 'never use mocks' --project . --role user --since 30d
    mneme search --project . --role user --since 7d                   what was asked for in the last week
    mneme search "why did we change the parser?" --conversation ID
    mneme search "When did Ann visit Rome?" --conversation ID --limit 3 --json
    mneme search "the failing test" --conversation ID --contains "go test" --without "flak*" --role user
    mneme search 'the "go test" that failed -flaky pars*' --conversation ID --kind all
    mneme search "undefined: parse" --conversation ID --tool Bash
    mneme search --conversation ID --file pkg/x.go --limit 3          what tools last showed of a file
    mneme search "undefined: parse" --project . --tool Bash           in all newer conversations of the project`
}

func (c *SearchCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	filters, words := c.filterFlags.query(), strings.Join(c.Query, " ")
	switch {
	case strings.TrimSpace(words) == "" && len(filters.values()) == 0:
		return &program.UsageError{Err: errors.New("nothing to search for: give a query, or a filter such as --role or --since")}
	case c.Conversation != "" && c.Project != "":
		return &program.UsageError{Err: errors.New("--project is for a search over conversations: leave out --conversation")}
	case c.Conversation+c.Project == "" && (c.Tool+c.File != "" || c.Kind != "" && c.Kind != "message"):
		return &program.UsageError{Err: errors.New("tool results are searched in one conversation or in one project: name it with --conversation or --project")}
	case c.Conversation == "" && (c.FromTurn != 0 || c.ToTurn != 0):
		return &program.UsageError{Err: errors.New("--from-turn and --to-turn are for one conversation: name it with --conversation")}
	case c.Conversation == "" && len(c.searchFlags.query().values()) > 0:
		return &program.UsageError{Err: errors.New("--as-of, --embedded-up-to, --rerank and --reranked are for the messages of one conversation: name it with --conversation")}
	}
	query := parameters{"query": words, "limit": c.Limit, "max_chars": c.MaxChars, "rewrite": c.Rewrite}.with(c.waitFlags.query())
	if c.Project != "" {
		project, err := projectNamed(c.Project)
		if err != nil {
			return err
		}
		query["project"] = project
	}
	if c.Conversation == "" {
		return foundConversations(ctx, g, t, api, "/v1/search", query.with(filters))
	}
	return showOne(ctx, g, t, api, conversation(c.Conversation, "/search"), query.with(c.searchFlags.query(), filters), t.foundIn)
}

// foundIn is what a search in one conversation found.
type foundIn struct {
	Messages  []httpapi.Found       `json:"messages"`
	Results   []httpapi.FoundResult `json:"tool_results"`
	From      uint64                `json:"tool_results_from"`
	Missing   string                `json:"embedding_missing"`
	Without   []string              `json:"without"`
	Reranked  *window.Reranked      `json:"reranked"`
	Rewritten *window.Rewritten     `json:"rewritten"`
}

func (t *terminal) foundIn(found *foundIn) error {
	t.rewritten(found.Rewritten)
	if found.Missing != "" {
		t.say("Not everything was compared by meaning: %s.", found.Missing)
	}
	if found.Reranked != nil && found.Reranked.Missing != "" {
		t.say("Not reranked: %s.", found.Reranked.Missing)
	}
	if found.From != 0 {
		t.say("Tool results before sequence %d were not searched: the conversation is too long.", found.From)
	}
	t.leftOut(found.Without)
	if len(found.Messages)+len(found.Results) == 0 {
		return t.text("nothing found\n")
	}
	var out strings.Builder
	t.found(&out, found.Messages)
	t.foundResults(&out, found.Results)
	return t.painted(strings.TrimPrefix(t.lit(out.String()), "\n"))
}

// leftOut says which marks in a query left something out.
func (t *terminal) leftOut(without []string) {
	if len(without) > 0 {
		t.say("Left out what contains %s; --plain searches for it instead.", strings.Join(without, ", "))
	}
}

// rewritten says what a model added to a query.
func (t *terminal) rewritten(r *window.Rewritten) {
	switch {
	case r == nil:
	case r.Missing != "":
		t.say("Nothing was added to the query: %s.", r.Missing)
	default:
		t.say("Also searched for: %s", r.Added)
	}
}

// Characters around a highlighted word while its text is wrapped. Recorded texts lose them.
const (
	litFrom = '\uE000'
	litTo   = '\uE001'
)

// marked marks the highlights of a text for [terminal.lit].
func (t *terminal) marked(text string, list []httpapi.Highlight) string {
	if !t.colors {
		return text
	}
	var out strings.Builder
	at := 0
	for i, r := range []rune(text) {
		if at < len(list) && i == list[at].End {
			out.WriteRune(litTo)
			at++
		}
		if at < len(list) && i == list[at].Start {
			out.WriteRune(litFrom)
		}
		if r != litFrom && r != litTo {
			out.WriteRune(r)
		}
	}
	if at < len(list) {
		out.WriteRune(litTo)
	}
	return out.String()
}

// lit shows what [terminal.marked] marked in bold.
func (t *terminal) lit(s string) string {
	if !t.colors {
		return s
	}
	return strings.NewReplacer(string(litFrom), "\x1b["+string(bold)+"m", string(litTo), "\x1b[22m").Replace(s)
}

// foundResults prints the tool results that a search found.
func (t *terminal) foundResults(out *strings.Builder, list []httpapi.FoundResult) {
	for i := range list {
		r := &list[i]
		facts := []string{}
		if r.Time != "" {
			facts = append(facts, t.cell(when(r.Time)))
		}
		if facts = append(facts, fmt.Sprintf("seq %d", r.Seq)); r.Relevance > 0 {
			facts = append(facts, fmt.Sprintf("relevance %.0f%%", 100*r.Relevance))
		}
		if r.Success != nil && !*r.Success {
			facts = append(facts, cmp.Or(r.NotRun, "failed"))
		}
		if r.Duplicates > 0 {
			facts = append(facts, fmt.Sprintf("%d more like it", r.Duplicates))
		}
		facts = append(facts, r.ToolCallID)
		who := console.OneLine(cmp.Or(r.ToolName, "unknown tool"))
		rest := console.OneLine(strings.Join(facts, "  "))
		if w := t.width(); w > 0 {
			rest = console.Cut(rest, max(w-console.Width(who)-2, 0))
		}
		fmt.Fprintf(out, "\n%s  %s\n", t.paint(yellow, who), t.paint(dim, rest))
		if r.Argument != "" {
			out.WriteString(t.paint(dim, "  "+t.hang(console.OneLine(r.Argument), 2)) + "\n")
		}
		out.WriteString(t.block(t.marked(r.Text, r.Highlights), 0, 2) + "\n")
	}
}

// found prints the messages that a search found.
func (t *terminal) found(out *strings.Builder, list []httpapi.Found) {
	for _, m := range list {
		relevance := ""
		if m.Relevance > 0 {
			relevance = fmt.Sprintf("relevance %.0f%%", 100*m.Relevance)
		}
		t.message(out, &httpapi.Message{
			Row: m.Row, MessageID: relevance, Role: m.Role, Speaker: m.Speaker, Content: t.marked(m.Text, m.Highlights),
		}, extent{})
	}
}

// remarkUnknown tells the user if no conversation belongs to a project, whose name may be misspelt. It ignores errors,
// because this is only a remark.
func (c *client) remarkUnknown(ctx context.Context, t *terminal, project string) {
	if project != "" && c.hasNone(ctx, parameters{"project": project}) {
		t.say("Perhaps the name is wrong: %s", nothingOf(project))
	}
}

// remarkUnknownAgent tells the user if no conversation is of an agent.
func (c *client) remarkUnknownAgent(ctx context.Context, t *terminal, agent string) {
	if agent != "" && c.hasNone(ctx, parameters{"agent": agent}) {
		t.say("Perhaps the name is wrong: no conversation is of the agent %s: mneme insights --by agent shows the names", agent)
	}
}

// hasNone reports whether the server says that there is no conversation of some kind.
func (c *client) hasNone(ctx context.Context, of parameters) bool {
	var list struct {
		Conversations []struct{} `json:"conversations"`
	}
	err := c.get(ctx, "/v1/conversations", of.with(parameters{"limit": 1}), &list)
	return err == nil && len(list.Conversations) == 0
}

// foundConversations prints the conversations that a search found.
func foundConversations(ctx context.Context, g *Globals, t *terminal, api *client, path string, query parameters) error {
	body, err := api.raw(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	if g.JSON {
		return t.rawJSON(body, false)
	}
	var found struct {
		Conversations []httpapi.FoundConversation `json:"conversations"`
		Without       []string                    `json:"without"`
		OnlyNewest    bool                        `json:"messages_partial"`
		Rewritten     *window.Rewritten           `json:"rewritten"`
		httpapi.FoundTools
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return err
	}
	t.rewritten(found.Rewritten)
	t.leftOut(found.Without)
	if found.OnlyNewest {
		t.say("Only the newest messages were looked at: give a word to search for, or narrow the search.")
	}
	if found.Partial {
		t.say("Not all tool results of these conversations were looked at: narrow the search.")
	}
	if found.Left > 0 {
		t.say("Tool results of the newest %s were searched; %s of the project left out.", counted(found.Searched, "conversation"), counted(found.Left, "older one"))
	}
	if len(found.Conversations)+len(found.Results) == 0 {
		if name, ok := query["project"].(string); ok {
			api.remarkUnknown(ctx, t, name)
		}
		return t.text("nothing found\n")
	}
	var out strings.Builder
	for i, c := range found.Conversations {
		if i > 0 {
			out.WriteString("\n")
		}
		about := cmp.Or(t.cell(when(c.UpdatedAt)), "conversation")
		if c.Relevance > 0 {
			about = fmt.Sprintf("relevance %.0f%%", 100*c.Relevance)
		}
		out.WriteString(t.rule(about) + "\n")
		out.WriteString(t.hang(t.paint(bold, console.OneLine(c.ID)), 0) + "\n")
		if c.Title != "" {
			out.WriteString(t.hang(console.OneLine(c.Title), 0) + "\n")
		}
		t.found(&out, c.Messages)
	}
	last := ""
	for i := range found.Results {
		r := &found.Results[i]
		if last != r.Conversation {
			if out.Len() > 0 {
				out.WriteString("\n")
			}
			last = r.Conversation
			out.WriteString(t.hang(t.paint(bold, console.OneLine(r.Conversation)), 0) + "\n")
			if r.Title != "" {
				out.WriteString(t.hang(console.OneLine(r.Title), 0) + "\n")
			}
		}
		t.foundResults(&out, []httpapi.FoundResult{r.FoundResult})
	}
	return t.painted(t.lit(out.String()))
}

// ConversationsSimilarCmd finds conversations similar to one.
type ConversationsSimilarCmd struct {
	conversationArg
	Limit    int `help:"Maximum number of conversations." default:"10"`
	MaxChars int `help:"Maximum number of characters of each message." default:"400"`
	waitFlags
}

func (*ConversationsSimilarCmd) Help() string {
	return `Searches all conversations for what this one is about: its title, what its user asked for first, and its newest summary or, without one, what its user said last.

Example:

    mneme conversations similar ID --limit 3`
}

func (c *ConversationsSimilarCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	return foundConversations(ctx, g, t, api, conversation(c.ID, "/similar"), parameters{"limit": c.Limit, "max_chars": c.MaxChars}.with(c.waitFlags.query()))
}
