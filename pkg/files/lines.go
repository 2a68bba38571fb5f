package files

import (
	"regexp"
	"slices"
	"strings"
)

// extract maps each form to the function that finds paths in a result's text. The functions
// stop at maxFound paths.
var extract = map[Form]func(string) []string{
	FormHits:  hitPaths,
	FormPaths: linePaths,
	FormNames: namePaths,
	FormView:  viewPaths,
}

// maxFound is larger than MaxAccesses because many hits are in the same file.
const maxFound = 20 * MaxAccesses

var (
	foundFiles  = regexp.MustCompile(`^Found \d+ files?\b[^:]*$`) // then one path per line
	numbered    = regexp.MustCompile(`^\s*(?:Line )?\d+\s*[|:]`)  // a line of a file, below the file's name
	contextMark = regexp.MustCompile(`-\d+-`)
	openHead    = regexp.MustCompile(`^\[File: (.+) \(\d+ lines total\)\]$`)
	listedName  = regexp.MustCompile(`^\s*\[(?:FILE|DIR|file|dir)\] (.+)$`)
	sizeSuffix  = regexp.MustCompile(` \([\d.]+ ?(?:bytes|[KMG]?B)\)$`)
	viewHead    = regexp.MustCompile(`^Here's the files and directories up to \d+ levels deep in (.+?)(?:, excluding hidden items)?:$`)
)

// hitPaths understands these ways in which search tools name files:
//
//	a.go:12: text                  grep, rg, most agents
//	Found 2 files\na.go\nb.go      Claude Code without content
//	File: a.go\nL12: text          Gemini CLI
//	a.go:\n  Line 12: text         OpenCode, language servers
//	# a.go\n 12 | text             Roo
//	a.go\n│----                    Cline
//
// Context lines ("a.go-11-text") are left out because their file also has a hit.
func hitPaths(text string) []string {
	lines := splitLines(text)
	var found []string
	names, single := false, slices.ContainsFunc(lines, func(line string) bool { return afterNumber(line, ":") })
	for i, line := range lines {
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		switch path, hit := hitPath(line); {
		case single && afterNumber(line, ":-"): // the call names the file
		case strings.HasPrefix(line, "Found ") && foundFiles.MatchString(line):
			names = true
		case hit:
			found = appendPath(found, path)
		case strings.HasPrefix(line, "File: "):
			found = appendPath(found, line[len("File: "):])
		case strings.HasSuffix(line, ":") && numbered.MatchString(next):
			found = appendPath(found, line[:len(line)-1])
		case strings.HasPrefix(line, "# ") && numbered.MatchString(next):
			found = appendPath(found, line[len("# "):])
		case strings.HasPrefix(next, "│"):
			found = appendPath(found, line)
		case names:
			found = appendPath(found, line)
		}
		if len(found) >= maxFound {
			break
		}
	}
	return withoutContext(found)
}

// hitPath returns the path of a hit: "a.go:12: text", or "a.go:3" in a count. It runs for
// every line of a search, where a regular expression took most of the time.
func hitPath(line string) (path string, hit bool) {
	drive := 0
	if windows(line) && line[1] == ':' {
		drive = len("C:")
	}
	path, rest, found := strings.Cut(line[drive:], ":")
	if !found || path == "" || strings.TrimLeft(path[:1], " \t\r\f") == "" {
		return "", false
	}
	number := strings.TrimLeft(rest, "0123456789")
	return line[:drive+len(path)], len(number) < len(rest) && (number == "" || number[0] == ':')
}

// afterNumber reports whether a line is a number followed by one of these marks: a hit
// without a path, or its context, from a search in one file.
func afterNumber(line, marks string) bool {
	rest := strings.TrimLeft(line, "0123456789")
	return len(rest) < len(line) && rest != "" && strings.IndexByte(marks, rest[0]) >= 0
}

// withoutContext drops false paths from context lines whose text looks like a hit:
// "a.go-11-see b.go:7: text".
func withoutContext(found []string) []string {
	hits := map[string]bool{}
	for _, p := range found {
		hits[p] = true
	}
	kept := found[:0]
	for _, p := range found {
		isContext := false
		for _, at := range contextMark.FindAllStringIndex(p, -1) {
			isContext = isContext || hits[p[:at[0]]]
		}
		if !isContext {
			kept = append(kept, p)
		}
	}
	return kept
}

// linePaths reads one path per line.
func linePaths(text string) []string {
	var found []string
	for _, line := range splitLines(text) {
		if !strings.HasSuffix(line, ":") { // a heading
			found = appendPath(found, line)
		}
		if len(found) >= maxFound {
			break
		}
	}
	return found
}

// namePaths reads a listing. A bare word may be a file without extension (Makefile) or a
// remark (empty), so bare words count only if they look like paths; names marked [FILE] or
// [DIR] always count.
func namePaths(text string) []string {
	var found []string
	for _, line := range splitLines(text) {
		if m := listedName.FindStringSubmatch(line); m != nil {
			found = append(found, sizeSuffix.ReplaceAllString(m[1], ""))
		} else if !strings.HasSuffix(line, ":") {
			found = appendPath(found, sizeSuffix.ReplaceAllString(line, ""))
		}
		if len(found) >= maxFound {
			break
		}
	}
	return found
}

// viewPaths reads the listing that OpenHands prints when it views a folder. The text of a
// file gives nothing.
func viewPaths(text string) []string {
	lines := splitLines(text)
	if len(lines) > 0 && lines[0] == "OBSERVATION:" {
		lines = lines[1:]
	}
	if len(lines) == 0 {
		return nil
	}
	head := viewHead.FindStringSubmatch(lines[0])
	if head == nil {
		return nil
	}
	found := []string{head[1]}
	for _, line := range lines[1:min(len(lines), maxFound)] {
		if strings.HasPrefix(line, head[1]) {
			found = append(found, line)
		}
	}
	return found
}

// openedFile returns the file that SWE-agent reports as open, in the first lines of a
// result.
func openedFile(text string) string {
	if len(text) > 4*MaxPathBytes {
		text = text[:4*MaxPathBytes]
	}
	for _, line := range splitLines(text) {
		if m := openHead.FindStringSubmatch(line); m != nil && rooted(m[1]) {
			return m[1]
		}
	}
	return ""
}

func splitLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// appendPath appends a line that looks like a path: it has a dot or a slash, no space or
// quote at either end, is not just a number, and has none of the characters that are common
// in text but rare in paths.
func appendPath(found []string, p string) []string {
	switch {
	case p == "" || len(p) > MaxPathBytes || strings.TrimSpace(p) != p:
	case !strings.ContainsAny(p, `./\`) || strings.Trim(p, "0123456789.-/ ") == "":
	case strings.ContainsAny(p, "\"'`<>|{}=;*?\t"):
	case strings.HasSuffix(p, ".") || strings.HasPrefix(p, "[") && !strings.Contains(p, "]/") || strings.HasPrefix(p, "("):
	case len(found) > 0 && found[len(found)-1] == p:
	default:
		return append(found, p)
	}
	return found
}
