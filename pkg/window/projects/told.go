package projects

import (
	"regexp"
	"strings"

	"mneme.dev/mneme/pkg/plain"
)

var (
	// fenced matches a block of code in Markdown, also one that was cut off.
	fenced = regexp.MustCompile("(?s)```.*?(```|$)")
	// ruled matches a line between two parts of a text, or between the head and the rows of a table.
	ruled = regexp.MustCompile(`^(-{3,}|\*{3,}|_{3,}|\|[\s|:-]*-[\s|:-]*)$`)
	// headed matches a heading.
	headed = regexp.MustCompile(`^#{1,6} `)
	// leading matches the sentence at the end of a line that leads to what follows.
	leading = regexp.MustCompile(`(^|[.!?]\s+|[。！？])(?:[^.!?。！？]|[.!?]\S)*[:：]$`)
)

const (
	fence   = "```"
	omitted = "…" // stands for a block of code
)

// minProse is the fewest characters of an answer that say something without its only block of code.
const minProse = 120

// told returns what an answer tells: without blocks of code, lines between its parts, and sentences that only lead to a heading,
// as in "Here is what I did:". If hardly anything would be left, all of it stays.
func told(answer string) string {
	text := withoutCode(answer)
	if strings.Contains(text, fence) {
		return text
	}
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || ruled.MatchString(line) {
			continue
		}
		if headed.MatchString(line) {
			kept = withoutLead(kept)
		}
		kept = append(kept, line)
	}
	if short := strings.Join(kept, "\n"); plain.Length(short) >= minNote {
		return short
	}
	return text
}

// withoutLead leaves out the sentence that leads from lines to a heading, unless it has code or bold text, or is all that is below
// another heading.
func withoutLead(lines []string) []string {
	last := len(lines) - 1
	if last < 0 || headed.MatchString(lines[last]) {
		return lines
	}
	at := leading.FindStringSubmatchIndex(lines[last])
	if at == nil {
		return lines
	}
	before, lead := strings.TrimSpace(lines[last][:at[3]]), lines[last][at[3]:]
	switch {
	case strings.ContainsAny(lead, "`*"): // it may name what was found or done
	case before != "":
		lines[last] = before
	case last == 0 || !headed.MatchString(lines[last-1]):
		return lines[:last]
	}
	return lines
}

// withoutCode leaves the blocks of code out of an answer. One that ends the answer stays if little is said before it: it is
// what was asked for, such as a commit message.
func withoutCode(answer string) string {
	text := fenced.ReplaceAllString(answer, "\n"+omitted+"\n")
	switch n := plain.Length(text); {
	case n < minNote, n < minProse && len(fenced.FindAllStringIndex(answer, 2)) == 1 && strings.HasSuffix(strings.TrimSpace(text), omitted):
		return answer
	}
	return text
}
