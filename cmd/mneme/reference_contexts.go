package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window"
)

// recordedScout is a recording of four questions that the example agent answered about the
// folder pkg of this repository, with the summaries written as it worked.
const recordedScout = "examples/scout.jsonl.gz"

// exampleContexts are the pages of docs/examples that are generated from recordedScout.
var exampleContexts = []struct {
	name, about string
	request     window.Request
}{
	{"next", "What the agent should see now, in 6,000 characters", window.Request{MaxChars: 6000}},
	{"asked", "What the agent should see now in 6,000 characters if it is asked about fencing", window.Request{MaxChars: 6000, Query: "How does a projector find out that it was fenced?"}},
}

// writeContexts writes the contexts of the recorded conversation, each with its manifest.
func writeContexts(ctx context.Context, docs string) (err error) {
	dir, err := os.MkdirTemp("", "mneme-reference-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	recorded, err := readRecorded(ctx, filepath.Join(docs, recordedScout))
	if err != nil {
		return err
	}
	g, err := sqlitestore.OpenGraph(ctx, sqlitestore.Path(dir, "graph", 1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	f, err := sqlitestore.OpenFiles(ctx, sqlitestore.Path(dir, "files", 1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := errors.Join(
		applyAll(ctx, graph.Projection(), g, recorded),
		applyAll(ctx, graph.FilesProjection(files.NewTable(files.DefaultRules())), f, recorded),
	); err != nil {
		return err
	}
	source := window.Source{Graph: g, Files: f, Recall: view.NewCache(1<<20, view.BuiltIn{}).Of(view.Source{Messages: g})}
	for _, e := range exampleContexts {
		e.request.Conversation = events.ConversationID{Tenant: "default", ID: "scout"}
		c, err := window.Build(ctx, source, e.request)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(docs, "examples", e.name+".md"), examplePage(e.about, e.request, c), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// examplePage shows a context and its manifest.
func examplePage(about string, r window.Request, c *window.Context) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n%s", about, generated)
	query := ""
	if r.Query != "" {
		query = fmt.Sprintf(" --query %q", r.Query)
	}
	fmt.Fprintf(&out, "    mneme import docs/%s --wait\n    mneme context scout --max-chars %d%s                      # --explain --json adds the manifest\n\n", recordedScout, r.MaxChars, query)
	manifest, err := json.MarshalIndent(c.Manifest, "", "  ")
	if err != nil {
		panic(err) // cannot happen: it holds only numbers and texts
	}
	fmt.Fprintf(&out, "The context, as the model sees it:\n\n~~~~markdown\n%s~~~~\n\nThe manifest, which says why each line is there:\n\n```json\n%s\n```\n", c.Markdown(), manifest)
	return out.Bytes()
}

// readRecorded reads a recording as the messages of a separate log.
func readRecorded(ctx context.Context, path string) (list []eventlog.Message, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = transcript.Read(ctx, file, path, transcript.Auto, func(i transcript.Item) error {
		if i.Err != nil {
			return i.Err
		}
		subject, err := events.Address{Tenant: "default", Conversation: i.Event.Subject, Kind: events.Kind(i.Event.Type)}.Subject()
		if err != nil {
			return err
		}
		header, body := events.EncodeMessage(i.Event)
		list = append(list, eventlog.Message{Seq: uint64(len(list) + 1), Subject: subject, Header: nats.Header(header), Data: body})
		return nil
	})
	return list, err
}

func applyAll[U projection.Unit](ctx context.Context, p projection.Projection[U], s projection.Store[U], recorded []eventlog.Message) error {
	cp, err := s.Acquire(ctx, 0, p.Fingerprint())
	if err == nil {
		_, err = p.Apply(ctx, s, cp, recorded)
	}
	return err
}
