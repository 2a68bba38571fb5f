package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mneme.dev/mneme/internal/codeindex"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
)

// CodeCmd groups what is done with the code of projects.
type CodeCmd struct {
	Search        CodeSearchCmd        `cmd:"" group:"read" help:"Search the code of an indexed project."`
	Conversations CodeConversationsCmd `cmd:"" group:"read" help:"List the conversations about a function of an indexed project."`
}

// CodeSearchCmd searches the code of a project.
type CodeSearchCmd struct {
	Query    []string `arg:"" help:"What to search for, in words or names; several arguments make one query." sep:"none"`
	Project  string   `help:"The project: its name, or a folder; . is this one." default:"." placeholder:"NAME" complete:"directory"`
	Limit    int      `help:"Maximum number of scopes." default:"10"`
	MaxChars int      `help:"Maximum number of characters of each scope." default:"500"`
	Text     bool     `help:"Print the code too."`
	pastFlags
	waitFlags
}

func (*CodeSearchCmd) Help() string {
	return `Finds functions, types, sections of documents and other pieces of a project's files by their names, their words and their meaning, as they were when mneme index last ran.

Examples:

    mneme code search "where are uploads retried"
    mneme code search Store.Close --project ~/src/cli --text
    mneme code search "parse the header" --limit 3 --json`
}

func (c *CodeSearchCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	words := strings.Join(c.Query, " ")
	if strings.TrimSpace(words) == "" {
		return &program.UsageError{Err: errors.New("nothing to search for: the query has no words")}
	}
	name, err := projectNamed(c.Project)
	if err != nil {
		return err
	}
	query := parameters{"query": words, "limit": c.Limit, "max_chars": c.MaxChars}.with(c.pastFlags.query(), c.waitFlags.query())
	body, err := api.raw(ctx, http.MethodGet, "/v1/projects/"+segment(name)+"/code/search", query, "", nil)
	if err != nil {
		return err
	}
	var found struct {
		Indexes []httpapi.CodeIndex  `json:"indexes"`
		Scopes  []httpapi.FoundScope `json:"scopes"`
		Left    int                  `json:"left_out"`
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return err
	}
	if len(found.Indexes) == 0 { // with --json, too: a script can't tell from an empty list that nothing was searched
		return fmt.Errorf("the code of %s is not indexed: run mneme index . in its folder; if it has just run, ask again in a second", name)
	}
	if g.JSON {
		return t.rawJSON(body, false)
	}
	for _, x := range found.Indexes {
		if !x.Done {
			t.say("%s is being read, or was read a moment ago: ask again in a second. If mneme index was ended, run it again.", x.Root)
		}
	}
	if found.Left > 0 {
		t.say("%s were not searched: the index is too large.", counted(found.Left, "scope"))
	}
	if len(found.Scopes) == 0 {
		return t.text("nothing found\n")
	}
	if c.Text {
		var out strings.Builder
		for _, s := range found.Scopes {
			fmt.Fprintf(&out, "%s:%d-%d %s %s\n\n%s\n\n", s.Path, s.StartLine, s.EndLine, s.Kind, s.Name, "    "+t.hang(s.Text, 4))
		}
		return t.text(strings.TrimSuffix(out.String(), "\n"))
	}
	rows := make([][]any, len(found.Scopes))
	for i, s := range found.Scopes {
		rows[i] = []any{fmt.Sprintf("%s:%d-%d", s.Path, s.StartLine, s.EndLine), s.Kind, s.Name, fmt.Sprintf("%.2f", s.Score)}
	}
	return t.table([]column{{Name: "WHERE", Min: 20, End: true}, {Name: "KIND", Drop: 1}, {Name: "NAME", Min: 12}, {Name: "SCORE", Drop: 2}}, rows)
}

// indexed returns what the server holds of the index of a project, nil if nothing.
func (c *client) indexed(ctx context.Context, project string) (*codeindex.State, error) {
	state := &codeindex.State{Project: project, Files: map[string]*codeindex.File{}}
	for after := uint64(0); ; {
		var page struct {
			Index     *httpapi.CodeIndex    `json:"index"`
			EventID   string                `json:"event_id"`
			Files     []httpapi.IndexedFile `json:"files"`
			NextAfter uint64                `json:"next_after"`
		}
		if err := c.get(ctx, "/v1/projects/"+segment(project)+"/code/files", parameters{"after": after, "limit": 10_000}, &page); err != nil {
			return nil, err
		}
		if state.Scan = page.EventID; page.Index != nil {
			state.Open = !page.Index.Done
		}
		for _, f := range page.Files {
			state.Files[f.Path] = &codeindex.File{Hash: f.Hash, ID: f.EventID, Gone: f.Removed}
			if f.Removed {
				state.Files[f.Path].Hash = ""
			}
		}
		if after = page.NextAfter; after == 0 {
			break
		}
	}
	if state.Scan == "" && len(state.Files) == 0 {
		return nil, nil
	}
	return state, nil
}
