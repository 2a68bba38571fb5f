package files

import (
	"path"
	"strings"
)

// DefaultExclusions are the patterns of temporary and generated files that a
// reader leaves out unless told otherwise. For [Excluded].
var DefaultExclusions = []string{
	"/tmp/**", "/private/tmp/**", "/var/tmp/**", "/var/folders/**", "/private/var/folders/**", "**/AppData/Local/Temp/**",
	"/dev/**", "/proc/**", "/sys/**",
	"**/node_modules/**", "**/.git/**", "**/.hg/**", "**/.svn/**",
	"**/__pycache__/**", "**/.venv/**", "**/site-packages/**", "**/.pytest_cache/**", "**/.mypy_cache/**", "**/.ruff_cache/**",
	"**/.next/**", "**/.nuxt/**", "**/.gradle/**", "**/.terraform/**", "**/.cache/**",
	"*.tmp", "*.temp", "*.swp", "*.swo", "?*~", "*.pyc", "*.pyo", "*.class", "*.o", "*.orig", "*.rej", ".DS_Store", "Thumbs.db",
	"*.min.js", "*.min.css", "*.js.map", "*.css.map",
}

// Excluded tells whether one of the patterns matches a normalised path.
//
// A pattern without a slash matches any one element of the path ("*.tmp",
// "__pycache__"), as in a .gitignore. One with a slash matches the whole path, where ** stands
// for any number of elements; it matches a folder's name as well as what lies in
// it ("/tmp/**" matches /tmp). *, ? and [a-z] do not cross a slash. The letters' case
// counts. An ill-formed pattern matches nothing.
func Excluded(p string, patterns []string) bool {
	if windows(p) {
		p = strings.ReplaceAll(p, `\`, "/")
	}
	elements := strings.Split(p, "/")
	for _, pattern := range patterns {
		if strings.Contains(pattern, "/") {
			if matchElements(strings.Split(pattern, "/"), elements) {
				return true
			}
			continue
		}
		for _, e := range elements {
			if matchElement(pattern, e) {
				return true
			}
		}
	}
	return false
}

// matchElements matches from the end to the start: ends[i] tells whether the
// patterns looked at so far match elements[i:]. The work is the product of the two
// lengths, however many ** there are.
func matchElements(patterns, elements []string) bool {
	n := len(elements)
	ends := make([]bool, n+1)
	ends[n] = true
	for k := len(patterns) - 1; k >= 0; k-- {
		next := make([]bool, n+1)
		for i := n; i >= 0; i-- {
			if patterns[k] == "**" {
				next[i] = ends[i] || i < n && next[i+1]
			} else {
				next[i] = i < n && ends[i+1] && matchElement(patterns[k], elements[i])
			}
		}
		ends = next
	}
	return ends[0]
}

func matchElement(pattern, element string) bool {
	ok, err := path.Match(pattern, element)
	return err == nil && ok
}
