package service_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/summary"
)

// covered is what a test knows about a conversation from the log alone.
type covered struct {
	first, last uint64
	begins      map[uint64]bool // sequences at which a step or a turn begins
	chars       map[uint64]int  // of the conversation before each of these
	total       int
	ends        map[int]uint64 // by level
	starts      map[int]map[uint64]uint64
}

// TestRecordedSessionsAreCoveredWithoutGaps summarizes real sessions with the default
// settings and checks every range against the log.
func TestRecordedSessionsAreCoveredWithoutGaps(t *testing.T) {
	mnemetest.Long(t)
	path := testdata.Recording(t, "claude_code", 8_000)
	t.Parallel()
	i := summarizing(t, t.TempDir(), func(s *settings.Summaries) { s.MaxContextChars = 100_000 })
	files, err := transcript.Find([]string{path})
	require.NoError(t, err)
	report, err := importer.Import(t.Context(), i.Log, files, importer.Options{Tenant: "default", Format: transcript.Auto})
	require.NoError(t, err)
	i.settled()

	all := map[string]*covered{}
	state, err := i.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	counts, in, out, turns, coveredChars, total := map[int]int{}, map[int]int{}, map[int]int{}, 0, 0, 0
	each(t, i.Log, state.Head, func(e events.Recorded) {
		c := all[e.Subject]
		if c == nil {
			c = &covered{first: e.Seq, begins: map[uint64]bool{}, chars: map[uint64]int{}, ends: map[int]uint64{}, starts: map[int]map[uint64]uint64{}}
			all[e.Subject] = c
		}
		switch p := e.Payload.(type) {
		case *events.MessageCreated:
			if p.Role != "system" {
				c.begins[e.Seq], c.chars[e.Seq] = true, c.total
			}
			if p.Role == "user" {
				turns++
			}
		case *events.SummaryWritten:
			next := c.first
			if end := c.ends[p.Level]; end > 0 {
				next = end + 1
			}
			require.Equal(t, next, p.FirstSeq, "%s: level %d has no gap and no overlap", e.Subject, p.Level)
			require.LessOrEqual(t, p.LastSeq, c.last)
			if p.Level == 1 {
				require.True(t, c.begins[p.LastSeq+1], "%s: a range ends where a step begins", e.Subject)
				begin := 0
				if p.FirstSeq > c.first {
					begin = c.chars[p.FirstSeq]
				}
				require.Equal(t, c.chars[p.LastSeq+1]-begin, p.CharsIn)
				require.GreaterOrEqual(t, p.CharsIn, 10_000)
				coveredChars += p.CharsIn
			} else {
				require.GreaterOrEqual(t, len(p.Children), 2)
				require.Contains(t, c.starts[p.Level-1], p.FirstSeq, "it begins with a summary of the level below")
			}
			if c.starts[p.Level] == nil {
				c.starts[p.Level] = map[uint64]uint64{}
			}
			c.starts[p.Level][p.FirstSeq], c.ends[p.Level] = p.LastSeq, p.LastSeq
			require.LessOrEqual(t, p.CharsOut, summary.MaxText)
			counts[p.Level]++
			in[p.Level] += p.CharsIn
			out[p.Level] += p.CharsOut
		}
		c.total += summary.Count(e.Payload)
		total += summary.Count(e.Payload)
		c.last = e.Seq
	})
	t.Logf("%d sessions, %d turns, %d events; %d of %d characters covered", report.Conversations, turns, report.Published, coveredChars, total)
	for level := 1; counts[level] > 0; level++ {
		t.Logf("level %d: %d summaries, %d characters in, %d out", level, counts[level], in[level], out[level])
	}
	require.Greater(t, counts[1], 200)
	require.Positive(t, counts[2])
	require.Greater(t, float64(coveredChars), 0.8*float64(total))
	i.verified()
}

// each reads the log up to a sequence.
func each(t *testing.T, log *eventlog.Log, head uint64, yield func(e events.Recorded)) {
	t.Helper()
	follower, err := log.Follow(t.Context(), 0, 1)
	require.NoError(t, err)
	defer follower.Stop()
	for seq := uint64(0); seq < head; {
		select {
		case m := <-follower.C():
			seq = m.Seq
			e, _, err := m.Decode()
			require.NoError(t, err)
			yield(e)
		case <-time.After(patience):
			t.Fatalf("the log ends at %d, not at %d", seq, head)
		}
	}
}

// TestARealModelSummarizes goes from publishing to the context with a real language model.
// It does not judge the texts that the model writes.
func TestARealModelSummarizes(t *testing.T) {
	if !mnemetest.All {
		t.Skip("takes a minute: make test-all runs it")
	}
	base := llmtest.Model(t)
	t.Parallel()
	endpoint := llmtest.InFrontOf(t, base)
	i := summarizing(t, t.TempDir(), func(s *settings.Summaries) {
		s.Writer, s.URL, s.Name, s.Timeout, s.Titles = "openai", endpoint.URL(), "small", llmtest.Patience, false
		s.StoryAfter, s.MaxTokens = time.Millisecond, 300
	})
	i.publish(long(t, "c", 0, 10))
	var list []httpapi.Summary
	require.Eventually(t, func() bool {
		list = i.summaries("c", "")
		return len(list) > 0
	}, 2*llmtest.Patience, 100*time.Millisecond)
	require.Positive(t, endpoint.Calls())
	s := list[0]
	switch s.Method {
	case "llm":
		require.Equal(t, "small", s.Model)
		require.NotEmpty(t, s.PromptHash)
	default: // a small model does not always find the end of its JSON
		require.NotEmpty(t, s.Fallback)
	}
	_, body := i.ask("GET", fmt.Sprintf("/v1/conversations/c/context?format=markdown&max_chars=3200&strategy=levels&at_least=%d", s.Seq), "")
	require.Contains(t, body, "## Story So Far")
	require.Eventually(t, func() bool { // it is finished too: an insight, or the reason why not
		return len(i.of(events.TypeInsightWritten)) > 0 || strings.Contains(i.status("summaries").Error, "could not be analyzed")
	}, 4*llmtest.Patience, 100*time.Millisecond)
	i.verified()
}
