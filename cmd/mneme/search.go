package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mneme/internal/httpapi"
	"mneme/internal/service"
)

// SearchCmd searches the messages of a conversation.
type SearchCmd struct {
	Query        string `arg:"" help:"What to search for, in words."`
	Conversation string `required:"" help:"The conversation to search in." placeholder:"ID"`
	Limit        int    `help:"Messages at most." default:"10"`
	MaxChars     int    `help:"Characters of each message at most." default:"400"`
	pastFlags
	waitFlags
}

// Help implements kong.HelpProvider.
func (*SearchCmd) Help() string {
	return `Messages are ranked by their words and their meaning, by what stands around them, and by who and when the query names: as a context ranks the relevant past.

Examples:

    mneme search "why did we change the parser?" --conversation ID
    mneme search "When did Ann visit Rome?" --conversation ID --limit 3 --json`
}

// Run prints what was found, the best first.
func (c *SearchCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if strings.TrimSpace(c.Query) == "" {
		return &service.UsageError{Err: errors.New("nothing to search for: name it in words")}
	}
	api, err := g.client()
	if err != nil {
		return err
	}
	body, err := api.raw(ctx, http.MethodGet, conversation(c.Conversation, "/search"), parameters{
		"query": c.Query, "limit": c.Limit, "max_chars": c.MaxChars,
	}.with(c.pastFlags.query(), c.waitFlags.query()), "", nil)
	if err != nil {
		return err
	}
	if g.JSON {
		return t.rawJSON(body, false)
	}
	var found struct {
		Messages []httpapi.Found `json:"messages"`
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return err
	}
	if len(found.Messages) == 0 {
		return t.text("nothing found\n")
	}
	var out strings.Builder
	for _, m := range found.Messages {
		t.message(&out, &httpapi.Message{
			Row: m.Row, MessageID: fmt.Sprintf("relevance %.0f%%", 100*m.Relevance), Role: m.Role, Speaker: m.Speaker, Content: m.Text,
		}, extent{})
	}
	return t.painted(strings.TrimPrefix(out.String(), "\n"))
}
