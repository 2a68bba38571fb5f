package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
)

// ImportCmd imports transcripts.
type ImportCmd struct {
	Paths  []string `arg:"" name:"path" complete:"file" help:"Files or folders: what agents record, see --format; JSON plain, gzip or Zstandard. If a recording in a folder changed in the last two minutes, its last message is left for the next import, because the agent may still be writing it."`
	Format string   `help:"Format of the files: ${enum}." enum:"${formats}" default:"auto"`
	Over   string   `help:"How events reach the log: http, to --url; nats, to --nats-url; auto is nats if a NATS server is named, by flag or variable, and otherwise http." enum:"auto,http,nats" default:"auto"`
	settings.Redacting
	Wait bool `help:"Return when the projections have applied everything."`
}

func (*ImportCmd) Help() string {
	return `Importing again changes nothing, because known events are recognized. Files are read in the order of their last messages, or of their changes if they hold no times, so that the newest sessions come last. If the server goes away during an import, the import waits for it for up to 15 minutes and then continues.

Events are published over HTTP to --url; if the server asks for a token, with one that has the role write, into that token's tenant and within its quotas. Operators can name a NATS server, with --nats-url or --nats-creds-file: events then go there, into --tenant, and no quota stops them. Either way the identities are the same, and which events are known is asked over HTTP.

What mneme itself has shown to the agent is removed: see "mneme messages --seen". Secrets in transcripts that an agent wrote itself are replaced with [redacted:KIND] before they are published; the neutral form and CloudEvents are taken as they are, unless --redact=on. What is already in the log stays as it is; "mneme redact scan" finds secrets there.

The exit code is 0 only if everything is now in the log or was left for the next import. It is 1 if a line was rejected or a file could not be read completely; each is named, and the rest is imported. So you can safely delete a recording after exit code 0 if nothing was held back.

Lines of a type that this version does not know are left out and counted: agents add types with every release, and most are not part of the conversation.

Examples:

    mneme import ~/.claude/projects --wait
    mneme import ~/.codex/sessions ~/.gemini/tmp ~/.local/share/opencode
    mneme import ~/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks
    mneme import ~/.claude/projects --url https://mneme.example.com --token-file ~/.mneme-token
    mneme import session.ndjson --tenant team-a`
}

func (c *ImportCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	tenant, overNATS, err := c.way(g)
	if err != nil {
		return err
	}
	rules, err := redactRules(c.Redacting)
	if err != nil {
		return err
	}
	if slices.Contains(c.Paths, "-") {
		return usageError("import reads files, not standard input, because in several formats a file's name says which conversation it holds: save it first")
	}
	files, unfound := transcript.Find(c.Paths)
	if len(files) == 0 && unfound != nil {
		return &program.UsageError{Err: unfound}
	}
	if len(files) == 0 {
		return &program.UsageError{Err: errors.New("no transcripts found: folders are searched for JSON lines (*.jsonl, *.ndjson, plain or .gz, *.jsonl.zst) and for the names that agents give their recordings; name other files directly")}
	}
	api, err := g.client()
	if err != nil {
		return err
	}
	byTime(ctx, files)
	var total int64
	for _, f := range files {
		total += f.Size
	}
	bar, began := t.progress(total, "importing"), time.Now()
	patience := t.patient(bar)
	var log importer.Log = &remoteLog{api: api}
	if overNATS {
		direct, err := g.openLogOf(ctx, api, patience)
		if err != nil {
			return err
		}
		defer direct.Conn().Close()
		log = direct
	}
	report, err := importer.Import(ctx, importer.PatientLog{Log: log, Patience: patience}, files, importer.Options{
		Tenant: tenant, Format: c.Format, Redact: rules, RedactAll: c.Redact == "on",
		Lookup: patience.Patiently(api.lookup),
		Rejected: func(file string, err *transcript.LineError) {
			_ = bar.Clear()
			t.say("%s: %v", file, err)
		},
		Progress: func(bytes int64, items int) {
			bar.Describe(fmt.Sprintf("importing, %s events/s", number(int(float64(items)/time.Since(began).Seconds()))))
			_ = bar.Add64(bytes)
		},
	})
	_ = bar.Finish()
	var unread error // about some files; the others were imported
	if errors.Is(err, importer.ErrUnread) {
		unread, err = err, nil
	}
	imported := err == nil
	if imported && c.Wait {
		err = api.awaitApplied(ctx, t, patience, report.LastSeq)
	}
	if imported && unread == nil && report.Read == 0 && !g.JSON {
		t.say("nothing to import: there is no message and no call in %s", counted(len(files), "file"))
	}
	if printed := c.print(g, t, report); err == nil {
		err = printed
	}
	switch {
	case ctx.Err() != nil && report.Published == 0:
		return errors.New("interrupted; import the same files again to continue")
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: at least %s events are in the log; import the same files again to continue", number(report.Published))
	case !imported && report.Published > 0:
		return fmt.Errorf("%w\nthe events published so far are in the log; import the same files again to continue", err)
	case !imported && patience.Waited(): // for the answer to a publish, perhaps
		return fmt.Errorf("%w\nevents may be in the log already; import the same files again to continue", err)
	case err != nil:
		return err
	case unread == nil && unfound != nil:
		unread = importer.ErrUnread
	}
	var missing error
	if report.Rejected > 0 {
		missing = fmt.Errorf("%s rejected; their events are not in the log", counted(report.Rejected, "line"))
	}
	return errors.Join(unread, unfound, missing)
}

// way says how events reach the log, and for NATS into which tenant. Over HTTP the server says which tenant it is, or
// refuses the one of --tenant.
func (c *ImportCmd) way(g *Globals) (tenant string, overNATS bool, err error) {
	if c.Over == "http" || c.Over == "auto" && !g.namesNATS() {
		return "", false, nil
	}
	if tenant, err = g.publishingTenant(); err != nil {
		err = usageError("%w; or import over HTTP, with --over http", err)
	}
	return tenant, true, err
}

// byTime sorts recordings by their last message: lists and contexts of projects go by the order of the log, in which the
// newest session is then the last. When a file changed only counts if it holds no times, because copies change now.
func byTime(ctx context.Context, files []transcript.File) {
	last := make(map[string]time.Time, len(files))
	for _, f := range files {
		at := f.LastTime(ctx)
		if info, err := os.Stat(f.Path); at.IsZero() && err == nil {
			at = info.ModTime()
		}
		last[f.Path] = at
	}
	slices.SortStableFunc(files, func(a, b transcript.File) int { return last[a.Path].Compare(last[b.Path]) })
}

func (c *ImportCmd) print(g *Globals, t *terminal, r importer.Report) error {
	if g.JSON {
		return t.json(r)
	}
	if r.HeldBack > 0 {
		t.say("held back: %s of messages that may be unfinished; import again later", counted(r.HeldBack, "event"))
	}
	if r.Deleted > 0 {
		t.say("left out: %s of conversations that were deleted", counted(r.Deleted, "event"))
	}
	if r.Redacted > 0 {
		t.say("redacted: secrets in %s", counted(r.Redacted, "event"))
	}
	for _, what := range slices.Sorted(maps.Keys(r.Skipped)) {
		t.say("left out: %s of a type that this version does not know, %s", counted(r.Skipped[what], "line"), what)
	}
	_, err := fmt.Fprintf(t.out, "read %s: published %s, already known %s, rejected %s; %s\n",
		number(r.Read), number(r.Published), number(r.Duplicate), number(r.Rejected), counted(r.Conversations, "conversation"))
	return err
}

func (g *Globals) openLog(ctx context.Context) (*eventlog.Log, error) {
	conn, err := g.connect()
	if err != nil {
		return nil, err
	}
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		conn.Close()
	}
	return log, err
}

// openLogOf is openLog if the API's server has the same log.
func (g *Globals) openLogOf(ctx context.Context, api *client, patience *importer.Patience) (*eventlog.Log, error) {
	log, err := g.openLog(ctx)
	if err != nil {
		return nil, err
	}
	var served httpapi.Status
	if err = patience.Ask(ctx, func() (err error) {
		served, err = api.status(ctx)
		return err
	}); err == nil && !served.Stream.Created.Equal(log.Created()) {
		err = fmt.Errorf("%s does not serve the log of %s: name servers of the same mneme with --url and --nats-url, or import with --over http", settings.Redacted(g.URL), settings.Redacted(g.NATSURL))
	}
	if err != nil {
		log.Conn().Close()
		return nil, err
	}
	return log, nil
}

// lookup asks the API which events it knows.
func (c *client) lookup(ctx context.Context, list []events.Event) ([]importer.Known, error) {
	type identity struct {
		Conversation string `json:"conversation"`
		Source       string `json:"source"`
		ID           string `json:"id"`
	}
	var question struct {
		Events []identity `json:"events"`
	}
	for _, e := range list {
		question.Events = append(question.Events, identity{e.Subject, e.Source, e.ID})
	}
	var answer struct{ Events []importer.Known }
	if err := c.ask(ctx, "/v1/events/lookup", question, &answer); err != nil {
		return nil, fmt.Errorf("ask which events are known: %w", err)
	}
	if len(answer.Events) != len(list) {
		return nil, fmt.Errorf("the server answered for %d of %d events", len(answer.Events), len(list))
	}
	return answer.Events, nil
}

// erased asks the API whether a conversation was deleted.
func (c *client) erased(ctx context.Context, conversation string) (bool, error) {
	known, err := c.lookup(ctx, []events.Event{{Subject: conversation, Source: "mneme", ID: "none"}})
	return err == nil && known[0].Seq != 0 && known[0].Content == "", err
}

// PublishCmd publishes events.
type PublishCmd struct {
	File string `arg:"" optional:"" default:"-" complete:"file" help:"CloudEvents as JSON: one event, an array, or one per line. - is standard input."`
}

func (*PublishCmd) Help() string {
	return `Publishing the same event again is harmless. If one of several events is invalid, none is published. An event with the identity of an earlier one (the same tenant, conversation, source and id) but other data is refused within 30 seconds of the earlier one, and so are the events after it; after 30 seconds it is stored, but every projection skips it: see mneme failed list. The same happens to events of a conversation that was deleted before; a remark says so.

Examples:

    mneme publish events.json
    echo '{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"shell","id":"1","subject":"ID",
      "data":{"message_id":"m1","role":"user","content":"Hello"}}' | mneme publish`
}

// Run publishes and prints a line for each event.
func (c *PublishCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return &program.UsageError{Err: err}
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	body, err := asBatch(bufio.NewReader(in))
	if err != nil {
		return err
	}
	var answer struct {
		Events  []publishedEvent `json:"events"`
		Seq     uint64           `json:"seq"`
		Deleted []struct {
			Conversation string `json:"conversation"`
			Seq          uint64 `json:"seq"`
		} `json:"deleted,omitempty"`
	}
	if err := api.post(ctx, "/v1/events", events.ContentTypeBatch, body, &answer); err != nil {
		return inEvents(err)
	}
	if g.JSON {
		return t.json(answer)
	}
	for _, e := range answer.Events {
		known := ""
		if e.Duplicate {
			known = " (already known)"
		}
		if err := t.text(fmt.Sprintf("%s at sequence %d%s\n", t.exact(e.ID), e.Seq, known)); err != nil {
			return err
		}
	}
	for _, d := range answer.Deleted {
		t.remark(yellow, fmt.Sprintf("The conversation %s was deleted at sequence %d: the log has these events, but nothing shows them.", console.OneLine(d.Conversation), d.Seq), "publish to another conversation; mneme failed list lists what was skipped")
	}
	return nil
}

// placeInBatch is how the server names a part of a batch.
var placeInBatch = regexp.MustCompile(`\bbody\[(\d+)\]\.?`)

// inEvents says which of the user's events a server's error is about: it counts from 0, and people from 1.
func inEvents(err error) error {
	text := placeInBatch.ReplaceAllStringFunc(err.Error(), func(place string) string {
		index, _ := strconv.Atoi(placeInBatch.FindStringSubmatch(place)[1])
		return fmt.Sprintf("event %d: ", index+1)
	})
	if text == err.Error() {
		return err
	}
	return errors.New(strings.ReplaceAll(text, ": : ", ": "))
}

// asBatch returns one JSON array for an event, an array, or a sequence of events.
func asBatch(in io.Reader) ([]byte, error) {
	var all []json.RawMessage
	decoder := json.NewDecoder(in)
	for {
		var one json.RawMessage
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("event %d is not JSON: %w", len(all)+1, err)
		}
		if one = bytes.TrimSpace(one); one[0] == '[' {
			var batch []json.RawMessage
			if err := json.Unmarshal(one, &batch); err != nil {
				return nil, err
			}
			all = append(all, batch...)
			continue
		}
		all = append(all, one)
	}
	for i, one := range all {
		var exported struct {
			Sequence any `json:"mnemesequence"`
		}
		if json.Unmarshal(one, &exported) == nil && exported.Sequence != nil { // summaries name sequences of the log they are from
			return nil, usageError("event %d is from mneme conversations export: save that to a file and use mneme import, which fits its sequences to this log", i+1)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there are no events to publish")
	}
	return json.Marshal(all)
}
