package files

import (
	"path"
	"slices"
	"strings"
)

// DefaultExclusions are patterns of temporary and generated files that readers leave out by
// default, for [Exclude].
var DefaultExclusions = []string{
	"/tmp/**", "/private/tmp/**", "/var/tmp/**", "/var/folders/**", "/private/var/folders/**", "**/AppData/Local/Temp/**",
	"/dev/**", "/proc/**", "/sys/**",
	"node_modules", ".git", ".hg", ".svn",
	"__pycache__", ".venv", "site-packages", ".pytest_cache", ".mypy_cache", ".ruff_cache",
	".next", ".nuxt", ".gradle", ".terraform", ".cache",
	"*.tmp", "*.temp", "*.swp", "*.swo", "?*~", "*.pyc", "*.pyo", "*.class", "*.o", "*.orig", "*.rej", ".DS_Store", "Thumbs.db",
	"*.min.js", "*.min.css", "*.js.map", "*.css.map",
}

// Exclude returns a function that reports whether a normalized path matches one of the
// patterns. The function is safe for concurrent use.
//
// A pattern without a slash matches any single element of the path ("*.tmp",
// "__pycache__"), as in a .gitignore. A pattern with a slash matches the whole path; **
// stands for any number of elements and also for none ("/tmp/**" matches /tmp). *, ? and
// [a-z] do not match a slash. Case matters. A malformed pattern matches nothing.
func Exclude(patterns []string) func(path string) bool {
	var whole [][]element
	single := names{literal: map[string]bool{}}
	for _, pattern := range patterns {
		if !strings.Contains(pattern, "/") {
			single.add(pattern)
			continue
		}
		var elements []element
		for part := range strings.SplitSeq(pattern, "/") {
			elements = append(elements, newElement(part))
		}
		whole = append(whole, elements)
	}
	return func(p string) bool {
		if windows(p) {
			p = strings.ReplaceAll(p, `\`, "/")
		}
		elements := strings.Split(p, "/")
		if slices.ContainsFunc(elements, single.match) {
			return true
		}
		room := make([]bool, 2*(len(elements)+1))
		return slices.ContainsFunc(whole, func(pattern []element) bool { return matchElements(pattern, elements, room) })
	}
}

// ExcludeOutside returns excluded for a conversation that works in the folder cwd. If excluded matches that folder itself,
// such as a clone below /tmp, the files in it are what the work is about: only their paths below cwd count.
func ExcludeOutside(cwd string, excluded func(path string) bool) func(path string) bool {
	if cwd = Normalise("", cwd); cwd == "" || !excluded(cwd) {
		return excluded
	}
	return func(p string) bool {
		if rest, ok := strings.CutPrefix(p, cwd); ok && rest != "" && (rest[0] == '/' || rest[0] == '\\') {
			return excluded(rest[1:])
		}
		return excluded(p)
	}
}

// names holds the one-element patterns, grouped by how cheap they are to match, because a
// context tests hundreds of paths.
type names struct {
	literal  map[string]bool
	suffixes []string // of patterns such as *.tmp
	others   []element
}

func (n *names) add(pattern string) {
	e := newElement(pattern)
	suffix, star := strings.CutPrefix(pattern, "*")
	switch {
	case e.literal:
		n.literal[pattern] = true
	case star && newElement(suffix).literal:
		n.suffixes = append(n.suffixes, suffix)
	default:
		n.others = append(n.others, e)
	}
}

func (n *names) match(name string) bool {
	return n.literal[name] ||
		slices.ContainsFunc(n.suffixes, func(s string) bool { return strings.HasSuffix(name, s) }) ||
		slices.ContainsFunc(n.others, func(e element) bool { return e.match(name) })
}

// element is one element of a pattern.
type element struct {
	pattern string
	literal bool   // has no special characters
	end     string // what every name that matches ends with, at most one byte
}

func newElement(pattern string) element {
	e := element{pattern: pattern, literal: !strings.ContainsAny(pattern, `*?[\`)}
	if end := pattern[max(0, len(pattern)-1):]; end != "*" && end != "?" && end != "]" {
		e.end = end
	}
	return e
}

func (e element) match(name string) bool {
	if e.literal {
		return e.pattern == name
	}
	if !strings.HasSuffix(name, e.end) { // so most names need no path.Match
		return false
	}
	ok, err := path.Match(e.pattern, name)
	return err == nil && ok
}

// matchElements matches from end to start: ends[i] says whether the patterns seen so far
// match elements[i:]. The work is the product of both lengths, no matter how many ** there
// are. room needs 2*(len(elements)+1) entries.
func matchElements(patterns []element, elements []string, room []bool) bool {
	for len(patterns) > 0 && patterns[0].literal { // most patterns say how a path begins, and most paths begin otherwise
		if len(elements) == 0 || elements[0] != patterns[0].pattern {
			return false
		}
		patterns, elements = patterns[1:], elements[1:]
	}
	n := len(elements)
	ends, next := room[:n+1], room[n+1:]
	clear(ends)
	ends[n] = true
	for k := len(patterns) - 1; k >= 0; k-- {
		for i := n; i >= 0; i-- {
			if patterns[k].pattern == "**" {
				next[i] = ends[i] || i < n && next[i+1]
			} else {
				next[i] = i < n && ends[i+1] && patterns[k].match(elements[i])
			}
		}
		ends, next = next, ends
	}
	return ends[0]
}
