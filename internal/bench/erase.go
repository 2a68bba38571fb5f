package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/erasure"
)

// EraseOptions are the options of [RunErase].
type EraseOptions struct {
	Program  Program // with SQLite, because the files of a Neo4j server can be elsewhere
	Messages int     // to erase
}

// Erase is the result of [RunErase].
type Erase struct {
	Machine   Machine `json:"machine"`
	Events    uint64  `json:"events"` // of the log, before
	MB        float64 `json:"mb"`
	Messages  int     `json:"messages_erased"`
	Seconds   float64 `json:"seconds"` // from the request until everything is overwritten
	PerSecond float64 `json:"messages_per_s"`
	Before    Found   `json:"before"`
	After     Found   `json:"after"`   // while the program runs
	Stopped   Found   `json:"stopped"` // after it has ended
}

// Found is what a search of all files for the erased text has found.
type Found struct {
	Files int     `json:"files"`
	MB    float64 `json:"mb"`
	Hits  int     `json:"hits"` // stops counting at 1,000
}

const (
	erased = tenant + "-erased"
	// canary is in every message that is erased, and nowhere else.
	canary = "quagmire-of-the-seventh-canary"

	eraseChunk         = 200 // events published between messages to erase
	eraseConversations = 100
)

// RunErase measures an erasure by the program itself. It publishes transcripts, and among them, evenly spread, messages of
// another tenant, which it then has erased. Before and after it searches every byte of the log and of the read models for the
// text of these messages. Without events it returns [ErrNoEvents].
func RunErase(ctx context.Context, paths []string, o EraseOptions, say Say) (out Erase, err error) {
	out.Machine, out.Messages = thisMachine(), o.Messages
	total := 0
	if err := eachEvent(ctx, paths, func(events.Event) error { total++; return nil }); err != nil {
		return out, err
	}
	if total == 0 {
		return out, ErrNoEvents
	}
	dir, err := os.MkdirTemp("", "mneme-bench-")
	if err != nil {
		return out, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := o.Program.up(ctx, dir)
	if err != nil {
		return out, err
	}
	defer func() { server.stop() }()
	if out.Events, out.MB, err = o.load(ctx, server, paths, total, say); err != nil {
		return out, err
	}
	a := newAPI(server.http, erased, 1)
	say("waiting until all is applied")
	if _, err := a.awaitApplied(ctx); err != nil {
		return out, err
	}
	say("searching")
	if out.Before, err = search(ctx, dir); err != nil {
		return out, err
	}
	began := time.Now()
	if _, err := a.send(ctx, http.MethodPost, "/v1/erasures", nil, map[string]any{"tenant": erased, "all": true}, http.StatusAccepted); err != nil {
		return out, err
	}
	type erasing struct {
		State        string
		Erased, Todo uint64
	}
	if _, err := await(ctx, a, "/v1/erasure", func(e *erasing) (bool, error) {
		say("%s, %d of %d events", e.State, e.Erased, e.Todo)
		return e.State == string(erasure.Done), nil
	}); err != nil {
		return out, err
	}
	out.Seconds = time.Since(began).Seconds()
	out.PerSecond = float64(o.Messages) / out.Seconds
	say("searching")
	if out.After, err = search(ctx, dir); err != nil {
		return out, err
	}
	server.stop()
	server = nil
	out.Stopped, err = search(ctx, dir)
	return out, err
}

// load publishes the events, and the messages to erase among them.
func (o EraseOptions) load(ctx context.Context, server *program, paths []string, total int, say Say) (all uint64, mb float64, err error) {
	log, err := server.log(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer log.Conn().Close()
	var chunk []events.Event
	read, made := 0, 0
	publish := func() error {
		var due []events.Event
		for ; made < o.Messages*read/total; made++ {
			e, err := doomed(made)
			if err != nil {
				return err
			}
			due = append(due, e)
		}
		say("publishing, %d of %d events", read+made, total+o.Messages)
		for of, list := range map[string][]events.Event{tenant: chunk, erased: due} {
			if len(list) == 0 {
				continue
			}
			if _, err := log.PublishAll(ctx, of, list); err != nil {
				return err
			}
		}
		chunk = chunk[:0]
		return nil
	}
	err = eachEvent(ctx, paths, func(e events.Event) error {
		chunk = append(chunk, e)
		if read++; len(chunk) < eraseChunk {
			return nil
		}
		return publish()
	})
	if err == nil {
		err = publish()
	}
	if err != nil {
		return 0, 0, err
	}
	state, err := log.State(ctx)
	return state.Messages, float64(state.Bytes) / 1e6, err
}

// doomed returns a message to erase.
func doomed(n int) (events.Event, error) {
	role := []string{"user", "assistant"}[n/eraseConversations%2]
	return events.New(fmt.Sprintf("doomed-%d", n%eraseConversations), "bench", fmt.Sprintf("doomed-%d", n), &events.MessageCreated{
		MessageID: fmt.Sprintf("m%d", n), Role: role, Content: fmt.Sprintf("Message %d says %s. ", n, canary) + strings.Repeat("It was measured and holds. ", 20),
	})
}

func search(ctx context.Context, dir string) (Found, error) {
	s, err := erasure.Search(ctx, []string{dir}, []string{canary})
	return Found{s.Files, float64(s.Bytes) / 1e6, len(s.Hits)}, err
}
