package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
)

// EraseCmd erases conversations permanently, or proves that nothing of them is left.
type EraseCmd struct {
	What      string   `arg:"" optional:"" help:"What to erase: conversation, project or tenant."`
	Name      string   `arg:"" optional:"" help:"Its id or name."`
	Before    string   `help:"Erase the conversations of --tenant that have no event since this day (2026-01-31, UTC) or time (RFC 3339)." placeholder:"DATE"`
	DryRun    bool     `help:"Only list what would be erased."`
	Yes       bool     `short:"y" help:"Do not ask for confirmation. Required without a terminal."`
	Out       string   `help:"Write the report to this file, as JSON." placeholder:"FILE"`
	Wait      bool     `help:"Return when it is done; --no-wait returns at once." default:"true" negatable:""`
	Prove     []string `help:"Erase nothing: search the files for this text; may be given more than once." placeholder:"TEXT" sep:"none"`
	ProveFile string   `help:"Like --prove, with one text per line of this file." placeholder:"FILE"`
	Path      []string `help:"With --prove: a file or folder to search; may be given more than once. Default: MNEME_DATA, or .mneme." placeholder:"PATH" sep:"none"`
}

func (*EraseCmd) Help() string {
	return `Removes conversations from the log and from everything that is derived from it, so that no byte of them is left in the files. The events are overwritten one by one; then the read models delete the rows and rewrite their files. What stays is the conversation's id in a tombstone, which keeps it from coming back.

A project's conversations are those that mneme projects show lists, deleted ones included; . means the project of this folder. A branch loses what it shares with an erased conversation.

The server does the work. If it is killed, it continues after the next start; interrupting this command does not stop it: mneme status shows how far it is, and the same command, run again, waits for it and prints its report. Run it once more if conversations may have begun in the meantime. The report lists what was removed and what cannot be reached, such as backups, and ends with a SHA-256 over itself.

--prove searches every byte of the given files for texts that must be gone, in plain form and as UTF-16, JSON, headers and search terms contain them. Run it on the machines that hold the log and the read models. The exit code is 3 if it finds one.

Examples:

    mneme erase conversation ID --dry-run
    mneme erase conversation ID --yes --out report.json
    mneme erase project acme/website --tenant acme
    mneme erase tenant acme
    mneme erase --tenant acme --before 2026-01-01
    mneme erase --prove "a sentence that was in it" --path .mneme`
}

// Run erases, or searches.
func (c *EraseCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if len(c.Prove) > 0 || c.ProveFile != "" {
		return c.prove(ctx, g, t)
	}
	if len(c.Path) > 0 {
		return usageError("--path belongs to --prove")
	}
	request, what, err := c.request(g)
	if err != nil {
		return err
	}
	api, err := g.client()
	if err != nil {
		return err
	}
	if c.What == "conversation" {
		if err := api.whole(ctx, c.Name); err != nil {
			return err
		}
	}
	if c.Out != "" && !c.DryRun {
		if err := writable(c.Out); err != nil {
			return usageError("--out: nothing was erased, because the report could not be written: %v", err)
		}
	}
	last, same := c.last(ctx, api, &request) // started by a command that was then killed
	if same && !c.DryRun && last.State != string(erasure.Done) {
		t.say("this erasure was requested before and is still running")
		return c.finish(ctx, g, api, t, last)
	}
	request.DryRun = true
	var found httpapi.Erasure
	if err := api.ask(ctx, "/v1/erasures", request, &found); err != nil {
		return err
	}
	if c.DryRun && (g.JSON || len(found.Conversations) > 0) {
		if err := c.list(g, t, &found); err != nil || len(found.Conversations) > 0 {
			return err
		}
	}
	if found.Todo == 0 && same {
		t.say("this was erased before, and nothing was published to it since")
		if c.DryRun {
			return nil
		}
		return c.finish(ctx, g, api, t, last)
	}
	if len(found.Conversations) == 0 && c.Before == "" { // a name may be mistyped
		return fmt.Errorf("%s: there is nothing to erase", what)
	}
	if len(found.Conversations) == 0 {
		t.say("%s: there is nothing to erase", what)
		if g.JSON && !c.DryRun { // a dry run has printed it
			return t.json(found)
		}
		return nil
	}
	if !c.Yes {
		question := fmt.Sprintf("Erase %s: %s with %s? This cannot be undone.", what, counted(len(found.Conversations), "conversation"), counted(found.Todo, "event"))
		if err := confirm(ctx, t, question, "erase "+what, "nothing was erased"); err != nil {
			return err
		}
	}
	request.DryRun = false
	var state httpapi.Erasure
	if err := api.ask(ctx, "/v1/erasures", request, &state); err != nil {
		return err
	}
	return c.finish(ctx, g, api, t, state)
}

// finish waits for an erasure and prints its report.
func (c *EraseCmd) finish(ctx context.Context, g *Globals, api *client, t *terminal, state httpapi.Erasure) error {
	if c.Wait {
		if err := c.await(ctx, api, t, &state); err != nil {
			return err
		}
	}
	if c.Out != "" && state.Report != nil && state.State == string(erasure.Done) {
		raw, err := json.MarshalIndent(state.Report, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.Out, append(raw, '\n'), 0o600); err != nil {
			return fmt.Errorf("the erasure is done, but its report could not be written (GET /v1/erasure still has it): %w", err)
		}
	}
	if g.JSON {
		return t.json(state)
	}
	return c.print(t, &state)
}

// writable returns why a file can't be written. It does not change the file, and leaves none behind.
func writable(path string) error {
	info, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil // to open a pipe and close it would end its reader
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = f.Close()
	if isNew {
		if real, err := filepath.EvalSymlinks(path); err == nil { // a link may point to no file
			_ = os.Remove(real)
		}
	}
	return err
}

// last returns the running erasure, or else the last one, and whether it is the requested one.
func (c *EraseCmd) last(ctx context.Context, api *client, asked *httpapi.ErasureRequest) (e httpapi.Erasure, same bool) {
	if err := api.get(ctx, "/v1/erasure", nil, &e); err != nil || e.Report == nil {
		return e, false
	}
	s := e.Report.Scope
	return e, s.Tenant == asked.Tenant && s.Conversation == asked.Conversation && s.Project == asked.Project && s.All == asked.All && s.Before.Equal(asked.Before)
}

// request returns what the arguments ask for.
func (c *EraseCmd) request(g *Globals) (r httpapi.ErasureRequest, what string, err error) {
	r.Tenant = g.ownTenant()
	if r.Tenant == "" && c.What != "tenant" && (c.What != "" || c.Before != "") {
		return r, "", usageError("name the tenant with --tenant: a token that may erase is for all tenants")
	}
	if c.Before != "" {
		if c.What != "" {
			return r, "", usageError("give either %s or --before", c.What)
		}
		if r.Before, err = time.Parse(time.DateOnly, c.Before); err != nil {
			if r.Before, err = time.Parse(time.RFC3339, c.Before); err != nil {
				return r, "", usageError("--before %q is neither a day such as 2026-01-31 nor an RFC 3339 time", c.Before)
			}
		}
		return r, fmt.Sprintf("the conversations of tenant %s without an event since %s", r.Tenant, r.Before.Format(time.RFC3339)), nil
	}
	if c.What == "" {
		return r, "", usageError("say what to erase: conversation ID, project NAME, tenant NAME or --before DATE; or what must be gone: --prove TEXT")
	}
	if !slices.Contains([]string{"conversation", "project", "tenant"}, c.What) {
		return r, "", usageError("cannot erase a %q: name a conversation, a project or a tenant", c.What)
	}
	if c.Name == "" {
		return r, "", usageError("erase %s: give its id or name", c.What)
	}
	what = fmt.Sprintf("%s %s of tenant %s", c.What, c.Name, r.Tenant)
	switch c.What {
	case "conversation":
		r.Conversation = c.Name
	case "project":
		if r.Project, err = projectNamed(c.Name); err != nil {
			return r, "", err
		}
		what = fmt.Sprintf("project %s of tenant %s", r.Project, r.Tenant)
	case "tenant":
		r.Tenant, r.All, what = c.Name, true, "tenant "+c.Name
	}
	return r, what, nil
}

// list prints what a dry run found.
func (c *EraseCmd) list(g *Globals, t *terminal, found *httpapi.Erasure) error {
	if g.JSON {
		return t.json(found)
	}
	rows := [][]any{}
	for _, one := range found.Conversations {
		rows = append(rows, []any{one.ID, one.Events})
	}
	if err := t.table([]column{conversationColumn, {Name: "EVENTS", Right: true}}, rows); err != nil {
		return err
	}
	t.say("%s with %s would be erased", counted(len(found.Conversations), "conversation"), counted(found.Todo, "event"))
	return nil
}

// await polls until the erasure is done. If the server is down, it keeps waiting for a while.
func (c *EraseCmd) await(ctx context.Context, api *client, t *terminal, state *httpapi.Erasure) error {
	bar := t.counter("erasing")
	defer func() { _ = bar.Finish() }()
	id, said := state.ID, ""
	var away time.Time
	for state.State != string(erasure.Done) {
		if state.Todo > 0 {
			bar.ChangeMax64(int64(state.Todo) + 1) // the last step is the stores'
			_ = bar.Set64(int64(min(state.Erased, state.Todo)))
		}
		if state.Doing != "" && state.Doing != said {
			said = state.Doing
			_ = bar.Clear()
			t.say("%s: %s", state.State, state.Doing)
		}
		select {
		case <-time.After(pollRebuilds):
		case <-ctx.Done():
			_ = bar.Clear()
			return errors.New("interrupted: the erasure continues; mneme status shows how far it is")
		}
		var now httpapi.Erasure
		err := api.get(ctx, "/v1/erasure", nil, &now)
		var unreachable *awayError
		switch {
		case errors.As(err, &unreachable):
			if away.IsZero() {
				away = time.Now()
			}
			if time.Since(away) >= api.patience.away {
				return fmt.Errorf("gave up after the server was down for %s: the erasure continues when it is back: %w", time.Since(away).Round(time.Second), err)
			}
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && now.ID != id:
			return errors.New("another erasure has begun since: this one is done, and its report is gone")
		case err == nil:
			away, *state = time.Time{}, now
		}
	}
	return nil
}

func (c *EraseCmd) print(t *terminal, state *httpapi.Erasure) error {
	r := state.Report
	if state.State != string(erasure.Done) || r == nil {
		return t.text(fmt.Sprintf("the erasure runs; mneme status shows how far it is (%s)\n", state.State))
	}
	pairs := []any{"conversations", r.Conversations, "events", state.Erased, "bytes", r.Bytes, "first sequence", r.FirstSeq, "last sequence", r.LastSeq, "took", r.EndedAt.Sub(r.AskedAt).Round(time.Millisecond).String(), "sha256", r.SHA256}
	if err := t.card(pairs...); err != nil {
		return err
	}
	rows := [][]any{}
	for _, s := range r.Stores {
		rows = append(rows, []any{s.Projection, s.Store, s.Generation, s.Conversations, s.BytesBefore, s.BytesAfter})
	}
	if err := t.text("\n"); err != nil {
		return err
	}
	if err := t.table([]column{{Name: "READ MODEL"}, {Name: "STORE"}, {Name: "GENERATION", Right: true}, {Name: "CONVERSATIONS", Right: true}, {Name: "BYTES BEFORE", Right: true}, {Name: "BYTES AFTER", Right: true}}, rows); err != nil {
		return err
	}
	for _, what := range leftIn(r.Stores) {
		t.say("%s", what)
	}
	t.say("Not reached:")
	for _, what := range r.NotReached {
		t.say("  %s", what)
	}
	return nil
}

// leftIn says what the stores still hold of the erased conversations. Read models with the same answer share a line.
func leftIn(stores []erasure.StoreReport) (list []string) {
	in := map[string][]string{}
	var texts []string
	for _, s := range stores {
		if s.Left == "" {
			continue
		}
		if in[s.Left] == nil {
			texts = append(texts, s.Left)
		}
		if !slices.Contains(in[s.Left], s.Projection) {
			in[s.Left] = append(in[s.Left], s.Projection)
		}
	}
	for _, text := range texts {
		list = append(list, strings.Join(in[text], ", ")+": "+text)
	}
	return list
}

// prove searches files for texts that must be gone.
func (c *EraseCmd) prove(ctx context.Context, g *Globals, t *terminal) error {
	if c.What != "" || c.Before != "" {
		return usageError("--prove erases nothing: erase first, then prove")
	}
	canaries := c.Prove
	if c.ProveFile != "" {
		raw, err := os.ReadFile(c.ProveFile)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); line != "" {
				canaries = append(canaries, line)
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("%s: %w", c.ProveFile, err)
		}
	}
	if err := erasure.CheckCanaries(canaries); err != nil {
		return &program.UsageError{Err: err}
	}
	paths := c.Path
	if len(paths) == 0 {
		paths = []string{".mneme"}
		if data := os.Getenv("MNEME_DATA"); data != "" {
			paths = []string{filepath.Clean(data)}
		}
		if _, err := os.Stat(paths[0]); errors.Is(err, fs.ErrNotExist) {
			return usageError("there is no data directory %s here: name what to search with --path", paths[0])
		}
	}
	found, err := erasure.Search(ctx, paths, canaries)
	if err != nil {
		return err
	}
	if g.JSON {
		err = t.json(found)
	} else {
		rows := [][]any{}
		for _, h := range found.Hits {
			rows = append(rows, []any{h.File, h.Offset, h.Canary, h.Form})
		}
		if len(rows) > 0 {
			err = t.table([]column{{Name: "FILE", Min: 12, End: true}, {Name: "OFFSET", Right: true}, {Name: "TEXT", Right: true}, {Name: "FORM"}}, rows)
		}
		more := ""
		if found.More {
			more = ", and there are more: the search ended early"
		}
		t.say("searched %s with %s: %s found%s", counted(found.Files, "file"), counted(uint64(found.Bytes), "byte"), counted(len(found.Hits), "place"), more)
	}
	if err == nil && len(found.Hits) > 0 {
		err = errDifference
	}
	return err
}
