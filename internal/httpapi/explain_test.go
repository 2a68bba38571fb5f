package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/window"
)

// recorded imports recorded sessions of an agent and returns the longest one.
func (b *bundle) recorded(agent string, events int) httpapi.Conversation {
	b.t.Helper()
	found, err := transcript.Find([]string{testdata.Recording(b.t, agent, events)})
	require.NoError(b.t, err)
	report, err := importer.Import(b.t.Context(), b.Log, found, importer.Options{Tenant: "default", Format: "neutral"})
	require.NoError(b.t, err)
	var longest httpapi.Conversation
	for _, c := range all[httpapi.Conversation](b, fmt.Sprintf("/v1/conversations?wait_ms=60000&at_least=%d", report.LastSeq), "conversations") {
		if c.TotalChars > longest.TotalChars {
			longest = c
		}
	}
	return longest
}

type explained struct {
	*window.Context
	Text string `json:"markdown"`
}

func TestTheManifestSaysWhereEachItemIsAndWhatWasLeftOut(t *testing.T) {
	b := setup(t)
	id := b.recorded("pi", 1_500).ID
	path := "/v1/conversations/" + url.PathEscape(id) + "/context?max_chars=6000"
	for _, strategy := range window.Strategies() {
		path := path + "&strategy=" + strategy
		var plain, markdown string
		b.get(path, &plain)
		b.get(path+"&format=markdown", &markdown)
		var c explained
		b.get(path+"&explain=candidates&include_markdown=true", &c)
		require.Equal(t, markdown, c.Text, "an explanation changes nothing")
		require.NotContains(t, plain, "ranges")
		require.NotContains(t, plain, "manifest")

		runes, lines := []rune(c.Text), strings.SplitAfter(c.Text, "\n")
		ranges := map[string][]window.Range{}
		for _, s := range c.Manifest.Sections {
			ranges[s.Name] = s.Ranges
		}
		for _, s := range c.Sections {
			require.Len(t, ranges[s.Name], len(s.Items))
			for i, r := range ranges[s.Name] {
				text := s.Items[i].Markdown() + "\n"
				require.Equal(t, text, string(runes[r.Start:r.End]))
				require.Equal(t, text, strings.Join(lines[r.FirstLine-1:r.LastLine], ""))
			}
		}
		require.Equal(t, "extractive", c.Manifest.Settings.Condense)

		shown := map[string]bool{}
		for _, s := range c.Sections {
			for _, it := range s.Items {
				shown[it.EventID] = shown[it.EventID] || it.Kind != window.KindCode // a piece of a result is not the call
			}
		}
		fit, checked := map[int][]window.Candidate{}, 0
		for _, s := range c.Manifest.Sections {
			require.LessOrEqual(t, len(s.Candidates), 50)
			for _, left := range s.Candidates {
				require.NotEmpty(t, left.Reason)
				require.Positive(t, left.Chars)
				require.False(t, left.EventID != "" && shown[left.EventID], "%s shows %+v", strategy, left)
				if left.FitsAt > 0 {
					fit[left.FitsAt] = append(fit[left.FitsAt], left)
				}
			}
		}
		for budget, list := range fit {
			require.Contains(t, c.Manifest.Tried, budget)
			var larger window.Context
			b.get(fmt.Sprintf("%s&max_chars=%d", strings.Replace(path, "max_chars=6000&", "", 1), budget), &larger)
			for _, left := range list {
				require.True(t, shows(&larger, left), "%s with %d does not show %+v", strategy, budget, left)
				checked++
			}
		}
		if strategy != window.StrategyPruned {
			require.Positive(t, checked, "with a larger budget more is shown")
		}
	}
}

func TestAnEventCanBeFollowedThroughLargerBudgets(t *testing.T) {
	b := setup(t)
	id := b.recorded("pi", 1_500).ID
	path := "/v1/conversations/" + url.PathEscape(id) + "/context?max_chars=6000"
	follow := func(seq uint64) *window.FollowedEvent {
		var c explained
		b.get(fmt.Sprintf("%s&explain=candidates&follow=%d", path, seq), &c)
		require.Equal(t, seq, c.Manifest.Followed.Seq)
		return c.Manifest.Followed
	}
	var c explained
	b.get(path+"&explain=candidates", &c)
	require.Nil(t, c.Manifest.Followed)
	shown := follow(c.Sections[0].Items[0].Seq)
	require.Equal(t, c.Sections[0].Name, shown.Section)
	require.Zero(t, shown.FitsAt)

	i := slices.IndexFunc(c.Manifest.Sections, func(s window.SectionManifest) bool { return s.Name == window.SectionRelevant })
	list := c.Manifest.Sections[i].Candidates
	i = slices.IndexFunc(list, func(left window.Candidate) bool { return left.FitsAt > 0 && left.Kind == window.KindRelevant })
	left := follow(list[i].Seq)
	require.Empty(t, left.Section)
	require.Positive(t, left.FitsAt)
	require.LessOrEqual(t, left.FitsAt, list[i].FitsAt, "another section may show a piece of it earlier")

	none := follow(1 << 40)
	require.Empty(t, none.Section)
	require.Zero(t, none.FitsAt)
	p := b.refused(422, "GET", path+"&follow=1", nil, "")
	require.Equal(t, "query.follow", p.Errors[0].Location)
}

func shows(c *window.Context, left window.Candidate) bool {
	for _, s := range c.Sections {
		for _, it := range s.Items {
			if left.Kind == window.KindFile && it.Path == left.Path || left.Kind != window.KindFile && it.Seq == left.Seq {
				return true
			}
		}
	}
	return false
}

func TestOnlyAKnownKindOfExplanationIsGiven(t *testing.T) {
	b := setup(t)
	b.batch("c", message("m", "user", "x"))
	p := b.refused(422, "GET", "/v1/conversations/c/context?explain=everything", nil, "")
	require.True(t, strings.HasSuffix(p.Errors[0].Location, "query.explain"), "%+v", p)
}
