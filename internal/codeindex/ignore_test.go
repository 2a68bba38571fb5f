package codeindex

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What git ignores, as git check-ignore says. A path that ends with a slash is a folder.
func TestPathsAreIgnoredAsByGit(t *testing.T) {
	t.Parallel()
	type list = []string
	for _, c := range []struct {
		lines         string
		ignored, kept list
	}{
		{"*.key", list{"a.key", "d/a.key"}, list{"a.keys", "key"}},
		{"/a.py", list{"a.py"}, list{"d/a.py"}},
		{"d/a.py", list{"d/a.py"}, list{"a.py", "e/d/a.py"}},
		{"build/", list{"build/", "d/build/"}, list{"build", "d/build"}},
		{"**/b", list{"b", "d/b", "d/e/b"}, list{"bb", "d/bb"}},
		{"d/**", list{"d/a", "d/e/a"}, list{"d", "a", "e/d/a"}},
		{"a/**/b", list{"a/b", "a/x/b", "a/x/y/b"}, list{"b", "a/bb", "x/a/b"}},
		{"a/**/b/**/c.py", list{"a/b/c.py", "a/x/b/b/y/c.py"}, list{"a/c.py", "a/x/c.py", "b/c.py"}},
		{"/*\n!/keep", list{"a", "d/"}, list{"keep", "d/a"}},
		{"*\n!*/\n!*.md", list{"a.py", "d/a.py"}, list{"d/", "a.md", "d/a.md"}}, // only documents, wherever they are
		{"a.py\n!a.py\na.py", list{"a.py"}, list{"b.py"}},
		{"a.yaml  \r\n", list{"a.yaml"}, list{"a.yaml  "}},
		{"a\\ ", list{"a "}, list{"a"}},
		{"# a\n\\#b\n\\!c", list{"#b", "!c"}, list{"a", "b", "c", "# a"}},
		{"[!ab].py\n[c-e]x", list{"c.py", "dx"}, list{"a.py", "b.py", "fx"}},
		{"[[:digit:]].py\n[![:alnum:]_]x\n[[:nothing:]]", list{"1.py", "-x"}, list{"a.py", "ax", "_x", "[.py", "n"}},
		{"*[-.]local\n[a-]b\n[]-]c\n[\\]]d\n[b-", list{"a.local", "a-local", "ab", "-b", "]c", "-c", "]d"}, list{"alocal", "bb", "b", "[b-"}},
		{"a**b*c", list{"abc", "axbxc"}, list{"ab", "a/bc"}},
		{"?.md\n??.py", list{"a.md", "é.py"}, list{"é.md", "a.py"}}, // git compares bytes
		{"a?.py", list{"ab.py"}, list{"a.py", "a/.py"}},
		{"[", nil, list{"a"}},
		{"\ufeffa.py", list{"a.py"}, list{"b.py"}},
		{"/\n!\n\n//\n!/", nil, list{"a", "b/"}},
		{"*a*a*a*a*a*a*a*b", nil, list{strings.Repeat("a", 200)}},
		{strings.Repeat("**/a/", 40) + "b", nil, list{strings.Repeat("a/", 80) + "c"}},
	} {
		file := filepath.Join(t.TempDir(), ".gitignore")
		require.NoError(t, os.WriteFile(file, []byte(c.lines), 0o600))
		patterns := readPatterns(nil, file, 0)
		is := func(path string) bool {
			name, folder := strings.CutSuffix(path, "/")
			return ignored(patterns, strings.Split(name, "/"), folder)
		}
		for _, path := range c.ignored {
			require.True(t, is(path), "%q: %q", c.lines, path)
		}
		for _, path := range c.kept {
			require.False(t, is(path), "%q: %q", c.lines, path)
		}
	}
}
