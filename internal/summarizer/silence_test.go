package summarizer_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/summarizer"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// The deadline is that of the model which writes summaries. While another model condenses and does not answer, it must not
// run.
func TestASilentCondenserDoesNotUseUpTheDeadlineOfSummaries(t *testing.T) {
	t.Parallel()
	const deadline = 100 * time.Millisecond
	writer := llmtest.New(t)
	b := setup(t, func(p *summarizer.Profile) {
		p.Model, p.Deadline, p.Settings.MaxTurns = modelAt(t, writer), deadline, 10
	})
	away := llmtest.Failure(http.StatusServiceUnavailable, "", "")
	b.endpoint.Reply(away)
	b.step(0, 3)
	b.await("it waits for the condenser", func() bool { return b.reactor.Figures().Waiting == 1 })
	time.Sleep(deadline)
	writer.Reply(away, away, away, llmtest.Chat(`{"conversation": "go on", "actions": "", "findings": [], "topics": []}`))
	b.step(1, 20)
	b.await("summarized", func() bool { return b.reactor.Figures().Written > 0 })
	require.Zero(t, b.reactor.Figures().Fallbacks)
	require.GreaterOrEqual(t, writer.Calls(), 4)
}

func TestASilentCondenserDoesNotHoldUpTheAnalysis(t *testing.T) {
	t.Parallel()
	writer := llmtest.New(t)
	writer.Reply(llmtest.Chat(`{"main_topic": "the flaky upload", "key_findings": [], "action_items": []}`))
	b := setup(t, func(p *summarizer.Profile) { p.Model, p.StoryAfter = modelAt(t, writer), time.Millisecond })
	b.endpoint.Reply(llmtest.Failure(http.StatusServiceUnavailable, "", ""))
	e, err := events.New(conversation.ID, "test", "task", &events.MessageCreated{MessageID: "task", Role: "user", Content: strings.Repeat("repair the upload ", 200)})
	require.NoError(t, err)
	_, err = b.Log.Publish(mnemetest.Context(t), conversation.Tenant, e)
	require.NoError(t, err)
	b.step(0, 3)
	b.await("analysed", func() bool {
		_, err := b.Log.LastOfKind(mnemetest.Context(t), conversation.Tenant, conversation.ID, events.Kind(events.TypeInsightWritten))
		return err == nil
	})
	b.await("it waits for the condenser", func() bool { return b.reactor.Figures().Waiting == 1 })
	require.Positive(t, b.endpoint.Calls())
}

// slow is a model that never finishes an analysis in time.
type slow struct {
	*llm.Writer
	calls atomic.Int32
}

func (s *slow) Analyse(context.Context, summary.Input) (summary.Insight, summary.Usage, error) {
	s.calls.Add(1)
	return summary.Insight{}, summary.Usage{Calls: 1}, &llm.Error{Class: llm.ClassTimeout, Reason: "it did not answer in time"}
}

// Asked every minute, such a model would work for nothing for ever.
func TestAnAnalysisThatIsNeverFinishedInTimeIsGivenUp(t *testing.T) {
	t.Parallel()
	model := &slow{Writer: modelAt(t, llmtest.New(t))}
	b := setup(t, func(p *summarizer.Profile) {
		p.Model, p.StoryAfter, p.Deadline, p.Condense = model, time.Millisecond, 100*time.Millisecond, false
	})
	b.publish("said", &events.MessageCreated{MessageID: "task", Role: "user", Content: strings.Repeat("repair the upload ", 200)})
	var gaveUp summarizer.Wait
	b.await("given up", func() bool {
		for _, gaveUp = range b.reactor.Waits() {
			return gaveUp.Unusable == 1 && gaveUp.Conversations == 0
		}
		return false
	})
	require.ErrorContains(t, gaveUp.Reason, "did not answer in time")
	require.EqualValues(t, 2, model.calls.Load())
}
