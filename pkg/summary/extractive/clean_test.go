package extractive

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"sentences":             {"One thing. Another thing!", []string{"One thing.", "Another thing!"}},
		"blocks of runtimes go": {"<system-reminder>\nnever\n</system-reminder>Fix it.", []string{"Fix it."}},
		"what the user typed after a command stays": {"<command-name>/fix</command-name><command-args>the parser</command-args>", []string{"the parser"}},
		"tags of other elements go":                 {"<role>Reviewer of code</role>", []string{"Reviewer of code"}},
		"a placeholder stays":                       {"Run explain <checkpoint-id> again.", []string{"Run explain <checkpoint-id> again."}},
		"messages of the runtime alone go":          {"[Request interrupted by user for tool use]", nil},
		"colors go":                                 {"It is \x1b[1;31mred\x1b[0m now.", []string{"It is red now."}},
		"code goes":                                 {"Before:\n```go\nx := 1\n```\nAfter that it works.", []string{"Before:", "After that it works."}},
		"an unclosed fence ends with the text":      {"Before it.\n```\nx := 1", []string{"Before it."}},
		"tables and rules go":                       {"Results here.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n---\nDone there.", []string{"Results here.", "Done there."}},
		"headings go":                               {"# Plan\nFirst this.", []string{"First this."}},
		"a heading after a colon stays":             {"Implement the following plan:\n\n# Add a cache\n\n## Overview\nIt is slow.", []string{"Implement the following plan: Add a cache", "It is slow."}},
		"a heading alone stays":                     {"# Add a cache", []string{"Add a cache"}},
		"marks of items and emphasis go":            {"- **Fixed** `main.go`\n2. [docs](http://x) too", []string{"Fixed main.go", "docs too"}},
		"dumps go":                                  {"It crashed:\ngoroutine 1 [running]:\nmain.main()\n\t/w/main.go:12 +0x1d\nFile \"a.py\", line 3, in f\nat f (a.js:1:2)", []string{"It crashed:"}},
		"lines of logs go":                          {"It says:\n09:00 |DEBU| hook completed success=true ms=28 component=hooks\nWhy is that?", []string{"It says:", "Why is that?"}},
		"encoded data goes":                         {"See " + strings.Repeat("QUJD", 60) + " there.", []string{"See … there."}},
		"Chinese is no encoded data":                {strings.Repeat("東京", 50), []string{strings.Repeat("東京", 50)}},
		"a short answer stays":                      {"1", []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, proseOf(c.text)) })
	}
}

func TestClip(t *testing.T) {
	assert.Equal(t, "some words", clip("some words", 10))
	assert.Equal(t, "some…", clip("some words", 9))
	assert.Equal(t, "unbreaka…", clip("unbreakable", 9))
	assert.Equal(t, "éé…", clip("éééé", 3))
	assert.Empty(t, clip("any", 0))
}
