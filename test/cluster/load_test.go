package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// load is published by agents while servers and programs restart. Each agent has its own
// conversation, and repeats an event until it is acknowledged.
type load struct {
	t     *testing.T
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu      sync.Mutex
	acked   map[string][]string // message ids by conversation
	refused map[string]int      // attempts without an acknowledgement, by their error
}

// agents publish at once, half of them over HTTP.
const (
	agents = 8
	pace   = 20 * time.Millisecond
)

// startLoad starts publishing.
func (c *topology) startLoad() *load {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	l := &load{t: c.t, stop: stop, acked: map[string][]string{}, refused: map[string]int{}}
	c.t.Cleanup(l.end)
	for n := range agents {
		publish := overHTTP(c.apis[n%len(c.apis)].url)
		if n%2 == 0 {
			conn, err := eventlog.Connect(c.as("operator"), "agent", slog.New(slog.DiscardHandler))
			require.NoError(c.t, err)
			c.t.Cleanup(conn.Close)
			publish = overNATS(conn)
		}
		l.ended.Go(func() { l.publish(ctx, fmt.Sprint("load-", n), publish) })
	}
	return l
}

// publish publishes until ctx ends. It sends the next message only after the previous one is
// acknowledged.
func (l *load) publish(ctx context.Context, conversation string, publish func(context.Context, events.Event) error) {
	for i := 0; ctx.Err() == nil; {
		id := fmt.Sprint("m", i)
		e, err := events.New(conversation, "test", id, &events.MessageCreated{MessageID: id, Role: "user", Content: "What is lost when a server is?"})
		if err != nil {
			l.t.Error(err)
			return
		}
		// Not with ctx: a request in progress must finish, or its outcome is unknown.
		attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		err = publish(attempt, e)
		cancel()
		l.mu.Lock()
		if err == nil {
			l.acked[conversation] = append(l.acked[conversation], id)
			i++
		} else {
			l.refused[err.Error()]++
		}
		l.mu.Unlock()
		<-time.After(pace)
	}
}

// overNATS publishes like an agent that uses the client library.
func overNATS(conn *nats.Conn) func(context.Context, events.Event) error {
	var log *eventlog.Log
	return func(ctx context.Context, e events.Event) (err error) {
		if log == nil {
			if log, err = eventlog.Open(ctx, conn); err != nil {
				log = nil
				return err
			}
		}
		_, err = log.Publish(ctx, "default", e)
		return err
	}
}

// overHTTP publishes like an agent without the library.
func overHTTP(url string) func(context.Context, events.Event) error {
	return func(ctx context.Context, e events.Event) error {
		body, err := json.Marshal(map[string]any{"specversion": "1.0", "type": e.Type, "source": e.Source, "id": e.ID, "subject": e.Subject, "data": json.RawMessage(e.Data)})
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/events", bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/cloudevents+json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusCreated {
			return fmt.Errorf("publish: %s", response.Status)
		}
		return nil
	}
}

func (l *load) counts() (acked, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.acked {
		acked += len(list)
	}
	for _, n := range l.refused {
		refused += n
	}
	return acked, refused
}

// goesOn waits until every agent's messages are acknowledged again.
func (l *load) goesOn() {
	l.t.Helper()
	l.mu.Lock()
	before := map[string]int{}
	for n := range agents {
		conversation := fmt.Sprint("load-", n)
		before[conversation] = len(l.acked[conversation])
	}
	l.mu.Unlock()
	defer func() {
		if l.t.Failed() {
			acked, _ := l.counts()
			l.t.Logf("%d events were acknowledged, and not: %v", acked, l.refused)
		}
	}()
	eventually(l.t, "every agent publishes on", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for conversation, n := range before {
			if len(l.acked[conversation]) < n+10 {
				return false
			}
		}
		return true
	})
}

// end waits for requests in progress.
func (l *load) end() {
	l.stop()
	l.ended.Wait()
}
