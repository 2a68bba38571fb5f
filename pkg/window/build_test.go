package window_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/window"
)

func TestARequestThatBreaksARuleNamesItsField(t *testing.T) {
	s := newStore(t)
	for _, c := range []struct {
		req           window.Request
		field, reason string
	}{
		{window.Request{MaxChars: window.MinMaxChars - 1}, "max_chars", "499 is not between 500 and 10000000"},
		{window.Request{MaxChars: -1}, "max_chars", "-1 is not between"},
		{window.Request{MaxChars: window.MaxMaxChars + 1}, "max_chars", "is not between"},
		{window.Request{Strategy: "best"}, "strategy", `"best" is not known; there are hybrid, levels, pruned, recent`},
	} {
		_, err := window.Build(t.Context(), s.source(), c.req)
		var invalid *window.InvalidError
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, c.field, invalid.Field)
		assert.Contains(t, invalid.Reason, c.reason)
	}
}

func TestAnUnknownDeletedOrLaterConversationIsNotFound(t *testing.T) {
	s := newStore(t)
	c := newTalk(t, "deleted").user("hello")
	s.apply(c.add(&events.ConversationDeleted{}).events)
	s.apply(newTalk(t, "later").user("hello").events)
	for _, req := range []window.Request{
		{Conversation: idOf("unknown")}, {Conversation: idOf("deleted")}, {Conversation: idOf("later"), AsOf: 1},
		{Conversation: events.ConversationID{Tenant: "other", ID: "later"}},
	} {
		_, err := window.Build(t.Context(), s.source(), req)
		assert.ErrorIs(t, err, graph.ErrNotFound)
	}
}

func TestAConversationWithoutMessagesIsAnEmptyContext(t *testing.T) {
	for _, strategy := range window.Strategies() {
		c := newTalk(t, "c").add(&events.ConversationStarted{Title: "T"}).build(window.Request{Strategy: strategy})
		assert.Empty(t, c.Markdown())
		assert.Empty(t, c.Sections)
		assert.Zero(t, c.Chars)
		data, err := json.Marshal(c)
		require.NoError(t, err)
		assert.Contains(t, string(data), `"sections":[]`)
	}
}

// Seed 001 §9: the calls of intermediate assistant messages belong to the turn.
func TestATurnHasTheCallsOfItsIntermediateMessages(t *testing.T) {
	c := newTalk(t, "c").user("Read this file")
	c.assistant("").call("t1", "read_file", args{"path": "a.go"}).result("t1", true, "A")
	c.assistant("").call("t2", "grep_files", args{"path": "."}).result("t2", true, "B")
	c.assistant("Here is the content.")
	var kinds []string
	for _, it := range sectionOf(c.build(window.Request{}), window.SectionTurns) {
		kinds = append(kinds, fmt.Sprint(it.Kind, " ", it.Turn, " ", it.Step, " ", it.ToolName))
	}
	assert.Equal(t, []string{"message 1 0 ", "message 1 1 ", "tool_call 1 1 read_file", "message 1 2 ", "tool_call 1 2 grep_files", "message 1 3 "}, kinds)
}

// Seed 000, feature 1.
func TestPruningKeepsTheFirstMessageAndTheLastNine(t *testing.T) {
	for n, want := range map[int]int{9: 9, 10: 10, 11: 10, 40: 10} {
		c := newTalk(t, "c")
		for i := range n {
			c.say([]string{"user", "assistant"}[i%2], fmt.Sprintf("message %d", i+1))
		}
		text := c.build(window.Request{Strategy: window.StrategyPruned}).Markdown()
		assert.Equal(t, want, strings.Count(text, ": message "), "of %d", n)
		assert.Contains(t, text, ": message 1\n")
		assert.Contains(t, text, fmt.Sprintf(": message %d\n", n))
		bridge := "**System**: … ["
		assert.Equal(t, n > 10, strings.Contains(text, bridge), "of %d", n)
	}
}

func TestFilesAreListedOnceAndModifiedOutranksRead(t *testing.T) {
	c := newTalk(t, "c").user("Go.").assistant("Going.")
	step := func(tool string, arguments args) {
		id := fmt.Sprintf("t%d", c.n)
		c.call(id, tool, arguments)
		c.result(id, true, "")
	}
	step("write_file", args{"path": "written-then-read.go"})
	step("read_file", args{"path": "written-then-read.go"})
	step("grep_files", args{"path": "read-last.go"})
	step("read_file", args{"path": "read-last.go"})
	step("read_file", args{"path": "node_modules/x/index.js"})
	step("read_file", args{"path": "/tmp/scratch.txt"})
	step("list_directory", args{"path": "src"})
	c.call("failed", "read_file", args{"path": "failed.go"}).result("failed", false, "no")

	got := c.build(window.Request{})
	text := got.Markdown()
	_, list, _ := strings.Cut(text, "## Recently Accessed Files\n")
	assert.Equal(t, "\n**Read:**\n- read-last.go (via read_file, Turn 1)\n\n**Modified:**\n- written-then-read.go (via write_file, Turn 1)\n\n**Listed:**\n- src\n", strings.ReplaceAll(list, "./", ""))
	m := manifestOf(got, window.SectionFiles)
	assert.Contains(t, m.Dropped, window.Dropped{What: "files", Count: 2, Reason: "excluded by a pattern"})

	all := c.build(window.Request{Exclude: []string{}}).Markdown()
	assert.Contains(t, all, "- /tmp/scratch.txt (via read_file, Turn 1)")
	s := newStore(t)
	s.apply(c.events)
	without, err := window.Build(t.Context(), window.Source{Graph: s.graph}, window.Request{Conversation: idOf("c")})
	require.NoError(t, err)
	assert.NotContains(t, without.Markdown(), "## Recently Accessed Files")
}

func TestFilesOfACloneBelowATemporaryFolderAreShown(t *testing.T) {
	c := newTalk(t, "c")
	c.add(&events.ConversationStarted{Cwd: "/tmp/clone"})
	c.user("Go.").assistant("Going.")
	for i, path := range []string{"main.go", "/tmp/scratch.txt"} {
		id := fmt.Sprintf("t%d", i)
		c.call(id, "read_file", args{"path": path}).result(id, true, "package main\n\nfunc main() { "+path+" }\n")
	}
	text := c.build(window.Request{}).Markdown()
	_, list, _ := strings.Cut(text, "## Recently Accessed Files\n")
	assert.Contains(t, list, "main.go (via read_file, Turn 1)")
	assert.NotContains(t, list, "scratch.txt")
	assert.NotContains(t, c.build(window.Request{Exclude: []string{"/tmp/clone/**"}}).Markdown(), "main.go (via read_file", "the caller says so")
}

// Events after as_of change nothing: the context is the one of that time.
func TestAsOfIsWhatABuildThenWouldHaveGiven(t *testing.T) {
	c := newTalk(t, "c")
	for i := range 30 {
		id := fmt.Sprintf("t%d", i)
		c.user(fmt.Sprintf("Question %d", i)).assistant("Looking.").call(id, "read_file", args{"path": id}).result(id, true, "ok").assistant("Done.")
	}
	s := newStore(t)
	then := map[string]*window.Context{}
	for n, e := range c.events {
		s.apply([]events.Event{e})
		for _, strategy := range window.Strategies() {
			now, err := window.Build(t.Context(), s.source(), window.Request{Conversation: idOf("c"), MaxChars: 1_500, Strategy: strategy})
			require.NoError(t, err)
			then[fmt.Sprint(strategy, n+1)] = now
		}
	}
	for n := range c.events {
		for _, strategy := range window.Strategies() {
			now, err := window.Build(t.Context(), s.source(), window.Request{Conversation: idOf("c"), MaxChars: 1_500, Strategy: strategy, AsOf: uint64(n + 1)})
			require.NoError(t, err)
			assert.Equal(t, then[fmt.Sprint(strategy, n+1)], now)
		}
	}
}

// The read models progress independently, so one may know events that another has yet to apply.
func TestFilesTouchedAfterTheContextsSequenceAreNotListed(t *testing.T) {
	c := newTalk(t, "c").user("Read them.").assistant("Looking.").call("t1", "read_file", args{"path": "/old"}).result("t1", true, "ok")
	n := len(c.events)
	c.call("t2", "read_file", args{"path": "/old"}).result("t2", true, "ok").call("t3", "read_file", args{"path": "/new"}).result("t3", true, "ok")
	behind, ahead := newStore(t), newStore(t)
	behind.apply(c.events[:n])
	ahead.apply(c.events)
	src := behind.source()
	want, err := window.Build(t.Context(), src, window.Request{Conversation: idOf("c")})
	require.NoError(t, err)
	require.Contains(t, want.Markdown(), "/old")
	src.Files = ahead.files
	got, err := window.Build(t.Context(), src, window.Request{Conversation: idOf("c")})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// A step is shown with all its calls or left out, even if only its end was read.
func TestAStepThatIsTooLargeIsLeftOutWhole(t *testing.T) {
	c := newTalk(t, "c").user("Call them all.").assistant("All at once.")
	for i := range 300 {
		c.call(fmt.Sprintf("t%d", i), "run", args{"text": strings.Repeat("x", 500)})
	}
	got := c.build(window.Request{MaxChars: 5_000, Strategy: window.StrategyRecent})
	assert.Equal(t, window.FirstLine+"\n\n## Recent Conversation (Raw)\n\n[Turn 1]\n**User**: Call them all.\n\n[… 1 earlier step of this turn left out]\n", got.Markdown())
	assert.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
}

// A program that records nothing but calls, as the telemetry of Codex does, has no steps to leave out whole.
func TestTheNewestOfCallsWithoutAMessageAreShown(t *testing.T) {
	c := newTalk(t, "c").user("Call them all.")
	for i := range 300 {
		c.call(fmt.Sprintf("t%d", i), "run", args{"text": strings.Repeat("x", 400)}).result(fmt.Sprintf("t%d", i), true, fmt.Sprint("It is ", i))
	}
	c.assistant("Done.").call("last", "run", args{}).result("last", true, "It is 300")
	s := newStore(t)
	s.apply(c.events)
	for _, end := range []int{len(c.events) - 3, len(c.events)} {
		for _, strategy := range window.Strategies() {
			for _, most := range []int{2_000, 5_000, 100_000} {
				got, err := window.Build(t.Context(), s.source(), window.Request{Conversation: idOf("c"), MaxChars: most, Strategy: strategy, AsOf: uint64(end)})
				require.NoError(t, err)
				require.NoError(t, checkRules(got, truthOf(c.events, 1, uint64(end))))
				require.Contains(t, got.Markdown(), "Result: It is 299", "%s %d", strategy, most)
				require.Greater(t, len(got.Markdown()), most/2, "%s %d", strategy, most)
			}
		}
	}
}

// Calls without a message are shown whatever their turn begins with, and whether or not the next one has begun.
func TestCallsWithoutAMessageAreShownInEveryTurn(t *testing.T) {
	calls := func(c *talk, from, to int) {
		for i := from; i < to; i++ {
			c.call(fmt.Sprintf("t%d", i), "run", args{"text": strings.Repeat("x", 400)}).result(fmt.Sprintf("t%d", i), true, fmt.Sprint("It is ", i))
		}
	}
	for name, record := range map[string]func(*talk){
		"the next prompt": func(c *talk) { c.user("Go."); calls(c, 0, 300); c.user("Thanks.") },
		"no prompt":       func(c *talk) { calls(c, 0, 300) },
		"a reminder": func(c *talk) {
			c.user("Go.")
			calls(c, 0, 150)
			c.add(&events.MessageCreated{MessageID: "r", Role: "user", Content: "<system-reminder>", Origin: "meta"})
			calls(c, 150, 300)
		},
	} {
		c := newTalk(t, "c")
		record(c)
		s := newStore(t)
		s.apply(c.events)
		got, err := window.Build(t.Context(), s.source(), window.Request{Conversation: idOf("c"), MaxChars: 20_000})
		require.NoError(t, err)
		require.NoError(t, checkRules(got, truthOf(c.events, 1, uint64(len(c.events)))), name)
		require.Contains(t, got.Markdown(), "Result: It is 299", name)
		require.Greater(t, len(got.Markdown()), 15_000, name)
	}
}

// What an agent's program wrote in the user's name is neither the first instruction, nor a query, nor what is searched for.
func TestTheOutputOfCommandsIsNoInstruction(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "c").user("<command-name>/clear</command-name>").user("<local-command-stdout>Cleared.</local-command-stdout>")
	c.user("Warm the cache of each shard.").assistant("The cache of the first shard is warm.").user("<bash-stdout>ok</bash-stdout>").user("And its lock?")
	for i := range 40 {
		c.assistant(strings.Repeat(fmt.Sprint("Step ", i, " looked at the lock of a shard. "), 20))
	}
	c.user("[Request interrupted by user]")
	for _, strategy := range window.Strategies() {
		got := c.build(window.Request{MaxChars: 3_000, Strategy: strategy})
		require.NoError(t, checkRules(got, truthOf(c.events, 1, 0)), strategy)
		require.Contains(t, got.Markdown(), "Warm the cache of each shard.", strategy)
	}
	got := c.build(window.Request{MaxChars: 3_000})
	var queries []string
	for _, it := range sectionOf(got, window.SectionQueries) {
		queries = append(queries, it.Text)
	}
	require.Equal(t, []string{"Warm the cache of each shard."}, queries, "the recent turns show the other one")
	require.Contains(t, got.Markdown(), "**User**: And its lock?")
	require.Contains(t, manifestOf(got, window.SectionQueries).Dropped, window.Dropped{What: "queries", Count: 1, Reason: "not written by the user: the agent's program"})
	require.Positive(t, manifestOf(got, window.SectionRelevant).Items, "found by the words of the last query")
}

// The story gives way to the messages that must survive.
func TestAPrunedContextWithAStoryAndLargeAnchorsKeepsItsBudget(t *testing.T) {
	c := newTalk(t, "c").user(strings.Repeat("first ", 200))
	for i := range 20 {
		c.assistant(fmt.Sprint("Step ", i))
	}
	c.add(&events.SummaryWritten{
		SummaryID: "a", Level: 1, FirstSeq: 1, LastSeq: 18, FirstTurn: 1, LastTurn: 1, Children: []string{}, Method: "extractive", Conversation: strings.Repeat("It was said. ", 20),
		Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
	})
	c.user(strings.Repeat("newest ", 200)).assistant("Yes.")
	for budget := 2_600; budget < 3_600; budget += 50 {
		got := c.build(window.Request{MaxChars: budget, Strategy: "pruned"})
		assert.NoError(t, checkRules(got, truthOf(c.events, 1, 0)), budget)
	}
}

// An agent that has just read a file needs it whole, not a quarter of it beside an empty rest.
func TestATextIsNotCutForItsLengthIfEverythingFits(t *testing.T) {
	source := strings.Repeat("x := parse(line)\n", 800)
	for _, strategy := range []string{window.StrategyHybrid, window.StrategyRelevant, window.StrategyRecent, window.StrategyLevels} {
		c := newTalk(t, "c").user("What does parse.go do?").assistant("I read it.")
		c.call("r", "read", args{"path": "parse.go"}).result("r", true, source)
		got := c.build(window.Request{MaxChars: 20_000, Strategy: strategy})
		assert.NotContains(t, got.Markdown(), "condensed", strategy)
		assert.Equal(t, 800, strings.Count(got.Markdown(), "x := parse(line)"), strategy)
		assert.NoError(t, checkRules(got, truthOf(c.events, 1, 0)), strategy)
		got = c.build(window.Request{MaxChars: 10_000, Strategy: strategy})
		assert.Contains(t, got.Markdown(), "condensed from 13600", strategy)
	}
}

// What a tool has just returned is what the model asked for. Late in a long session it was cut to what the share of the
// recent turns left.
func TestTheResultThatTheModelWaitsForGetsAQuarterOfTheBudget(t *testing.T) {
	for lines, whole := range map[int]bool{280: true, 900: false} {
		c := newTalk(t, "c")
		for turn := range 12 {
			c.user(fmt.Sprintf("What does package p%d do, and who parses there?", turn))
			for file := range 6 {
				id, path := fmt.Sprint(turn, "-", file), fmt.Sprintf("p%d/f%d.go", turn, file)
				c.assistant("I read "+path).call(id, "read", args{"path": path}).result(id, true, strings.Repeat("y := "+path+".parse(line)\n", 80))
			}
			c.assistant(strings.Repeat("It parses lines, as its files say. ", 8))
		}
		c.user("What does parse.go do?").assistant("I read it.")
		c.call("r", "read", args{"path": "parse.go"}).result("r", true, strings.Repeat("x := parse(line)\n", lines))
		for _, strategy := range []string{window.StrategyHybrid, window.StrategyRelevant, window.StrategyRecent} {
			got := c.build(window.Request{MaxChars: 20_000, Strategy: strategy})
			assert.NoError(t, checkRules(got, truthOf(c.events, 1, 0)), strategy)
			_, recent, _ := strings.Cut(got.Markdown(), "## Recent Conversation (Raw)")
			recent, _, _ = strings.Cut(recent, "\n## ")
			if shown := strings.Count(recent, "x := parse(line)"); whole {
				assert.Equal(t, lines, shown, strategy)
			} else {
				assert.Less(t, shown, 300, strategy)
				assert.Greater(t, shown, 200, strategy)
			}
		}
	}
}

// What was done before the first instruction, such as the work of a slash command, can be left out like anything else, and
// is then searched.
func TestWhatCameBeforeTheFirstInstructionIsFound(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "c").user("<command-name>/review</command-name>")
	for i := range 30 {
		c.assistant(fmt.Sprintf("Step %d: the lock of shard %d is held too long. ", i, i) + strings.Repeat("It waits for the disk. ", 40))
	}
	for range 5 {
		c.user("Why is the lock of shard 3 held?").assistant(strings.Repeat("Because of the clock. ", 50))
	}
	for budget := 5_500; budget < 9_000; budget += 50 { // the five turns leave no room for a step at some of them
		got := c.build(window.Request{MaxChars: budget, Query: "the lock of shard 3"})
		require.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
		require.Contains(t, got.Markdown(), "Step 3:", budget)
	}
}

// The first summary covers the start of the conversation too, which has no text: it says nothing that the turns do not.
func TestAConversationThatIsShownWholeTellsNoStory(t *testing.T) {
	talk := func() *talk {
		c := newTalk(t, "c").add(&events.ConversationStarted{Title: "T"})
		manyTurns(c)
		return c.add(&events.SummaryWritten{
			SummaryID: "a", Level: 1, FirstSeq: 1, LastSeq: 30, FirstTurn: 1, LastTurn: 15, Children: []string{}, Method: "extractive",
			Conversation: "User: warm the cache of each shard.", Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
		}).user("And now?")
	}
	for _, query := range []string{"", "the cache of a shard"} {
		got := talk().build(window.Request{Query: query})
		assert.NotContains(t, got.Markdown(), "left out")
		assert.Zero(t, manifestOf(got, window.SectionStory).Items)
		assert.Equal(t, []window.Dropped{{What: "summaries", Count: 1, Reason: "shown raw"}}, manifestOf(got, window.SectionStory).Dropped)
		got = talk().build(window.Request{Query: query, MaxChars: 4_000})
		assert.Equal(t, 1, manifestOf(got, window.SectionStory).Items, "some turns are left out")
	}
}

// A summary that does not fit is cut, and the manifest says what is missing.
func TestASmallBudgetTellsTheBeginningOfTheStory(t *testing.T) {
	c := newTalk(t, "c")
	manyTurns(c)
	c.add(&events.SummaryWritten{
		SummaryID: "a", Level: 1, FirstSeq: 1, LastSeq: 30, FirstTurn: 1, LastTurn: 15, Children: []string{}, Method: "extractive",
		Conversation: "User: warm the cache of each shard.\nAssistant: " + strings.Repeat("It was warmed again. ", 40), Actions: "Ran make (40).",
		Findings: []string{"It holds."}, Topics: []string{"caches"}, Files: []string{"src/a.go"}, Tools: []string{"Bash"},
	})
	for budget := 500; budget < 4_000; budget += 300 {
		got := c.build(window.Request{MaxChars: budget})
		assert.NoError(t, checkRules(got, truthOf(c.events, 1, 0)), budget)
		story := manifestOf(got, window.SectionStory)
		if budget < 1_400 {
			assert.Zero(t, story.Items, "nothing worth a place fits in %d", budget)
			assert.Contains(t, story.Dropped, window.Dropped{What: "summaries", Count: 1, Reason: "over the budget"})
			continue
		}
		text := got.Markdown()
		assert.Contains(t, text, "[Turns 1-15, level 1, confidence: 0.7]\n**Conversation**: User: warm the cache of each shard.\n\tAssistant: It was", budget)
		assert.Contains(t, text, " […]\n")
		assert.Equal(t, []window.Dropped{{What: "parts of summaries", Count: 6, Reason: "over the budget"}}, story.Dropped)
	}
}

// Anyone who can publish can write a summary: the manifest names those of other sources.
func TestTheManifestNamesTheSummariesOfAnotherSource(t *testing.T) {
	c := newTalk(t, "c")
	manyTurns(c)
	own := len(c.events)
	write := func(id string, first, last uint64) {
		c.add(&events.SummaryWritten{
			SummaryID: id, Level: 1, FirstSeq: first, LastSeq: last, FirstTurn: int(first+1) / 2, LastTurn: int(last) / 2, Children: []string{}, Method: "llm",
			Conversation: "It was said.", Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
		})
	}
	write("a", 1, 20)
	write("b", 21, 30)
	c.events[own].Source = summary.Source
	foreign := c.events[own+1]
	require.NotEqual(t, summary.Source, foreign.Source)
	got := c.build(window.Request{MaxChars: 3_000})
	story := manifestOf(got, window.SectionStory)
	require.Equal(t, 2, story.Items)
	require.Equal(t, []string{foreign.ID}, story.Foreign)
}

func TestAMessageThatShowedTheModelAContextIsNoLineOfTheNextOne(t *testing.T) {
	made := newTalk(t, "c").user("Fix the cart").
		add(&events.MessageCreated{MessageID: "shown", Role: "system", Origin: "meta"}). // its text was removed when it was recorded
		add(&events.MessageCreated{MessageID: "reminder", Role: "system", Origin: "meta", Content: "Tests are slow"}).
		assistant("Fixed").build(window.Request{})
	require.Equal(t, 1, strings.Count(made.Markdown(), "**System** (meta)"))
	require.Contains(t, made.Markdown(), "**System** (meta): Tests are slow")
}
