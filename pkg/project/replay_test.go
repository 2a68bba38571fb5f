package project

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestAReplayerKeepsDigests(t *testing.T) {
	t.Parallel()
	id := events.ConversationID{Tenant: "t", ID: "c"}
	base := Encode(&Digest{Title: "Uploads", Taught: []Said{{Text: "Never sleep in tests.", Seq: 3, Turn: 1}}})
	steps := func(title string) []Step {
		return []Step{{Seq: 3, Base: base}, {Seq: 4, Change: Encode(&Change{Title: title})}}
	}
	r := NewReplayer()
	first, err := r.Replay(id, steps("Downloads"))
	require.NoError(t, err)
	require.Equal(t, "Downloads", first.Title)
	again, err := r.Replay(id, steps("Downloads"))
	require.NoError(t, err)
	require.Same(t, first, again)

	// A repair writes other steps at the same sequences.
	repaired, err := r.Replay(id, steps("Everything"))
	require.NoError(t, err)
	require.Equal(t, "Everything", repaired.Title)

	before, err := r.Replay(id, steps("Downloads")[:1])
	require.NoError(t, err)
	require.Equal(t, "Uploads", before.Title)
	other, err := r.Replay(events.ConversationID{Tenant: "u", ID: "c"}, steps("Downloads"))
	require.NoError(t, err)
	require.NotSame(t, first, other)
	none, err := r.Replay(id, nil)
	require.NoError(t, err)
	require.Nil(t, none)
	_, err = r.Replay(id, []Step{{Seq: 9, Base: "{"}})
	require.Error(t, err)

	for n := range 2 * keptDigests {
		_, err := r.Replay(events.ConversationID{Tenant: "t", ID: fmt.Sprint(n)}, steps("Downloads"))
		require.NoError(t, err)
	}
	require.Equal(t, keptDigests, r.kept.Len())
}

func TestLessonsAreDerivedOnce(t *testing.T) {
	t.Parallel()
	d := Digest{
		Taught:  []Said{{Text: "Never sleep in tests.", Seq: 3, Turn: 1}, {Text: "Always run the linter.", Seq: 9, Turn: 2}},
		Fixes:   []Fix{{Command: "go test", Trouble: "FAIL", Changed: []string{"a.go"}, Seq: 7, Turn: 2}},
		Insight: &Insight{Findings: []string{"The clock was real."}, Seq: 12},
		Summary: &Summary{Findings: []string{"Tests wait."}, Seq: 11, Last: 2},
	}
	var texts []string
	for _, l := range d.Lessons() {
		texts = append(texts, fmt.Sprint(l.Kind, " ", l.Turn, " ", l.Seq, " ", l.Text))
	}
	require.Equal(t, []string{
		"taught 2 9 Always run the linter.", "taught 1 3 Never sleep in tests.",
		`solved 2 7 "FAIL" when running go test; it succeeded after a change of a.go`,
		"found 0 12 The clock was real.", "picked 2 11 Tests wait.",
	}, texts)
	require.Contains(t, d.Lessons()[0].Terms, "linter")

	shared, err := NewReplayer().Replay(events.ConversationID{Tenant: "t", ID: "c"}, []Step{{Seq: 12, Base: Encode(&d)}})
	require.NoError(t, err)
	require.Equal(t, d.Lessons(), shared.Lessons())
	require.Same(t, &shared.Lessons()[0], &shared.Lessons()[0])
}
