package extractive

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/summary"
)

func TestProgramsOfAScript(t *testing.T) {
	for script, want := range map[string][]string{
		"cd /w && go test ./... 2>&1 | tail -5":                {"go test"},
		"git -C /w status; git commit -m 'a; b' && git status": {"git status", "git commit"},
		"sudo /usr/bin/make -j2":                               {"make"},
		"echo $(npm run build) | grep -c x":                    {"grep", "npm run"},
		"cat > a.txt <<'E'\nrm -rf /\nE":                       nil,
		"$TOOL x; for f in a b; do gofmt -l $f; done":          {"gofmt"},
		"if (": nil,
		"python3 -c 'import os' && ./run.sh --fast && mkdir out": {"python3", "run.sh", "mkdir"},
	} {
		assert.ElementsMatch(t, want, programs(script), script)
	}
}

func TestACommandIsATextWordsOrAProgramAndACallCanHaveSeveral(t *testing.T) {
	for _, arguments := range []string{
		`{"command":"cd x && go test ./..."}`, `{"cmd":["bash","-lc","go test ./..."]}`, `{"commands":["go test ./..."]}`, `{"commands":[{"command":"go","args":["test"]},7]}`,
	} {
		done := tally{}
		done.call(summary.Entry{Name: "t", Text: arguments})
		assert.Equal(t, "Used t. Ran go test.", done.text(100), arguments)
	}
}

func TestReasonOfAFailure(t *testing.T) {
	for result, want := range map[string]string{
		"Exit code 1\n[lint] $ golangci-lint run\nmain.go:3:2: Error return value is not checked": "main.go:3:2: Error return value is not checked",
		"<tool_use_error>File does not exist.</tool_use_error>":                                   "File does not exist.",
		"The user doesn't want to proceed with this tool use. The tool use was rejected":          "rejected by the user",
		"The user rejected this tool call. User feedback: Only unit tests.":                       "rejected by the user",
		"[Operation Cancelled] Reason: User denied execution.":                                    "rejected by the user",
		"ERROR:\nno replacement was made":                                                         "ERROR: no replacement was made",
		"python reproduce_error.py\nTraceback (most recent call last):\nTypeError: bad mode":      "TypeError: bad mode",
		"\x1b[31mfatal: bad object\x1b[0m":                                                        "fatal: bad object",
		"Exit code 2":                                                                             "",
		"":                                                                                        "",
	} {
		assert.Equal(t, want, reasonOf(result), result)
	}
}

func TestActionsShowEachVerbBeforeMoreOfOne(t *testing.T) {
	done := tally{}
	for _, name := range []string{"a.go", "b.go", "c.go"} {
		done.add("Edited", name, 1)
		done.add("Read", name, 2)
	}
	assert.Equal(t, "Edited a.go, b.go, c.go. Read a.go (2), b.go (2), c.go (2).", done.text(100))
	assert.Equal(t, "Edited a.go and others. Read a.go (2) and others.", done.text(50))
	assert.Equal(t, "Edited a.go and others.", done.text(25))
	assert.Empty(t, done.text(10))
}

func TestShortenedListShowsNoCounts(t *testing.T) {
	done := tally{}
	assert.Empty(t, done.merge("Ran make (3), git log and others."))
	assert.Empty(t, done.merge("Ran git log (2)."))
	assert.Equal(t, "Ran make, git log and others.", done.text(100))
}

// What is written is parsed to the same tally, unless something was left out.
func TestActionsAreParsedBack(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringMatching(`[a-z_]{1,8}( [a-z]{1,8})?(\.go)?`),
		rapid.StringMatching(`"[a-z(). ]{0,12} \([0-9]\) Used, x"`),
	)
	rapid.Check(t, func(t *rapid.T) {
		done := tally{}
		for _, verb := range verbs {
			if verb == cameUp {
				continue // its counts are not written
			}
			for _, n := range rapid.SliceOfNDistinct(name, 0, most[verb], rapid.ID).Draw(t, verb) {
				done.add(verb, n, rapid.IntRange(1, 9).Draw(t, "count"))
			}
		}
		text := done.text(10_000)
		back := tally{}
		assert.Empty(t, back.merge(text))
		assert.Equal(t, text, back.text(10_000))
	})
}

func TestNamesThatCameUpOccurInThreeEntries(t *testing.T) {
	n := newNames()
	for entry := range 3 {
		n.read("call readAll_v2(x) and sha256Sum in pkg/read_all.go, see https://x.y/a_b/c_d and MDQ6VXNlcjM1MTkzNA", entry)
		n.read(`{"file_path": "x", "code": "openStore(), openStore()"} `+strings.Repeat("wordsAndWords", 5)+" deadbeef_1234", entry)
	}
	n.read("seenOnce", 3)
	done := tally{}
	n.into(done)
	assert.Equal(t, "Names that came up: readAll_v2, sha256Sum, openStore.", done.text(200))
}
