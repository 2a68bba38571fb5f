package window

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/graph"
)

func TestFilterKeepsMessagesByTheirTextPlaceAndTime(t *testing.T) {
	t.Parallel()
	m := &graph.Message{
		Position: graph.Position{Seq: 20, Turn: 3}, Origin: graph.Origin{Time: "2026-05-08T12:00:00+02:00"}, Role: "user", Speaker: "Ann",
		Content: graph.NewBody("We trace\nthe  Parser (go test -race), 日本語を読む ย้ายฐานข้อมูลแล้ว"),
	}
	at := func(hour int) time.Time { return time.Date(2026, 5, 8, hour, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		filter Filter
		keeps  bool
	}{
		"a phrase over a line end, in another case": {Filter{Contains: []string{"trace the PARSER"}}, true},
		"the words in another order":                {Filter{Contains: []string{"parser the"}}, false},
		"all phrases":                               {Filter{Contains: []string{"trace", "go test"}}, true},
		"one of two phrases":                        {Filter{Contains: []string{"trace", "go build"}}, false},
		"a whole word":                              {Filter{Contains: []string{"race"}}, true},
		"part of a word":                            {Filter{Contains: []string{"pars"}}, false},
		"the beginning of a word":                   {Filter{Contains: []string{"pars*"}}, true},
		"the end of a word":                         {Filter{Contains: []string{"arser*"}}, false},
		"punctuation":                               {Filter{Contains: []string{"-race)"}}, true},
		"a language without spaces":                 {Filter{Contains: []string{"本語"}}, true},
		"another one":                               {Filter{Contains: []string{"ฐานข้อมูล"}}, true},
		"nothing asked for":                         {Filter{Contains: []string{" ", "*"}}, true},
		"without a word that it has":                {Filter{Without: []string{"parser"}}, false},
		"without a word that it has not":            {Filter{Without: []string{"lexer", "pars"}}, true},
		"the speaker":                               {Filter{Speaker: "Ann", Role: "user"}, true},
		"another role":                              {Filter{Role: "assistant"}, false},
		"its sequence":                              {Filter{FromSeq: 20, ToSeq: 20}, true},
		"later sequences":                           {Filter{FromSeq: 21}, false},
		"earlier sequences":                         {Filter{ToSeq: 19}, false},
		"its turn":                                  {Filter{FromTurn: 3, ToTurn: 3}, true},
		"later turns":                               {Filter{FromTurn: 4}, false},
		"earlier turns":                             {Filter{ToTurn: 2}, false},
		"from its time on":                          {Filter{Since: at(10), Until: at(11)}, true},
		"before its time":                           {Filter{Until: at(10)}, false},
		"after its time":                            {Filter{Since: at(11)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.keeps, c.filter.OfMessages()(m))
		})
	}
	assert.Nil(t, (&Filter{}).OfMessages())
	assert.False(t, (&Filter{Since: at(1)}).OfMessages()(&graph.Message{}), "a message without a time")
}

// A text contains every run of its words, and every beginning of such a run.
func TestTextContainsItsOwnWords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[\pL\d_.-]{1,6}`), 1, 12).Draw(t, "words")
		text := strings.Join(words, rapid.SampledFrom([]string{" ", "\n", " \t "}).Draw(t, "space"))
		from := rapid.IntRange(0, len(words)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(words)).Draw(t, "to")
		part := strings.Join(words[from:to], " ")
		begin := []rune(part)[:rapid.IntRange(1, len([]rune(part))).Draw(t, "characters")]
		require.True(t, fits(text, phrases([]string{part, string(begin) + "*"}), nil))
		require.False(t, fits(text, nil, phrases([]string{part})))
	})
}
