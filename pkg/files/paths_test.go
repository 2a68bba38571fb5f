package files

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestNormalise(t *testing.T) {
	for _, c := range []struct{ cwd, path, want string }{
		{"/w", "a.go", "/w/a.go"},
		{"/w/", "./x/../a.go", "/w/a.go"},
		{"/w", "../a.go", "/a.go"},
		{"/w", "/x//a/", "/x/a"},
		{"", "./a//b.go", "a/b.go"},
		{"", "../a", "../a"},
		{"relative", "a.go", "a.go"},
		{"/w", "~/a.go", "~/a.go"},
		{"~/w", "a.go", "~/w/a.go"},
		{"/w", "a b.go", "/w/a b.go"},
		{"/w", `C:\x\..\a.go`, `C:\a.go`},
		{`C:\w`, `sub\a.go`, `C:\w\sub\a.go`},
		{`C:\w`, `sub/a.go`, `C:\w\sub\a.go`},
		{"/w", `C:/x/a.go`, `C:\x\a.go`},
		{"", `\\host\share\a.go`, `\\host\share\a.go`},
		{"/w", `odd\name`, `/w/odd\name`},
		{"/w", "https://example.org/a.go", ""},
		{"/w", "file:///a.go", ""},
		{"/w", "git+ssh://h/a", ""},
		{"/w", "a:b", "/w/a:b"},
		{"/w", "", ""},
		{"/w", " \t", ""},
		{"/w", "a\nb", ""},
		{"/w", "a\x00", ""},
		{"/w", "\xff", ""},
		{"/w", strings.Repeat("a", MaxPathBytes), ""},
	} {
		assert.Equal(t, c.want, Normalise(c.cwd, c.path), "%q in %q", c.path, c.cwd)
	}
}

// staysHome reports whether a path stays in the home directory. One that leaves it, as ~/../a does, becomes a relative
// path, and read models hold such paths.
func staysHome(path string) bool {
	return !strings.HasPrefix(path, "~") || !strings.Contains(path, "..")
}

func TestSplit(t *testing.T) {
	for p, want := range map[string][2]string{
		"/w/pkg/x.go": {"/w/pkg", "x.go"}, "/x.go": {"/", "x.go"}, "x.go": {".", "x.go"}, "~/x.go": {"~", "x.go"}, "/": {"/", "/"},
		`C:\w\pkg\x.go`: {`C:\w\pkg`, "x.go"}, `c:\x.go`: {`c:\`, "x.go"}, `\\host\share\x.go`: {`\\host\share`, "x.go"},
	} {
		folder, name := Split(p)
		assert.Equal(t, want, [2]string{folder, name}, p)
	}
}

func TestNormaliseIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.StringOfN(rapid.SampledFrom([]rune(`ab./\~: C`)), 0, 24, -1).Filter(staysHome).Draw(t, "path")
		once := Normalise("/w", path)
		assert.Equal(t, once, Normalise("/w", once))
		assert.Equal(t, once, Normalise("/elsewhere", once), "an absolute path does not depend on the folder")
	})
}

func TestExcluded(t *testing.T) {
	for path, want := range map[string]bool{
		"/w/node_modules/x/index.js": true,
		"node_modules/x.js":          true,
		"/w/my_node_modules/x.js":    false,
		"/tmp/a.go":                  true,
		"/tmp":                       true,
		"/w/tmp/a.go":                false,
		"/w/a.tmp":                   true,
		"/w/__pycache__/a.py":        true,
		"/w/.git/HEAD":               true,
		"/w/.gitignore":              false,
		"/w/a.go~":                   true,
		"~/notes.md":                 false,
		`C:\w\node_modules\a.js`:     true,
		"/w/src/main.go":             false,
		"":                           false,
	} {
		assert.Equal(t, want, Exclude(DefaultExclusions)(path), path)
	}
}

func TestFilesOfTheWorkingDirectoryAreNotTemporaryBecauseItIs(t *testing.T) {
	for path, want := range map[string]bool{
		"/tmp/clone/main.go":               false,
		"/tmp/clone/node_modules/x.js":     true,
		"/tmp/clone2/main.go":              true,
		"/tmp/clone":                       true,
		"/tmp/scratch.txt":                 true,
		"/w/a.go":                          false,
		"/tmp/clone/tmp/a.go":              false,
		"/tmp/clone/.cache/go/pkg/mod/a.c": true,
	} {
		assert.Equal(t, want, ExcludeOutside("/tmp/clone", Exclude(DefaultExclusions))(path), path)
	}
	inWindows := ExcludeOutside(`C:\Users\x\AppData\Local\Temp\clone`, Exclude(DefaultExclusions))
	assert.False(t, inWindows(`C:\Users\x\AppData\Local\Temp\clone\a.go`))
	assert.True(t, inWindows(`C:\Users\x\AppData\Local\Temp\b.go`))
	assert.False(t, ExcludeOutside("C:/Users/x/AppData/Local/Temp/clone", Exclude(DefaultExclusions))(`C:\Users\x\AppData\Local\Temp\clone\a.go`))
	for _, cwd := range []string{"/tmp/clone/", "/tmp/clone/."} {
		assert.False(t, ExcludeOutside(cwd, Exclude(DefaultExclusions))("/tmp/clone/a.go"), cwd)
	}
	for _, cwd := range []string{"", "/w"} {
		assert.True(t, ExcludeOutside(cwd, Exclude(DefaultExclusions))("/tmp/a.go"), cwd)
	}
}

func TestExclusionPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"build", "/w/build/a.o", true}, // one element, anywhere
		{"/w/*.go", "/w/a.go", true},
		{"/w/*.go", "/w/x/a.go", false},
		{"/w/**/a.go", "/w/a.go", true},
		{"/w/**/a.go", "/w/x/y/a.go", true},
		{"**/x/**/y/**", "/w/x/1/2/y/z", true},
		{"src/[ab].go", "src/a.go", true},
		{"[", "/w/[", false},
		{"", "/w", true}, // the element before the first slash
		{"/w/**", "/w", true},
		{"/w/**", "/x/w/a.go", false},
		{"/w/x", "/w", false},
		{"/w", "/w/x", false},
		{"a*[b-d]", "/w/a.c", true},
		{"a*[b-d]", "/w/a.e", false},
		{`?\*`, "/w/a*", true},
		{`?\*`, "/w/ab", false},
		{"?*é", "/w/café", true},
		{"?*é", "/w/cafe", false},
	} {
		assert.Equal(t, c.want, Exclude([]string{c.pattern})(c.path), "%s on %s", c.pattern, c.path)
	}
	assert.False(t, Exclude(nil)("/w/a.go"))
}

func TestManyStarsMatchQuickly(t *testing.T) {
	assert.False(t, Exclude([]string{strings.Repeat("**/a/", 50) + "c"})(strings.Repeat("a/", 500)+"b"))
}
