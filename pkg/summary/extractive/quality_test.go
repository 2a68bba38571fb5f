package extractive

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/summary"
)

// firstSentences is the baseline that a summary has to beat: the range's first sentences,
// up to the same length.
func firstSentences(entries []summary.Entry, chars int) string {
	var b strings.Builder
	for _, e := range entries {
		for s := range recall.Sentences(e.Text) {
			if e.Name != "" && (e.Kind == summary.KindUser || e.Kind == summary.KindAssistant) {
				s = e.Name + ": " + s
			}
			s += "\n"
			if room := chars - length(b.String()); length(s) > room {
				b.WriteString(clip(s, room))
				return b.String()
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

func draftOf(t testing.TB, in summary.Input) summary.Draft {
	d, usage, err := Writer{}.Write(context.Background(), in)
	require.NoError(t, err)
	require.Zero(t, usage)
	return d
}

// share is a ratio summed up over many texts.
type share struct{ kept, of float64 }

func (s share) percent() float64 { return 100 * s.kept / s.of }

// covered counts the cited turns of which a text quotes a sentence.
func (o observed) covered(text string) (n int) {
	for i, e := range o.entries {
		if !o.evidence[o.ids[i]] {
			continue
		}
		for s := range recall.Sentences(e.Text) {
			if len(wordsOf(s)) >= 4 && strings.Contains(text, strings.TrimRight(s, ".:")) {
				n++
				break
			}
		}
	}
	return n
}

// The reference is what people wrote about the sessions of LoCoMo.
func TestQuotesWhatPeopleNotedAboutChats(t *testing.T) {
	var evidence, evidenceFloor share
	var own, floor rouge
	sessions := observedSessions(t)
	for _, o := range sessions {
		text := rendered(draftOf(t, summary.Input{Entries: o.entries}))
		first := firstSentences(o.entries, length(text))
		for _, m := range []struct {
			text  string
			share *share
			sum   *rouge
		}{{text, &evidence, &own}, {first, &evidenceFloor, &floor}} {
			m.share.kept += float64(o.covered(m.text))
			m.share.of += float64(len(o.evidence))
			r := rougeOf(m.text, o.summary)
			m.sum.one += r.one / float64(len(sessions))
			m.sum.two += r.two / float64(len(sessions))
			m.sum.l += r.l / float64(len(sessions))
		}
	}
	t.Logf("%d sessions; cited turns quoted: %.1f %%, first sentences %.1f %%", len(sessions), evidence.percent(), evidenceFloor.percent())
	t.Logf("ROUGE-1/2/L: %.3f %.3f %.3f, first sentences %.3f %.3f %.3f", own.one, own.two, own.l, floor.one, floor.two, floor.l)
	assert.Greater(t, evidence.percent(), evidenceFloor.percent())
	assert.Greater(t, own.one, floor.one)
	assert.Greater(t, own.l, floor.l)
}

// thingsIn returns the file names, identifiers and numbers of a text.
func thingsIn(text string) map[string]bool {
	things := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \n\t\r,;:()[]{}<>\"'`=|*&$#!?\\", r) }) {
		word = strings.Trim(word, "./-…")
		if i := strings.LastIndexByte(word, '/'); i >= 0 {
			word = word[i+1:] // a file counts by its base name
		}
		if len(word) > 1 && len(word) <= 60 && isName(word) {
			things[word] = true
		}
	}
	return things
}

// values returns the strings among a call's arguments, one per line, in the order of their
// keys.
func values(arguments string) string {
	var members map[string]any
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return arguments
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		out = append(out, fmt.Sprint(members[key]))
	}
	return strings.Join(out, "\n")
}

// aboutOf returns the names and numbers that entries are about: those in two or more
// entries, one of them a message or a call.
func aboutOf(entries []summary.Entry) map[string]bool {
	in, written := map[string]int{}, map[string]bool{}
	for _, e := range entries {
		for thing := range thingsIn(e.Text) {
			in[thing]++
			written[thing] = written[thing] || e.Kind != summary.KindResult
		}
	}
	maps.DeleteFunc(written, func(thing string, written bool) bool { return !written || in[thing] < 2 })
	return written
}

// keep counts how many of the things a text contains.
func (s *share) keep(things map[string]bool, text string) {
	in := thingsIn(text)
	for thing := range things {
		s.of++
		if in[thing] {
			s.kept++
		}
	}
}

// asRead returns entries as a person reads them, without JSON.
func asRead(entries []summary.Entry) []summary.Entry {
	entries = slices.Clone(entries)
	for i, e := range entries {
		if e.Kind == summary.KindCall {
			entries[i].Text = values(e.Text)
		}
	}
	return entries
}

func TestKeepsTheNamesASessionIsAbout(t *testing.T) {
	var own, floor share
	ranges := recordedRanges(t, "claude_code", 60)
	for _, entries := range ranges {
		text := rendered(draftOf(t, summary.Input{Entries: entries}))
		read := asRead(entries)
		about := aboutOf(read)
		own.keep(about, text)
		floor.keep(about, firstSentences(read, length(text)))
	}
	t.Logf("%d ranges; names and numbers kept: %.1f %%, first sentences %.1f %%", len(ranges), own.percent(), floor.percent())
	assert.Greater(t, own.percent(), floor.percent())
}

// The baseline of a summary of summaries is the beginning of the first ones.
func TestConsolidationKeepsTheNamesASessionIsAbout(t *testing.T) {
	const children = 8 // about as many as 10,000 characters hold
	var own, floor share
	for group := range slices.Chunk(recordedRanges(t, "claude_code", 60), children) {
		var drafts []summary.Draft
		var texts []string
		for _, entries := range group {
			drafts = append(drafts, draftOf(t, summary.Input{Entries: entries}))
			texts = append(texts, rendered(drafts[len(drafts)-1]))
		}
		text := rendered(draftOf(t, summary.Input{Children: drafts}))
		about := aboutOf(asRead(slices.Concat(group...)))
		own.keep(about, text)
		floor.keep(about, clip(strings.Join(texts, "\n"), length(text)))
	}
	t.Logf("names and numbers kept on level 2: %.1f %%, first summaries %.1f %%", own.percent(), floor.percent())
	assert.Greater(t, own.percent(), floor.percent())
}

func BenchmarkWrite(b *testing.B) {
	ranges := recordedRanges(b, "claude_code", 40)
	size := 0
	for _, entries := range ranges {
		for _, e := range entries {
			size += len(e.Text)
		}
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, entries := range ranges {
			draftOf(b, summary.Input{Entries: entries})
		}
	}
}
