package window

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/summary"
)

// lines draws texts of lines, some of which mention errors.
var lines = rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
		"", "a line", "é日本🎉", "\r", "Error: it broke", strings.Repeat("long ", 300), "x",
	}), 0, 80).Draw(t, "lines"), "\n")
})

func TestCutFitsAndKeepsABeginning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := lines.Draw(t, "text")
		room := rapid.IntRange(0, 2_000).Draw(t, "room")
		got := cut(graph.NewBody(text), room, 7)
		assert.LessOrEqual(t, textCost(got), room)
		if textCost(text) <= room {
			assert.Equal(t, plain.Text(text), got)
			return
		}
		assert.True(t, room == 0 || strings.Contains(got, "…"), got)
		kept, _, _ := strings.Cut(got, "\n[… ")
		assert.True(t, strings.HasPrefix(plain.Text(text), strings.TrimSuffix(kept, "…")), "%q", got)
	})
}

func TestTextCostIsWhatWriteTextWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := lines.Draw(t, "text")
		var w strings.Builder
		writeText(&w, text)
		assert.Equal(t, plain.Length(w.String()), textCost(text))
		for i, line := range strings.Split(w.String(), "\n") {
			assert.True(t, i == 0 || line == "" || line[0] == '\t', "%q", line)
		}
	})
}

func TestAnEscapedBodyKeepsItsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := lines.Draw(t, "text") + "\u2028" + rapid.String().Draw(t, "more")
		got := onOneLine(graph.NewBody(raw))
		assert.Equal(t, graph.NewBody(got.Text), got)
	})
}

func TestCutMarksABodyThatTheReadModelHoldsInPart(t *testing.T) {
	b := graph.NewBody(strings.Repeat("x", graph.MaxBodyBytes+500))
	got := cut(b, 1_000_000, 42)
	assert.Contains(t, got, "[… 500 of 66036 characters left out; whole: sequence 42 in the log]")
	assert.LessOrEqual(t, textCost(got), bodyCost(b))
}

func TestCondenseKeepsWithinItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := lines.Draw(t, "text")
		limit := rapid.IntRange(1, 3_000).Draw(t, "limit")
		got := condense(graph.NewBody(text), limit, 7)
		assert.LessOrEqual(t, plain.Length(got), limit)
		if plain.Length(text) <= limit {
			assert.Equal(t, plain.Text(text), got)
		}
	})
}

func TestCondenseKeepsEndsAndComplaints(t *testing.T) {
	var log []string
	for i := range 2_000 {
		log = append(log, fmt.Sprintf("line %d", i))
	}
	log[1_000] = "main.go:7: error: undefined"
	got := condense(graph.NewBody(strings.Join(log, "\n")), summary.CondensedChars, 12)
	assert.Contains(t, got, "line 0\n")
	assert.Contains(t, got, "[…]\nmain.go:7: error: undefined\n[…]\n")
	assert.Contains(t, got, "line 1999\n[condensed from 18907 to ")
	assert.True(t, strings.HasSuffix(got, " characters; whole: sequence 12 in the log]"), got)

	oneLine := condense(graph.NewBody(strings.Repeat("a", 5_000)+"z"), summary.CondensedChars, 12)
	assert.Contains(t, oneLine, "az\n[condensed from 5001 to ")
}

func TestTheStrategiesAreWellFormed(t *testing.T) {
	for name, list := range strategies {
		total, turn := 0, 0
		for _, s := range list {
			total += s.share
			turn += s.collected
			assert.True(t, strings.HasPrefix(s.heading, "## "))
		}
		assert.LessOrEqual(t, total, 100, name)
		assert.Equal(t, len(list)*(len(list)+1)/2, turn, "each section of %s has its own turn", name)
	}
}
