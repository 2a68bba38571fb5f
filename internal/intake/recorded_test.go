package intake

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
)

// TestFindingsInTheRecordedSessions lists what the rules find in sessions of real agents, and where. The
// counts are those of findings that were judged by hand. With MNEME_TEST_ALL=1 there are three: a key of Stripe and the
// passwords of a database that an agent made up for an example.
func TestFindingsInTheRecordedSessions(t *testing.T) {
	mnemetest.Long(t)
	for name, want := range map[string]int{"claude_code": 3, "pi": 0, "codex": 0, "gemini_cli": 0, "swe_agent": 0, "openhands": 0} {
		if name == "claude_code" && !mnemetest.All {
			continue // most of the data, and most of the time
		}
		path := filepath.Join(testdata.Dir(t), "events", name+".jsonl.gz")
		files, err := transcript.Find([]string{path})
		require.NoError(t, err)
		in, err := files[0].Open()
		require.NoError(t, err)
		var list []events.Event
		bytes := 0
		require.NoError(t, transcript.Read(t.Context(), in, path, transcript.Auto, func(i transcript.Item) error {
			if i.Err == nil {
				list, bytes = append(list, i.Event), bytes+len(i.Event.Data)
			}
			return nil
		}))
		require.NoError(t, in.Close())
		found := 0
		began := time.Now()
		c := Cleaner{Redact: redact.Default()}
		for _, e := range list {
			_, changed, err := c.Clean(e)
			require.NoError(t, err)
			if !changed {
				continue
			}
			r, err := events.Record(e)
			require.NoError(t, err)
			for _, f := range Find(redact.Default(), r.Payload) {
				found++
				t.Logf("%s %s %s: %s", e.Subject, e.ID, f.Field, f.Kind)
			}
		}
		require.Equal(t, want, found, name)
		t.Logf("%s: %d findings in %d events, %.1f MB, %.0f MB/s", name, found, len(list), float64(bytes)/1e6, float64(bytes)/1e6/time.Since(began).Seconds())
	}
}
