package window_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/window"
)

// pastTalk mentions Rome long ago, has much else since, and nothing about Rome recently.
func pastTalk(t *testing.T) *talk {
	c := newTalk(t, "c").user("Plan the week.")
	c.assistant("Gladly.").user("The hotel in Rome is booked for the third of May.").assistant("I noted the hotel in Rome.")
	for i := range 60 {
		c.user(fmt.Sprintf("Now item %d of the list of things for the garden.", i)).assistant("Done, the garden grows.")
	}
	return c.user("What else is there to do?")
}

func TestAQueryFindsWhatTheRecentTurnsDoNotShow(t *testing.T) {
	c := pastTalk(t)
	for _, strategy := range []string{window.StrategyHybrid, window.StrategyRelevant} {
		got := c.build(window.Request{MaxChars: 3_000, Strategy: strategy, Query: "When is the hotel in Rome?"})
		assert.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
		found := sectionOf(got, window.SectionRelevant)
		require.NotEmpty(t, found)
		assert.Contains(t, got.Markdown(), "**User**: The hotel in Rome is booked for the third of May.\n\n**Assistant**: I noted the hotel in Rome.\n")
		best := slices.MaxFunc(found, func(a, b window.Item) int { return cmp.Compare(a.Match.Score, b.Match.Score) })
		assert.Equal(t, 2, best.Turn)
		assert.Equal(t, 1.0, best.Match.Relevance)
		assert.Equal(t, 1.0, best.Match.Confidence)
		assert.InDelta(t, best.Match.Score, best.Match.Parts.Sum(), 1e-9)
		assert.Equal(t, "When is the hotel in Rome?", got.Manifest.Search.Query)
		assert.NotEmpty(t, got.Manifest.Search.Embedding)
	}
	recent := c.build(window.Request{MaxChars: 3_000, Strategy: window.StrategyRecent, Query: "When is the hotel in Rome?"})
	assert.NotContains(t, recent.Markdown(), "Rome")
}

func TestWithoutAQueryTheNewestUserMessageIsOne(t *testing.T) {
	c := pastTalk(t).assistant("Let me see.").user("Which hotel was it, in Rome?")
	got := c.build(window.Request{MaxChars: 3_000})
	assert.Equal(t, "Which hotel was it, in Rome?", got.Manifest.Search.Query)
	assert.Contains(t, got.Markdown(), "**User**: The hotel in Rome is booked for the third of May.")
}

func TestAFruitlessQueryLeavesItsRoomToTheRecentTurns(t *testing.T) {
	c := pastTalk(t)
	for _, query := range []string{"🎉", "the of and", strings.Repeat("zzyzx ", 20_000)} {
		got := c.build(window.Request{MaxChars: 3_000, Query: query})
		assert.NoError(t, checkRules(got, truthOf(c.events, 1, 0)), query)
		assert.Greater(t, got.Chars, 2_000, "%.20s", query)
	}
}

func TestALongMessageIsShownAroundItsBestPassage(t *testing.T) {
	c := newTalk(t, "c").user("Begin.")
	filler := strings.Repeat("Nothing of interest happens in this sentence at all. ", 200)
	c.assistant(filler + "The password of the staging server is kept in the vault. " + filler)
	for range 40 {
		c.user("Go on with the garden.").assistant("The garden grows.")
	}
	got := c.build(window.Request{MaxChars: 4_000, Query: "Where is the password of the staging server?"})
	found := sectionOf(got, window.SectionRelevant)
	require.NotEmpty(t, found)
	i := 0
	for !strings.Contains(found[i].Text, "password") {
		i++
	}
	shown := found[i]
	assert.Contains(t, shown.Text, "The password of the staging server is kept in the vault.")
	assert.True(t, strings.HasPrefix(shown.Text, "[…] ") && strings.HasSuffix(shown.Text, " […]"), shown.Text)
	assert.LessOrEqual(t, utf8.RuneCountInString(shown.Text), 600)
	assert.Equal(t, utf8.RuneCountInString(filler)*2+57, shown.WholeChars)
}

// file returns numbered lines, all different.
func file(name string, from, to int) string {
	var w strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&w, "%6d→\tvalue of %s in line %d\n", i, name, i)
	}
	return w.String()
}

func TestCodeIsShownInItsNewestVersion(t *testing.T) {
	c := newTalk(t, "c").user("Mend the parser.").assistant("I read it.")
	c.call("k1", "Read", args{"file_path": "/repo/parser.go"}).result("k1", true, file("parser", 1, 40))
	c.call("k2", "Read", args{"file_path": "/repo/failed.go"}).result("k2", false, file("failed", 1, 40))
	c.assistant("I change it.")
	c.call("k3", "Edit", args{"file_path": "/repo/parser.go", "old_string": "\tvalue of parser in line 7", "new_string": "\ta better value in line seven"}).result("k3", true, "ok")
	c.call("k4", "Edit", args{"file_path": "/repo/parser.go", "old_string": "\tvalue of parser in line 9", "new_string": "\tthis change was refused by the tool"}).result("k4", false, "no")
	for i := range 40 {
		c.assistant(fmt.Sprintf("Step %d.", i)).call(fmt.Sprint("t", i), "Bash", args{"command": "make test"}).result(fmt.Sprint("t", i), true, strings.Repeat("ok and more output of the test\n", 5))
	}
	got := c.build(window.Request{MaxChars: 8_000})
	assert.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
	code := sectionOf(got, window.SectionCode)
	require.NotEmpty(t, code)
	text := got.Markdown()
	_, text, _ = strings.Cut(text, "## Relevant Code Context (confidence: 0.5)")
	text, _, _ = strings.Cut(text, "\n## ")
	assert.Contains(t, text, "### /repo/parser.go\n")
	assert.Contains(t, text, "a better value in line seven")
	assert.NotContains(t, text, "value of parser in line 7\n", "it was replaced")
	assert.Contains(t, text, "Lines 1-6 (via Read):\n\t\tvalue of parser in line 1\n")
	assert.Contains(t, text, "Lines 8-")
	assert.NotContains(t, text, "failed.go", "the call failed")
	assert.NotContains(t, text, "refused by the tool")
	assert.Contains(t, text, "value of parser in line 9\n", "nothing replaced it")
	for _, it := range code {
		assert.Equal(t, 0.5, it.Match.Confidence)
		if it.StartLine > 0 {
			assert.Contains(t, it.Text, fmt.Sprintf("line %d\n", it.StartLine))
		}
	}
}

func TestCodeShownWholeInTheRecentTurnsIsNotRepeated(t *testing.T) {
	c := newTalk(t, "c").user("Look at them.")
	for i := range 4 {
		call := fmt.Sprint("k", i)
		c.assistant("I read.").call(call, "Read", args{"file_path": fmt.Sprintf("/repo/%d.go", i)}).result(call, true, file(fmt.Sprint("file", i), 1, 150))
	}
	got := c.build(window.Request{})
	require.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
	whole := 0
	for _, it := range sectionOf(got, window.SectionTurns) {
		if it.Kind == window.KindToolCall && it.ResultWholeChars == 0 {
			whole++
		}
	}
	require.Equal(t, 3, whole, "and the oldest is condensed")
}

// readsOfFourFiles is a conversation that has read four files on different subjects, one after
// another.
func readsOfFourFiles(t *testing.T) *talk {
	c := newTalk(t, "c").user("Read everything.").assistant("I read.")
	for i, body := range []string{
		"func payroll(employees []Employee) {\n\tfor _, e := range employees {\n\t\te.Salary = e.Hours * e.Rate\n\t}\n}\n",
		"func harbour(ships []Ship) {\n\tfor _, s := range ships {\n\t\ts.Anchor = s.Chain.Length()\n\t}\n}\n",
		"func forecast(clouds []Cloud) {\n\tfor _, c := range clouds {\n\t\tc.Rain = c.Density.Percent()\n\t}\n}\n",
		"func recipe(pots []Pot) {\n\tfor _, p := range pots {\n\t\tp.Soup = p.Onion.Slices()\n\t}\n}\n",
	} {
		call := fmt.Sprint("k", i)
		c.call(call, "Read", args{"file_path": fmt.Sprintf("/repo/%d.go", i)}).result(call, true, body)
	}
	return c
}

// tests makes the agent run its tests repeatedly.
func (c *talk) tests(command string, times int) {
	for i := range times {
		call := fmt.Sprint("t", len(c.events))
		c.assistant(fmt.Sprintf("Step %d.", i)).call(call, "Bash", args{"command": command}).result(call, true, strings.Repeat("ok and more output of the test\n", 5))
	}
}

func TestCodeIsRankedByWhatTheLastCallsWereAbout(t *testing.T) {
	for calls, want := range map[int]string{19: "/repo/0.go", 20: "/repo/3.go"} {
		c := readsOfFourFiles(t)
		c.tests("make test", 20)
		c.call("payroll", "Grep", args{"pattern": "Salary|payroll"}).result("payroll", true, "")
		c.tests("make test # "+strings.Repeat("with all of its switches ", 10), calls)
		code := sectionOf(c.build(window.Request{MaxChars: 5_500}), window.SectionCode)
		require.NotEmpty(t, code)
		require.Equal(t, want, code[0].Path, "%d calls later", calls)
	}
}

func TestCodeThatIsAskedForInOtherWordsIsFound(t *testing.T) {
	c := readsOfFourFiles(t)
	c.tests("make test", 40)
	s := newStore(t)
	s.apply(c.events)
	req := window.Request{Conversation: idOf("c"), MaxChars: 5_000, Query: "What do workers earn, and how are their wages computed?"}
	for embedder, want := range map[view.Embedder]string{view.BuiltIn{}: "/repo/0.go", nil: "/repo/3.go"} {
		s.indexes = view.NewCache(64<<20, embedder)
		got, err := window.Build(t.Context(), s.source(), req)
		require.NoError(t, err)
		code := sectionOf(got, window.SectionCode)
		require.NotEmpty(t, code)
		require.Equal(t, want, code[0].Path)
		require.Equal(t, embedder != nil, code[0].Match.Parts.Dense > 0)
		i := slices.IndexFunc(got.Manifest.Sections, func(s window.SectionManifest) bool { return s.Name == window.SectionCode })
		require.Equal(t, embedder != nil, got.Manifest.Sections[i].Embedding != "")
	}
}

// Whatever a tool has shown, no line appears twice, line numbers are those of the file, and no
// replaced line comes back.
func TestPassagesOfAFileKeepItsLines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newTalk(t, "c").user("Look.").assistant("I read.")
		for i := range rapid.IntRange(1, 6).Draw(rt, "reads") {
			from := rapid.IntRange(1, 60).Draw(rt, "from")
			to := from + rapid.IntRange(0, 60).Draw(rt, "lines")
			call := fmt.Sprint("k", i)
			c.call(call, "Read", args{"file_path": fmt.Sprintf("/repo/%d.go", rapid.IntRange(0, 1).Draw(rt, "file"))}).result(call, true, file("code", from, to))
		}
		for range 12 {
			c.user("And then?").assistant(strings.Repeat("Something else is done. ", 20))
		}
		got := c.build(window.Request{MaxChars: rapid.IntRange(3_000, 20_000).Draw(rt, "max")})
		require.NoError(rt, checkRules(got, truthOf(c.events, 1, 0)))
		for _, it := range sectionOf(got, window.SectionCode) {
			for i, line := range strings.Split(it.Text, "\n") {
				require.Equal(rt, fmt.Sprintf("\tvalue of code in line %d", it.StartLine+i), line)
			}
			require.Equal(rt, it.EndLine, it.StartLine+strings.Count(it.Text, "\n"))
		}
	})
}

func TestARepeatedMessageIsFoundOnce(t *testing.T) {
	c := newTalk(t, "c").user("Good morning.").assistant("Good morning.")
	for range 3 {
		c.user("The storm has torn the roof off the boat house.").assistant("I see.")
	}
	for range 12 {
		c.user("And then?").assistant(strings.Repeat("Something else is done. ", 20))
	}
	got := c.user("What did the storm do to the boat house?").build(window.Request{MaxChars: 3_000})
	found := 0
	for _, it := range sectionOf(got, window.SectionRelevant) {
		if strings.Contains(it.Text, "torn the roof off") {
			found++
		}
	}
	assert.Equal(t, 1, found, got.Markdown())
}

func TestAQueryGetsRoomEvenIfToolsDoTheWork(t *testing.T) {
	c := newTalk(t, "c").user("Where is the boat house?").assistant("The boat house stands behind the old mill, at the bend of the river.")
	for i := range 20 {
		call := fmt.Sprint("k", i)
		c.user(fmt.Sprintf("Mend part %d.", i)).assistant("I read.").call(call, "Read", args{"file_path": fmt.Sprintf("/repo/%d.go", i)}).result(call, true, file(fmt.Sprint("part", i), 1, 60))
	}
	got := c.build(window.Request{MaxChars: 5_000, Query: "Where does the boat house stand?"})
	require.NotEmpty(t, sectionOf(got, window.SectionCode))
	found := sectionOf(got, window.SectionRelevant)
	require.NotEmpty(t, found)
	assert.True(t, slices.ContainsFunc(found, func(it window.Item) bool { return strings.Contains(it.Text, "behind the old mill") }), got.Markdown())
	assert.GreaterOrEqual(t, got.Manifest.Search.PastShare, 0.5)
}
