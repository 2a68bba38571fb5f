package window_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// fresh is a source without a cache from earlier contexts.
func (s *store) fresh() window.Source {
	return window.Source{Graph: s.graph, Files: s.files, Recall: view.NewCache(64<<20, view.BuiltIn{}).Of(view.Source{Messages: s.graph})}
}

// coding draws the next events of a conversation in which files are read and written: some results
// come late or never, some calls fail, and the directory becomes known later.
func coding(t *rapid.T, c *talk, open *[]string, started *bool) {
	for range rapid.IntRange(1, 40).Draw(t, "events") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			c.user("What of " + rapid.SampledFrom([]string{"the parser", "the log", "line 7"}).Draw(t, "query") + "?")
		case 1, 2:
			c.assistant(strings.Repeat("Something else is done. ", rapid.IntRange(1, 30).Draw(t, "long")))
		case 3:
			if !*started {
				c.add(&events.ConversationStarted{Cwd: "/repo"})
				*started = true
			}
		case 4, 5, 6:
			id := fmt.Sprint("k", c.n)
			path := fmt.Sprintf("%s%d.go", rapid.SampledFrom([]string{"/repo/", ""}).Draw(t, "directory"), rapid.IntRange(0, 4).Draw(t, "file"))
			from := rapid.IntRange(1, 60).Draw(t, "line")
			if rapid.Bool().Draw(t, "reads") {
				c.call(id, "Read", args{"file_path": path, "offset": from})
			} else {
				c.call(id, "Edit", args{"file_path": path, "old_string": fmt.Sprintf("\tvalue of code in line %d", from), "new_string": fmt.Sprintf("\ta better value for what stands in line %d", from)})
			}
			*open = append(*open, id)
		default:
			if len(*open) == 0 {
				continue
			}
			i := rapid.IntRange(0, len(*open)-1).Draw(t, "call")
			from := rapid.IntRange(1, 60).Draw(t, "from")
			c.result((*open)[i], rapid.IntRange(0, 5).Draw(t, "ok") > 0, file("code", from, from+rapid.IntRange(0, 50).Draw(t, "lines")))
			*open = append((*open)[:i], (*open)[i+1:]...)
		}
	}
}

func TestTheCodeCacheChangesNoContext(t *testing.T) {
	s := newStore(t)
	n, shown := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		c := newTalk(t, fmt.Sprint("c", n)).user("Mend the parser.")
		var open []string
		started := false
		first := s.apply(c.events)
		for range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			c.events = nil
			coding(rt, c, &open, &started)
			s.apply(c.events)
			req := window.Request{Conversation: idOf(c.id), MaxChars: rapid.IntRange(3_000, 12_000).Draw(rt, "max")}
			if rapid.IntRange(0, 2).Draw(rt, "past") == 0 {
				req.AsOf = rapid.Uint64Range(first, s.seq).Draw(rt, "as of")
			}
			if rapid.IntRange(0, 3).Draw(rt, "excludes") == 0 {
				req.Exclude = []string{"**/1.go"}
			}
			if rapid.IntRange(0, 2).Draw(rt, "asks") == 0 {
				req.Query = rapid.SampledFrom([]string{"the value in line 7", "which number was worse before?"}).Draw(rt, "asked")
			}
			want, err := window.Build(t.Context(), s.fresh(), req)
			require.NoError(rt, err)
			got, err := window.Build(t.Context(), s.source(), req)
			require.NoError(rt, err)
			require.Equal(rt, want, got)
			shown += len(sectionOf(got, window.SectionCode))
		}
	})
	assert.Positive(t, shown, "code was shown at all")
}

// A rebuilt store may number its events differently, and have other calls.
func TestTheCodeCacheStartsOverWithAnotherStore(t *testing.T) {
	talkOf := func(name string, before int) *talk {
		c := newTalk(t, "c")
		for range before {
			c.user("Before.")
		}
		c.n += len(name) * 1_000 // other ids of events
		c.user("Look.").assistant("I read.")
		for i := range 20 {
			call := fmt.Sprint("k", i)
			c.call(call, "Read", args{"file_path": "/repo/a.go"}).result(call, true, file(name, 10*i, 10*i+9))
		}
		for range 12 {
			c.user("And then?").assistant(strings.Repeat("Something else is done. ", 20))
		}
		return c
	}
	a, b := newStore(t), newStore(t)
	a.apply(talkOf("one", 0).events)
	b.apply(talkOf("other", 0).events)
	longer := newStore(t)
	longer.apply(talkOf("other", 3).events)
	req := window.Request{Conversation: idOf("c"), MaxChars: 8_000}
	for i, other := range []*store{b, longer} {
		edition := fmt.Sprint("another ", i)
		kept := a.source()
		_, err := window.Build(t.Context(), kept, req)
		require.NoError(t, err)
		kept = window.Source{Graph: a.indexes.Graph(other.graph, edition), Files: other.files, Recall: a.indexes.Of(view.Source{Messages: other.graph, Edition: edition})}
		got, err := window.Build(t.Context(), kept, req)
		require.NoError(t, err)
		want, err := window.Build(t.Context(), other.fresh(), req)
		require.NoError(t, err)
		require.NotEmpty(t, sectionOf(want, window.SectionCode))
		assert.Equal(t, sectionOf(want, window.SectionCode), sectionOf(got, window.SectionCode))
	}
}

// A branch can have the result of a call that it inherits, until it has a call of that id itself:
// then the result belongs to that call.
func TestAResultLentToAParentsCallIsNotCached(t *testing.T) {
	s := newStore(t)
	parent := newTalk(t, "parent").user("Look.").assistant("I read.").call("k1", "Read", args{"file_path": "/repo/inherited.go"}).user("Branch here.")
	branch := newTalk(t, "branch").add(&events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "parent", MessageID: fmt.Sprintf("m%d", parent.n)}})
	goOn := func() {
		for range 12 {
			branch.user("And then?").assistant(strings.Repeat("Something else is done. ", 20))
		}
		s.apply(branch.events)
		branch.events = nil
	}
	code := func() []window.Item {
		build := func() []window.Item {
			got, err := window.Build(t.Context(), s.branched("branch"), window.Request{Conversation: idOf("branch"), MaxChars: 6_000})
			require.NoError(t, err)
			return sectionOf(got, window.SectionCode)
		}
		got, kept := build(), s.indexes
		s.indexes = view.NewCache(64<<20, view.BuiltIn{})
		require.Equal(t, build(), got)
		s.indexes = kept
		return got
	}
	s.apply(parent.events)
	branch.result("k1", true, file("lent", 1, 9))
	goOn()
	lent := code()
	require.NotEmpty(t, lent)
	require.Equal(t, "/repo/inherited.go", lent[0].Path)
	branch.assistant("I do something else.").call("k1", "run", args{"command": "make"})
	goOn()
	require.Empty(t, code())
}

func TestOnlyNewCallsAreReadForCode(t *testing.T) {
	s := newStore(t)
	c := newTalk(t, "c").user("Look.").assistant("I read.")
	read := func(i int) {
		call := fmt.Sprint("k", i)
		c.call(call, "Read", args{"file_path": fmt.Sprintf("/repo/%d.go", i)}).result(call, true, file("code", i, i))
	}
	for i := range 200 {
		read(i)
	}
	for range 30 {
		c.user("And then?").assistant(strings.Repeat("Something else is done. ", 20))
	}
	s.apply(c.events)
	rows := func() int {
		src := &counting{Graph: s.graph, files: s.files, recall: s.source().Recall}
		got, err := window.Build(t.Context(), src.source(), window.Request{Conversation: idOf("c"), MaxChars: 8_000})
		require.NoError(t, err)
		require.NotEmpty(t, sectionOf(got, window.SectionCode))
		return src.rows
	}
	first, second := rows(), rows()
	assert.Less(t, second, first-190, "of 200 calls and their results")
	c.events = nil
	read(300)
	c.user("And then?").assistant(strings.Repeat("Something else is done. ", 20))
	s.apply(c.events)
	assert.LessOrEqual(t, rows(), second+8)
}

// jobs is a conversation with many calls, of which one in five reads a file.
func jobs(t testing.TB, id string, calls int) []events.Event {
	c := newTalk(t, id).user("Look.").assistant("I read.")
	for i := range calls {
		call := fmt.Sprint("k", i)
		if i%5 > 0 {
			c.call(call, "run", args{"command": "make"}).result(call, true, "ok")
			continue
		}
		c.call(call, "Read", args{"file_path": fmt.Sprintf("/repo/%d.go", i%40)}).result(call, true, file("code", i, i+3))
		if i%50 == 0 {
			c.user("And then?").assistant(strings.Repeat("Something else is done. ", 20))
		}
	}
	return c.events
}

func TestContextsOfAnyTimeShareTheCodeCache(t *testing.T) {
	s := newStore(t)
	last := s.apply(jobs(t, "c", 700)) + uint64(len(jobs(t, "c", 700))) - 1
	build := func(t testing.TB, src window.Source, asOf uint64) *window.Context {
		got, err := window.Build(t.Context(), src, window.Request{Conversation: idOf("c"), MaxChars: 4_000, AsOf: asOf})
		require.NoError(t, err)
		require.NotEmpty(t, sectionOf(got, window.SectionCode))
		return got
	}
	ends := []uint64{last, last * 4 / 7, last * 2 / 7, last * 5 / 7, last, last - 1}
	want := map[uint64]*window.Context{}
	for _, end := range ends {
		want[end] = build(t, s.fresh(), end)
	}
	t.Run("one at a time", func(t *testing.T) {
		for _, end := range ends {
			require.Equal(t, want[end], build(t, s.source(), end), "as of %d", end)
		}
	})
	t.Run("at once", func(t *testing.T) {
		s.indexes = view.NewCache(64<<20, view.BuiltIn{})
		var wg conc.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for n := range 3 * len(ends) {
					end := ends[(n+i)%len(ends)]
					assert.Equal(t, want[end], build(t, s.source(), end), "as of %d", end)
				}
			})
		}
		wg.Wait()
	})
}

// failing is a graph whose nth read of calls or results fails.
type failing struct {
	window.Graph
	n int
}

func (f *failing) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error) {
	if q.CallsOnly {
		if f.n--; f.n == 0 {
			return nil, errors.New("the store is gone")
		}
	}
	return f.Graph.Transcript(ctx, id, q)
}

func (f *failing) Results(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolResult, error) {
	if f.n--; f.n == 0 {
		return nil, errors.New("the store is gone")
	}
	return f.Graph.Results(ctx, id, calls, asOf)
}

func TestAFailedReadLeavesNoGapInTheCodeCache(t *testing.T) {
	s := newStore(t)
	all := jobs(t, "c", 400)
	req := window.Request{Conversation: idOf("c"), MaxChars: 4_000}
	half := len(all) / 2
	s.apply(all[:half])
	failed := 0
	for n := 1; n < 8; n++ {
		s.indexes = view.NewCache(64<<20, view.BuiltIn{})
		for range 2 { // starts, and continues
			src := s.source()
			src.Graph = &failing{src.Graph, n}
			if _, err := window.Build(t.Context(), src, req); err != nil {
				failed++
			}
			got, err := window.Build(t.Context(), s.source(), req)
			require.NoError(t, err)
			want, err := window.Build(t.Context(), s.fresh(), req)
			require.NoError(t, err)
			require.Equal(t, want, got)
			if next := min(half+20, len(all)); next > half {
				s.apply(all[half:next])
				half = next
			}
		}
	}
	assert.Greater(t, failed, 5)
}
