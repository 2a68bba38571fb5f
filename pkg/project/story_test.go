package project

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
)

// Whatever comes and goes, every session is covered once, every chapter is consolidated once, and no valid chapter
// covers a deleted session.
func TestAStoryTellsOfEachSessionOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Project{Tenant: "t", Name: "p", Names: []string{"p", "q"}}
		threshold := rapid.IntRange(100, 2_000).Draw(t, "threshold")
		var sessions []Session
		var chapters []Written
		deleted := map[string]bool{}
		written := 0
		settle := func() {
			for range 1_000 {
				plan := due(p, chapters, deleted, sessions, threshold)
				chapters = slices.DeleteFunc(chapters, func(c Written) bool { return slices.Contains(plan.Withdrawn, c.ID) })
				if plan.Level == 0 {
					if len(plan.Withdrawn) == 0 {
						return
					}
					continue
				}
				written++
				require.GreaterOrEqual(t, len(plan.Texts), 1)
				require.LessOrEqual(t, len(plan.Told), events.MaxTold)
				chapters = append(chapters, Written{fmt.Sprint("story:", written), &Chapter{
					Project: "p", Names: plan.Names, Level: plan.Level, Told: plan.Told, Children: plan.Children, Text: strings.Repeat("x", rapid.IntRange(1, 1_500).Draw(t, "chars")),
				}})
			}
			t.Fatal("no end")
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 9).Draw(t, "step"); {
			case k == 0 && len(sessions) > 0:
				i := rapid.IntRange(0, len(sessions)-1).Draw(t, "deleted")
				deleted[sessions[i].ID.ID] = true
				sessions = slices.Delete(sessions, i, i+1)
			case k == 1 && len(sessions) > 0: // the session continued
				i := rapid.IntRange(0, len(sessions)-1).Draw(t, "grown")
				s := sessions[i]
				grown := *s.Digest
				grown.Insight = &Insight{Topic: "more", Chars: s.Insight.Chars + 3_000}
				s.Digest = &grown
				sessions = append(slices.Delete(sessions, i, i+1), s)
			case k == 2: // another process covered the newest session at the same time
				if len(sessions) > 0 {
					s := sessions[len(sessions)-1]
					written++
					chapters = append(chapters, Written{fmt.Sprint("story:", written), &Chapter{Names: []string{"p"}, Level: 1, Told: []events.Told{{ID: s.ID.ID, Chars: s.Insight.Chars}}, Text: "also"}})
				}
			default:
				sessions = append(sessions, Session{ID: events.ConversationID{Tenant: "t", ID: fmt.Sprint("c", n)}, Digest: &Digest{
					Place: Place{Name: rapid.SampledFrom(p.Names).Draw(t, "name")}, Insight: &Insight{Topic: strings.Repeat("t", rapid.IntRange(1, 400).Draw(t, "topic")), Chars: 3_000},
				}})
			}
			if rapid.Bool().Draw(t, "settle") {
				settle()
			}
		}
		settle()
		told, consolidated := map[events.Told]int{}, map[string]int{}
		for _, c := range chapters {
			require.False(t, c.tellsOf(deleted))
			for _, of := range c.Told {
				if c.Level == 1 {
					told[of]++
				}
			}
			for _, child := range c.Children {
				consolidated[child]++
			}
		}
		for of, n := range told {
			require.Equal(t, 1, n, "%v", of)
		}
		for of, n := range consolidated {
			require.Equal(t, 1, n, "%v", of)
		}
		rest := 0
		for _, s := range sessions {
			if told[events.Told{ID: s.ID.ID, Chars: s.Insight.Chars}] == 0 {
				rest += Chars(draftOf(&s))
			}
		}
		require.Less(t, rest, threshold, "what is due is told")
	})
}

func TestAChapterStandsOnlyWhileItsNamesAreTheProjects(t *testing.T) {
	t.Parallel()
	c := Written{"story:1", &Chapter{Names: []string{"/a/cli", "/b/cli"}, Level: 1, Told: []events.Told{{ID: "c"}}}}
	one := Project{Name: "/a/cli", Names: []string{"/a/cli", "/b/cli"}}
	require.True(t, c.stands(one, nil))
	parted := Project{Name: "/a/cli", Names: []string{"/a/cli"}}
	require.False(t, c.stands(parted, nil))
	require.Empty(t, due(parted, []Written{c}, nil, nil, 10).Withdrawn, "it stands again if they are one again")
}

func TestAChapterSpansTheTimesOfItsSessions(t *testing.T) {
	t.Parallel()
	var plan Plan
	plan.add(draftOf(&Session{Digest: &Digest{Insight: &Insight{}}}), "2026-01-06T08:00:00Z", "2026-01-06T09:00:00Z", []string{"p"})
	plan.add(draftOf(&Session{Digest: &Digest{Insight: &Insight{}}}), "", "", []string{"p"})
	plan.add(draftOf(&Session{Digest: &Digest{Insight: &Insight{}}}), "2026-01-05T08:00:00Z", "2026-01-05T09:00:00Z", []string{"q"})
	require.Equal(t, []string{"2026-01-05T08:00:00Z", "2026-01-06T09:00:00Z"}, []string{plan.Began, plan.Ended})
	require.Equal(t, []string{"p", "q"}, plan.Names)
}
