package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefinitionNames(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"func Save() {": "Save",
		"func (s *Store) Save(ctx Context) error":  "Save",
		"type Store struct {":                      "Store",
		"    def save(self):":                      "save",
		"export default class Store extends Base":  "Store",
		"export async function save(a) {":          "save",
		"pub(crate) fn save<'a>(x: &'a str) {":     "save",
		"    public static class Store {":          "Store",
		"fun save(a: Int) = 1":                     "save",
		"return func() error { return nil }":       "",
		"// func Save is no definition":            "",
		"if typed := x.(type); typed != nil {":     "",
		"the function of this line is to be prose": "",
	} {
		got := ""
		if m := definition.FindStringSubmatch(line); m != nil {
			got = m[1]
		}
		require.Equal(t, want, got, line)
	}
}

// know gives a planner whole files, as if it had read them.
func know(question string, files map[string]string) *planner {
	p := newPlanner(question, &toolbox{})
	for file, text := range files {
		for i, line := range strings.Split(text, "\n") {
			p.learnLine(file, i+1, line)
		}
	}
	return p
}

func TestRankPrefers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"two words to one", map[string]string{"a.go": "lantern", "b.go": "lantern, painted"}, "b.go:1"},
		{"both on a line to both in a file", map[string]string{"a.go": "lantern\n\n\n\n\n\npainted", "b.go": "lantern, painted"}, "b.go:1"},
		{"near to far", map[string]string{"a.go": "lantern\n\n\n\n\n\n\npainted", "b.go": "lantern\n\npainted"}, "b.go:1"},
		{"code to its test", map[string]string{"a_test.go": "lantern, painted", "b.go": "lantern, painted"}, "b.go:1"},
		{"code to prose", map[string]string{"README.md": "lantern, painted", "b.go": "lantern, painted"}, "b.go:1"},
		{"a definition", map[string]string{"a.go": "paintLantern()", "b.go": "func paintLantern() {"}, "b.go:1"},
		{"code to a comment", map[string]string{"a.go": "// lantern, painted", "b.go": "lantern, painted"}, "b.go:1"},
		{"a line to one that holds everything", map[string]string{"a.go": "lantern, painted" + strings.Repeat(", and more", 20), "b.go": "lantern, painted"}, "b.go:1"},
		{"the first name among equals", map[string]string{"b.go": "lantern, painted", "a.go": "lantern, painted"}, "a.go:1"},
		{"an answer to the question", map[string]string{"a.go": "// ask: " + question, "b.go": "lantern"}, "b.go:1"},
		{"the rare word", map[string]string{"a.go": "lantern", "b.go": "lantern", "c.go": "lantern", "d.go": "painted"}, "d.go:1"},
	} {
		best := know(question, c.files).rank(1, 1)
		require.Len(t, best, 1, c.name)
		require.Equal(t, c.want, best[0].String(), c.name)
	}
}

func TestRankSpreadsPlaces(t *testing.T) {
	t.Parallel()
	p := know(question, map[string]string{
		"a.go": strings.Repeat("lantern, painted\n", 20),
		"b.go": "lantern",
	})
	var got []string
	for _, place := range p.rank(2, 5) {
		got = append(got, place.String())
	}
	require.Equal(t, []string{"a.go:1", "a.go:5", "b.go:1"}, got)
}

func TestEnclosing(t *testing.T) {
	t.Parallel()
	p := know(question, map[string]string{
		"a.go": "package a\n\n// Save keeps\n// the lantern.\nfunc Save() {\n\tif true {\n\n\t\tlantern()\n\t}\n}\n\nvar lantern = 1",
		"a.py": "class Store:\n    def save(self):\n        lantern\n    lantern = 1\nlantern",
	})
	for _, c := range []struct {
		file string
		line int
		want string
	}{
		{"a.go", 3, "Save"}, {"a.go", 5, "Save"}, {"a.go", 8, "Save"}, {"a.go", 12, ""},
		{"a.py", 3, "save"}, {"a.py", 4, "Store"}, {"a.py", 5, ""}, {"none", 1, ""},
	} {
		require.Equal(t, c.want, p.enclosing(c.file, c.line), "%s:%d", c.file, c.line)
	}
}
