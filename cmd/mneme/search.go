package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
)

// SearchCmd searches conversations, or the messages of one.
type SearchCmd struct {
	Query        string `arg:"" help:"What to search for, in words."`
	Conversation string `help:"Search the messages of this conversation; without it, search all conversations." placeholder:"ID" complete:"conversation"`
	Project      string `help:"Search only conversations of this project; . is that of this folder." placeholder:"NAME" complete:"directory"`
	Limit        int    `help:"Maximum number of conversations, or of messages with --conversation." default:"10"`
	MaxChars     int    `help:"Maximum number of characters of each message." default:"400"`
	filterFlags
	searchFlags
	waitFlags
}

// filterFlags keep some messages of one conversation.
type filterFlags struct {
	Contains []string `help:"With --conversation: only messages that contain this phrase, in any case, as whole words; * at its end stands for the rest of a word. May be given more than once." placeholder:"TEXT" sep:"none"`
	Without  []string `help:"With --conversation: only messages that do not contain this phrase; may be given more than once." placeholder:"TEXT" sep:"none"`
	Role     string   `help:"With --conversation: only messages of user, assistant or system." placeholder:"ROLE"`
	Speaker  string   `help:"With --conversation: only messages of this speaker." placeholder:"NAME"`
	FromTurn int      `help:"With --conversation: only messages from this turn on." placeholder:"N"`
	ToTurn   int      `help:"With --conversation: only messages up to this turn." placeholder:"N"`
	Since    instant  `help:"With --conversation: only messages from this time or date on." placeholder:"TIME"`
	Until    instant  `help:"With --conversation: only messages before this time or date." placeholder:"TIME"`
}

func (f filterFlags) query() parameters {
	all := parameters{"role": f.Role, "speaker": f.Speaker, "since": f.Since.query, "until": f.Until.query}
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

// Help implements kong.HelpProvider.
func (*SearchCmd) Help() string {
	return `Searches all conversations by their titles and by what user and assistant said, and ranks them by the words and the meaning of their best and their first messages.

With --conversation, messages are ranked as a context ranks the relevant past: by their words, their meaning and their surroundings, and by the speaker or time that the query names.

Examples:

    mneme search "the session in which we fixed the parser"
    mneme search "why did we change the parser?" --conversation ID
    mneme search "When did Ann visit Rome?" --conversation ID --limit 3 --json
    mneme search "the failing test" --conversation ID --contains "go test" --without flak* --role user`
}

// Run prints the results, best first.
func (c *SearchCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	switch {
	case strings.TrimSpace(c.Query) == "":
		return &program.UsageError{Err: errors.New("nothing to search for: the query has no words")}
	case c.Conversation != "" && c.Project != "":
		return &program.UsageError{Err: errors.New("--project is for a search over conversations: leave out --conversation")}
	case c.Conversation == "" && len(c.filterFlags.query().values()) > 0:
		return &program.UsageError{Err: errors.New("filters are for the messages of one conversation: name it with --conversation")}
	case c.Conversation == "" && (c.AsOf != 0 || c.EmbeddedUpTo != 0):
		return &program.UsageError{Err: errors.New("--as-of and --embedded-up-to are for the messages of one conversation: name it with --conversation")}
	}
	api, err := g.client()
	if err != nil {
		return err
	}
	query := parameters{"query": c.Query, "limit": c.Limit, "max_chars": c.MaxChars}.with(c.waitFlags.query())
	if c.Project != "" {
		if query["project"], err = projectNamed(c.Project); err != nil {
			return err
		}
	}
	if c.Conversation == "" {
		return foundConversations(ctx, g, t, api, "/v1/search", query)
	}
	body, err := api.raw(ctx, http.MethodGet, conversation(c.Conversation, "/search"), query.with(c.searchFlags.query(), c.filterFlags.query()), "", nil)
	if err != nil {
		return err
	}
	if g.JSON {
		return t.rawJSON(body, false)
	}
	var found struct {
		Messages []httpapi.Found `json:"messages"`
		Missing  string          `json:"embedding_missing"`
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return err
	}
	if found.Missing != "" {
		t.say("Not everything was compared by meaning: %s.", found.Missing)
	}
	if len(found.Messages) == 0 {
		return t.text("nothing found\n")
	}
	var out strings.Builder
	t.found(&out, found.Messages)
	return t.painted(strings.TrimPrefix(out.String(), "\n"))
}

// found prints the messages that a search found.
func (t *terminal) found(out *strings.Builder, list []httpapi.Found) {
	for _, m := range list {
		t.message(out, &httpapi.Message{
			Row: m.Row, MessageID: fmt.Sprintf("relevance %.0f%%", 100*m.Relevance), Role: m.Role, Speaker: m.Speaker, Content: m.Text,
		}, extent{})
	}
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
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return err
	}
	if len(found.Conversations) == 0 {
		return t.text("nothing found\n")
	}
	var out strings.Builder
	for i, c := range found.Conversations {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(t.rule(fmt.Sprintf("relevance %.0f%%", 100*c.Relevance)) + "\n")
		out.WriteString(t.hang(t.paint(bold, console.OneLine(c.ID)), 0) + "\n")
		if c.Title != "" {
			out.WriteString(t.hang(console.OneLine(c.Title), 0) + "\n")
		}
		t.found(&out, c.Messages)
	}
	return t.painted(out.String())
}

// ConversationsSimilarCmd finds conversations similar to one.
type ConversationsSimilarCmd struct {
	conversationArg
	Limit    int `help:"Maximum number of conversations." default:"10"`
	MaxChars int `help:"Maximum number of characters of each message." default:"400"`
	waitFlags
}

// Help implements kong.HelpProvider.
func (*ConversationsSimilarCmd) Help() string {
	return `Searches all conversations for what this one is about: its title, what its user asked for first, and its newest summary or, without one, what its user said last.

Example:

    mneme conversations similar ID --limit 3`
}

// Run prints them.
func (c *ConversationsSimilarCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	return foundConversations(ctx, g, t, api, conversation(c.ID, "/similar"), parameters{"limit": c.Limit, "max_chars": c.MaxChars}.with(c.waitFlags.query()))
}
