package project

import (
	"context"
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
	reads := 0
	digest := func(h Head, steps []Step) *Digest {
		list, err := r.Digests([]Head{h}, func(unknown []Head) ([][]Step, error) {
			require.Equal(t, []Head{h}, unknown)
			reads++
			return [][]Step{steps}, nil
		})
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0]
	}
	at4 := Head{ID: id, Seq: 4}
	first := digest(at4, steps("Downloads"))
	require.Equal(t, "Downloads", first.Title)
	require.Same(t, first, digest(at4, nil))
	require.Equal(t, 1, reads)

	// A repair writes other steps at the same sequences.
	require.Equal(t, "Everything", digest(Head{ID: id, Seq: 4, Repairs: 1}, steps("Everything")).Title)
	require.Equal(t, "Uploads", digest(Head{ID: id, Seq: 3}, steps("Downloads")[:1]).Title)
	require.NotSame(t, first, digest(Head{ID: events.ConversationID{Tenant: "u", ID: "c"}, Seq: 4}, steps("Downloads")))
	require.Nil(t, digest(Head{ID: id}, nil), "no steps")
	require.Equal(t, 4, reads)

	// Only the unknown digests are read.
	list, err := r.Digests([]Head{{ID: id}, {ID: id, Seq: 9}, at4, {ID: id, Seq: 8}}, func(unknown []Head) ([][]Step, error) {
		require.Equal(t, []Head{{ID: id, Seq: 9}, {ID: id, Seq: 8}}, unknown)
		return [][]Step{steps("Later"), nil}, nil
	})
	require.NoError(t, err)
	require.Equal(t, []*Digest{nil, list[1], first, nil}, list)
	require.Equal(t, "Later", list[1].Title)

	_, err = r.Digests([]Head{{ID: id, Seq: 10}}, func([]Head) ([][]Step, error) { return [][]Step{{{Seq: 10, Base: "{"}}}, nil })
	require.Error(t, err)
	_, err = r.Digests([]Head{{ID: id, Seq: 10}}, func([]Head) ([][]Step, error) { return nil, context.Canceled })
	require.ErrorIs(t, err, context.Canceled)

	for n := range 2 * keptDigests {
		digest(Head{ID: events.ConversationID{Tenant: "t", ID: fmt.Sprint(n)}, Seq: 4}, steps("Downloads"))
	}
	require.Equal(t, keptDigests, r.kept.Len())
}

func TestLessonsAreDerivedOnce(t *testing.T) {
	t.Parallel()
	d := Digest{
		Taught:  []Said{{Text: "Never sleep in tests.", Seq: 3, Turn: 1}, {Text: "Always run the linter.", Seq: 9, Turn: 2}},
		Fixes:   []Fix{{Command: "go test", Trouble: "undefined: x", Changed: []string{"a.go"}, Seq: 7, Turn: 2}},
		Insight: &Insight{Findings: []string{"The clock was real."}, Seq: 12},
		Summary: &Summary{Findings: []string{"Tests of uploads wait for a clock that never moves."}, Seq: 11, Last: 2},
	}
	var texts []string
	for _, l := range d.Lessons() {
		texts = append(texts, fmt.Sprint(l.Kind, " ", l.Turn, " ", l.Seq, " ", l.Text))
	}
	require.Equal(t, []string{
		"taught 2 9 Always run the linter.", "taught 1 3 Never sleep in tests.",
		`solved 2 7 "undefined: x" when running go test; it succeeded after a change of a.go`,
		"found 0 12 The clock was real.", "picked 2 11 Tests of uploads wait for a clock that never moves.",
	}, texts)
	require.Contains(t, d.Lessons()[0].Terms, "linter")

	head := Head{ID: events.ConversationID{Tenant: "t", ID: "c"}, Seq: 12}
	list, err := NewReplayer().Digests([]Head{head}, func([]Head) ([][]Step, error) { return [][]Step{{{Seq: 12, Base: Encode(&d)}}}, nil })
	require.NoError(t, err)
	shared := list[0]
	require.Equal(t, d.Lessons(), shared.Lessons())
	require.Same(t, &shared.Lessons()[0], &shared.Lessons()[0])
}
