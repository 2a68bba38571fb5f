package summarizer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/summarizer"
)

// limit sets the size at which the log is full; 0 means that it is full now.
func (b *bundle) limit(most int64) error {
	ctx := mnemetest.Context(b.t)
	js, err := jetstream.New(b.Log.Conn())
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, natsdeploy.Stream)
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	if info.Config.MaxBytes = most; most == 0 {
		info.Config.MaxBytes = int64(info.State.Bytes)
	}
	_, err = js.UpdateStream(ctx, info.Config)
	return err
}

// filling is a reply that is given when the log has become full.
func (b *bundle) filling(reply llmtest.Reply) llmtest.Reply {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := b.limit(0); err != nil {
			b.t.Error(err)
		}
		reply(w, r)
	}
}

// A retry that asked again would pay the model once a minute for each conversation, for as long as the log is full.
func TestAnAnswerThatAFullLogDoesNotTakeIsPaidOnce(t *testing.T) {
	t.Parallel()
	const draft = `{"conversation": "go on", "actions": "", "findings": [], "topics": []}`
	for name, test := range map[string]struct {
		change func(*summarizer.Profile)
		answer string
		done   func(summarizer.Figures) bool
	}{
		"summary": {func(p *summarizer.Profile) { p.Settings.MaxTurns = 10 }, draft, func(f summarizer.Figures) bool { return f.Written == 1 }},
		"title":   {func(p *summarizer.Profile) { p.Titles = true }, "Repair of the upload", func(f summarizer.Figures) bool { return f.Titles == 1 }},
		"insight": {
			func(p *summarizer.Profile) { p.StoryAfter = time.Millisecond },
			`{"main_topic": "the flaky upload", "key_findings": [], "action_items": []}`, func(f summarizer.Figures) bool { return f.Insights == 1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writer := llmtest.New(t)
			b := setup(t, func(p *summarizer.Profile) {
				p.Model, p.Condense = modelAt(t, writer), false
				test.change(p)
			})
			writer.Reply(b.filling(llmtest.Chat(test.answer)), llmtest.Chat(test.answer))
			var said []events.Payload
			for n := range 12 {
				said = append(said, &events.MessageCreated{MessageID: fmt.Sprint("asked", n), Role: "user", Content: strings.Repeat("repair the upload ", 20)})
				said = append(said, &events.MessageCreated{MessageID: fmt.Sprint("answered", n), Role: "assistant", Content: "It is repaired."})
			}
			b.publish("said", said...)
			b.await("it waits for the log", func() bool { return b.reactor.Figures().Waiting == 1 })
			require.NoError(t, b.limit(1<<30))
			b.await("done", func() bool { return test.done(b.reactor.Figures()) })
			require.Equal(t, 1, writer.Calls())
		})
	}
	t.Run("condensation", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.endpoint.Reply(b.filling(llmtest.Chat("shorter")), llmtest.Chat("shorter"))
		b.step(0, 15)
		b.await("it waits for the log", func() bool { return b.reactor.Figures().Waiting == 1 })
		require.NoError(t, b.limit(1<<30))
		b.await("condensed", func() bool { return b.reactor.Figures().Condensed == 1 })
		require.Equal(t, 1, b.endpoint.Calls())
	})
}
