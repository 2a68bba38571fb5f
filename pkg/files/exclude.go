package files

import (
	"path"
	"slices"
	"strings"
)

// DefaultExclusions are the patterns of temporary and generated files that a
// reader leaves out unless told otherwise. For [Exclude].
var DefaultExclusions = []string{
	"/tmp/**", "/private/tmp/**", "/var/tmp/**", "/var/folders/**", "/private/var/folders/**", "**/AppData/Local/Temp/**",
	"/dev/**", "/proc/**", "/sys/**",
	"node_modules", ".git", ".hg", ".svn",
	"__pycache__", ".venv", "site-packages", ".pytest_cache", ".mypy_cache", ".ruff_cache",
	".next", ".nuxt", ".gradle", ".terraform", ".cache",
	"*.tmp", "*.temp", "*.swp", "*.swo", "?*~", "*.pyc", "*.pyo", "*.class", "*.o", "*.orig", "*.rej", ".DS_Store", "Thumbs.db",
	"*.min.js", "*.min.css", "*.js.map", "*.css.map",
}

// Exclude makes a test whether one of the patterns matches a normalised path. It
// is safe for concurrent use.
//
// A pattern without a slash matches any one element of the path ("*.tmp",
// "__pycache__"), as in a .gitignore. One with a slash matches the whole path, where ** stands
// for any number of elements; it matches a folder's name as well as what lies in
// it ("/tmp/**" matches /tmp). *, ? and [a-z] do not cross a slash. The letters' case
// counts. An ill-formed pattern matches nothing.
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

// names are the patterns of one element, by how much work it is to match them: a
// context matches hundreds of paths.
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
	literal bool // stands for itself
}

func newElement(pattern string) element {
	return element{pattern, !strings.ContainsAny(pattern, `*?[\`)}
}

func (e element) match(name string) bool {
	if e.literal {
		return e.pattern == name
	}
	ok, err := path.Match(e.pattern, name)
	return err == nil && ok
}

// matchElements matches from the end to the start: ends[i] tells whether the
// patterns looked at so far match elements[i:]. The work is the product of the two
// lengths, however many ** there are. room is for twice as many as there are elements
// and two.
func matchElements(patterns []element, elements []string, room []bool) bool {
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
