package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/window/projects"
)

// change sends a change of a conversation and prints its sequence.
func (g *Globals) change(ctx context.Context, t *terminal, method, path, done string, query parameters, body map[string]any) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	var raw []byte
	contentType := ""
	if body != nil {
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
		contentType = "application/json"
	}
	reply, err := api.raw(ctx, method, path, query, contentType, raw)
	if err != nil {
		return err
	}
	var answer httpapi.Written
	if err := json.Unmarshal(reply, &answer); err != nil {
		return err
	}
	if g.JSON {
		return t.rawJSON(reply, false)
	}
	if t.isPerson() {
		return t.text(fmt.Sprintf("%s %s at sequence %d\n", done, answer.ConversationID, answer.Seq))
	}
	return t.text(fmt.Sprintf("%s\t%d\n", answer.ConversationID, answer.Seq))
}

// beginFlags are the properties of a new conversation.
type beginFlags struct {
	ID              *string  `help:"Its id; defaults to a new one." placeholder:"ID"`
	Title           string   `help:"Its title."`
	Tag             []string `help:"A tag; may be given more than once." placeholder:"TAG" sep:"none"`
	Agent           string   `help:"The agent that works in it."`
	Model           string   `help:"The model that the agent uses."`
	Cwd             string   `help:"The folder to which relative paths refer." placeholder:"DIR" complete:"directory"`
	Project         string   `help:"The project it belongs to; . means the project of this folder." placeholder:"NAME" complete:"directory"`
	Profile         string   `help:"Its settings profile."`
	MaxContextChars int      `help:"Size in characters of the contexts that its agent reads: decides when summaries are due. The limit of a context is its --max-chars." placeholder:"N"`
}

func (f *beginFlags) body() (map[string]any, error) {
	body := map[string]any{}
	if f.ID != nil && *f.ID == "" {
		return nil, errEmptyID
	} else if f.ID != nil {
		body["id"] = *f.ID
	}
	project, err := projectNamed(f.Project)
	if err != nil {
		return nil, err
	}
	folder := f.Cwd
	if folder != "" { // the server does not know where this program runs
		if folder, err = filepath.Abs(folder); err != nil {
			return nil, err
		}
	}
	for name, value := range map[string]string{
		"title": f.Title, "agent": f.Agent, "model": f.Model, "cwd": folder, "project": project, "profile": f.Profile,
	} {
		if value != "" {
			body[name] = value
		}
	}
	if len(f.Tag) > 0 {
		body["tags"] = f.Tag
	}
	if f.MaxContextChars != 0 {
		body["max_context_chars"] = f.MaxContextChars
	}
	return body, nil
}

// ConversationsCreateCmd creates a conversation.
type ConversationsCreateCmd struct{ beginFlags }

func (*ConversationsCreateCmd) Help() string {
	return `The first event of an unknown conversation creates it too; use this command to set a title or other properties first.

Examples:

    mneme conversations create --title "Fix the flaky test" --tag bug --tag ci
    id=$(mneme conversations create --json | jq -r .conversation_id)`
}

func (c *ConversationsCreateCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	return g.change(ctx, t, http.MethodPost, "/v1/conversations", "created", nil, body)
}

// ConversationsUpdateCmd changes a conversation.
type ConversationsUpdateCmd struct {
	conversationArg
	Title  *string  `help:"The new title; empty for none."`
	Tag    []string `help:"A tag; may be given more than once. The tags replace all existing ones." placeholder:"TAG" sep:"none" xor:"tags"`
	NoTags bool     `help:"Remove all tags." xor:"tags"`
}

func (*ConversationsUpdateCmd) Help() string {
	return `Examples:

    mneme conversations update ID --title "Flaky test, fixed"
    mneme conversations update ID --tag bug --tag done
    mneme conversations update ID --no-tags`
}

func (c *ConversationsUpdateCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	body := map[string]any{}
	if c.Title != nil {
		body["title"] = *c.Title
	}
	if len(c.Tag) > 0 || c.NoTags {
		body["tags"] = append([]string{}, c.Tag...)
	}
	if len(body) == 0 {
		return usageError("nothing to change: give --title, --tag or --no-tags")
	}
	return g.change(ctx, t, http.MethodPatch, conversation(c.ID), "changed", nil, body)
}

// ConversationsArchiveCmd archives a conversation.
type ConversationsArchiveCmd struct{ conversationArg }

func (*ConversationsArchiveCmd) Help() string {
	return "Example:\n\n    mneme conversations archive ID"
}

func (c *ConversationsArchiveCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	return g.change(ctx, t, http.MethodPatch, conversation(c.ID), "archived", nil, map[string]any{"status": "archived"})
}

// ConversationsUnarchiveCmd makes an archived conversation active.
type ConversationsUnarchiveCmd struct{ conversationArg }

func (*ConversationsUnarchiveCmd) Help() string {
	return "Example:\n\n    mneme conversations unarchive ID"
}

func (c *ConversationsUnarchiveCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	return g.change(ctx, t, http.MethodPatch, conversation(c.ID), "made active", nil, map[string]any{"status": "active"})
}

// ConversationsBranchCmd branches a conversation.
type ConversationsBranchCmd struct {
	ParentID  string `arg:"" name:"parent" help:"The conversation to branch." complete:"conversation"`
	MessageID string `arg:"" name:"message" help:"The last message that the branch shares with the parent."`
	beginFlags
}

func (*ConversationsBranchCmd) Help() string {
	return `Examples:

    mneme messages PARENT --json | jq -r '.[] | [.message_id, .role] | @tsv'
    mneme conversations branch PARENT MESSAGE --title "The other way"`
}

func (c *ConversationsBranchCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	body["message_id"] = c.MessageID
	return g.change(ctx, t, http.MethodPost, conversation(c.ParentID, "/branches"), "created branch", nil, body)
}

// confirm asks a question on the terminal. It returns an error unless the answer is yes.
func confirm(ctx context.Context, t *terminal, question, what, nothing string) error {
	if !isTerminal(os.Stdin) || !isTerminal(t.err) {
		return usageError("%s: there is no terminal to ask for confirmation; confirm with --yes", what)
	}
	t.say("%s [y/N]", question)
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
	case <-ctx.Done():
	}
	return errors.New(nothing)
}

// whole refuses a short name of a conversation, and says which id it stands for. What is removed for good has to be named
// by its full id, because the server would take a short name for the id of an unknown conversation.
func (c *client) whole(ctx context.Context, name string) error {
	if !projects.IsShort(name) && !projects.IsSession(name) {
		return nil
	}
	var meant httpapi.Conversation
	err := c.get(ctx, conversation(name), nil, &meant)
	var answered *answeredError
	switch {
	case errors.As(err, &answered) && answered.status == http.StatusUnprocessableEntity: // several have this name
		return err
	case err != nil || meant.ID == name:
		return nil
	}
	return usageError("%s means conversation %s: name what is to be removed by its whole id", name, meant.ID)
}

// ConversationsDeleteCmd deletes a conversation.
type ConversationsDeleteCmd struct {
	ID     string `arg:"" help:"The id of the conversation, in full." complete:"conversation"`
	Reason string `help:"The reason, kept in the log."`
	Yes    bool   `short:"y" help:"Do not ask for confirmation. Required without a terminal."`
}

func (*ConversationsDeleteCmd) Help() string {
	return `Removes the conversation from every list and context. Its branches, and their branches, lose everything that they inherited through it: its own messages, and those that it inherited from conversations that still exist. Later events of it are skipped. The log keeps its events; mneme erase removes those too.

Examples:

    mneme conversations delete ID
    mneme conversations delete ID --yes --reason "test data"`
}

// Run deletes it after confirmation.
func (c *ConversationsDeleteCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if err := api.whole(ctx, c.ID); err != nil {
		return err
	}
	lost := c.lost(ctx, api)
	if !c.Yes {
		of := ""
		if g.Tenant != "" {
			of = " of tenant " + g.Tenant
		}
		question := fmt.Sprintf("Delete conversation %s%s? This cannot be undone.%s", c.ID, of, lost)
		if err := confirm(ctx, t, question, "delete "+c.ID, "nothing was deleted"); err != nil {
			return err
		}
	} else if lost != "" {
		t.say("%s", strings.TrimSpace(lost))
	}
	return g.change(ctx, t, http.MethodDelete, conversation(c.ID), "deleted", parameters{"reason": c.Reason}, nil)
}

// lost says what branches lose with the conversation, "" if it has none or if that is not known: if the server can't
// list them, it says itself whether it can delete.
func (c *ConversationsDeleteCmd) lost(ctx context.Context, api *client) string {
	branches, err := api.pages(ctx, "/v1/conversations", "conversations", 0, parameters{"branch_of": c.ID})
	switch {
	case err != nil || len(branches) == 0:
		return ""
	case len(branches) == 1:
		return " Its branch loses what it shares with it."
	}
	return fmt.Sprintf(" Its %s branches lose what they share with it.", number(len(branches)))
}
