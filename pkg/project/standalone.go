package project

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// A lesson is read without the conversation that taught it. A text that makes sense only there is not worth a line. The
// rules about findings know English; of findings in other languages they leave out those that are short or that lead to
// something else.

// The fewest terms of a text that stands alone.
const (
	minCorrection  = 3
	minInstruction = 2
	minFinding     = 5
)

var (
	// reports begin what was changed: in a later session that is the state of the code, which the agent reads there.
	reports = words("added updated removed fixed created changed renamed moved replaced implemented refactored wrapped extracted deleted committed pushed ran rewrote simplified merged applied installed resolved introduced adjusted converted cleaned wrote verified")
	// proposals begin what to do next.
	proposals = words("let's i'd i'll i'm want would should option options recommendation add use update fix remove extract go give try ship simplify wrap run create replace change move rename make keep drop delete implement write check consider see")
	// references begin what goes on from the sentence before, or answers a question.
	references = words("however otherwise similarly so then but and this that these those it they after before yes yep yeah ok okay done great perfect")
	// fillers may stand before the word that decides.
	fillers = words("also already i i've we we've have can could need will just now successfully actually")
	// counted matches a reference to a list in the conversation: comment 2, lines 64-72, option A.
	counted = regexp.MustCompile(`^(?i:tasks?|comments?|issues?|sessions?|lines?|lanes?|steps?|phases?|scenarios?|threads?|commits?) (#?\d|[A-Z]\b)|\b[Oo]ption (#?\d|[A-Z]\b)`)
	// located matches what begins with a place in the code, or with a test: it says what stands there, which the agent can read.
	located = regexp.MustCompile(`^[\w./-]*\w\.[a-z]{1,4}(:[\d,-]+)?( \(| ?[:–—]| - )|^test[a-z0-9]*_|^test[a-z0-9_]+ - `)
	// numberedLine matches what names a line of the code by its number, which the next change moves.
	numberedLine = regexp.MustCompile(`\blines? ~?\d`)
	// named matches names of programs and libraries that look like files.
	named = regexp.MustCompile(`^((node|next|nuxt|vue|three|d3|chart|express|ember|alpine|discord|moment)\.js|(asp|ado)\.net|socket\.io)\b`)
	// allWell says that nothing is wrong, which is true until the next change.
	allWell = []string{"tests pass", "tests now pass", "everything is ", "everything works", "everything passes", "linting is clean", "lint is clean", "build passes", "all done", "all green", "all good", "looks good", "linter passes"}
	// mended says that something is fixed, unless it is fixed at a value.
	mended = regexp.MustCompile(`\b(is|are) fixed\b *([^ \w]|$)`)
)

// findingStandsAlone reports whether a sentence that was picked from an answer says something in another session.
func findingStandsAlone(text string) bool {
	lower := strings.ToLower(text)
	for i, clause := range clauses(lower) {
		first := firstWord(clause)
		if reports[first] || proposals[first] || i == 0 && references[first] {
			return false
		}
	}
	if counted.MatchString(text) || located.MatchString(lower) && !named.MatchString(lower) || numberedLine.MatchString(lower) || strings.ContainsAny(text, "✓✔✅❌❓") || tellsOfAChange(lower) {
		return false
	}
	says := func(phrase string) bool { return strings.Contains(lower, phrase) }
	return isWhole(lower) && !slices.ContainsFunc(allWell, says) && !mended.MatchString(lower) && spoken(text) && len(QueryTerms(text)) >= minFinding
}

// tellsOfAChange reports whether a text in lower case says that something was changed: "the store now takes a lock",
// "for uploads, I just added a retry", "the lock has been moved".
func tellsOfAChange(lower string) bool {
	before, changed := "", false // the word before, and whether somebody or something has changed if a report follows
	for w := range strings.FieldsSeq(lower) {
		called := strings.HasSuffix(strings.TrimRight(w, `,.;:!"*`), "()") // now() is a function
		w = strings.Trim(w, `,.;:!()"*`)
		switch {
		case w == "now" && !called || changed && reports[w]:
			return true
		case w == "i" || w == "i've" || w == "been" && before == "has":
			changed = true
		case !fillers[w]:
			changed = false
		}
		before = w
	}
	return false
}

// correctionStandsAlone reports whether what a user corrected or asked for can be followed in another session.
func correctionStandsAlone(text string) bool {
	least := minCorrection
	if instructs(text) {
		least = minInstruction
	}
	return isWhole(strings.ToLower(text)) && !passes(text) && len(QueryTerms(text)) >= least
}

// ofTheMoment reports whether a call was refused for a reason that holds then only: it ran git or gh, without a commit, and
// the user stated nothing in general.
func ofTheMoment(reason, call string) bool {
	for command := range strings.SplitSeq(strings.TrimSuffix(call, ")"), "; ") {
		if !Anywhere(command) || command == "git commit" {
			return false
		}
	}
	return !instructs(reason)
}

// failedOnly matches an error that says no more than that something failed, such as "[lint] ERROR task failed", and a
// question, with which a user refused a call.
var failedOnly = regexp.MustCompile(`(?i)^(\[[^\]]*\]\s*)?((fail(ed|ure)?|error|fatal)\b[:.! ]*)?((the )?(task|build|tests?|command|script|lint|check) failed|exit (code|status) \d+)?[.!]?$|^fail\b.*\[(build|setup) failed\]$|\?$`)

// quoted matches a line that a tool quotes from a source file, and one of a log that reports no error.
var quoted = regexp.MustCompile(`^\d+ *[│|]|\b(WARN|WARNING|INFO|DEBUG)\b`)

// at matches the place in a file that an error names: upload.go:41, src/upload.ts(41,5), File "upload.py", line 41.
var at = regexp.MustCompile(`\w\.[a-z]\w*(:\d+|\(\d+,|", line \d+)`)

// server matches a host and its port, which look like a file and its line.
var server = regexp.MustCompile(`://[^/\s]+|\w\.(com|net|org|io|local|internal|lan|svc|test|example):\d+`)

// fixStandsAlone reports whether a fix says what was wrong, with the project: a git command fails because of its arguments or
// of the moment, unless it runs the project's hooks. An error at a line of a source file, such as one of a compiler, is gone with a
// change of files.
func fixStandsAlone(f *Fix) bool {
	if len(f.Changed) > 0 && at.MatchString(server.ReplaceAllString(f.Trouble, "")) {
		return false
	}
	failed := cmp.Or(f.Failed, f.Command)
	return !failedOnly.MatchString(f.Trouble) && !quoted.MatchString(f.Trouble) && (!Anywhere(failed) || failed == "git commit" || failed == "git push")
}

// isWhole reports whether a text in lower case neither asks, nor introduces, continues or announces something.
func isWhole(lower string) bool {
	return !asks(lower) && !strings.HasSuffix(lower, ":") && !strings.HasSuffix(lower, "：") && !strings.HasPrefix(lower, ",") && !strings.Contains(lower, "let me ")
}

var dashes = strings.NewReplacer(" - ", ": ", " – ", ": ", "—", ": ")

// clauses are the parts of a text between colons and dashes, as in "store.go: added a lock".
func clauses(text string) []string { return strings.Split(dashes.Replace(text), ": ") }

// firstWord is the first word of a clause that is not a filler.
func firstWord(clause string) string {
	for w := range strings.FieldsSeq(clause) {
		if w = strings.Trim(w, `,.;!()"*`); !fillers[w] {
			return w
		}
	}
	return ""
}
