package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nobody notices that a test was renamed: go test -run with a name that no test has succeeds.
func TestTheTestsInTheDocsExist(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	tests := map[string][]string{} // by folder
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w*)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllStringSubmatch(string(raw), -1) {
				tests[filepath.Dir(path)] = append(tests[filepath.Dir(path)], m[1])
			}
		}
		return nil
	}))
	// has tells whether a test in one of the folders below dir matches the pattern.
	has := func(dir, pattern string) bool {
		matches, err := regexp.Compile(pattern)
		require.NoError(t, err)
		for folder, names := range tests {
			if folder != dir && !strings.HasPrefix(folder, dir+string(filepath.Separator)) {
				continue
			}
			if slices.ContainsFunc(names, matches.MatchString) {
				return true
			}
		}
		return false
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	run := regexp.MustCompile("go test [^`\n#]*")
	chosen := regexp.MustCompile(`-(?:run|bench|fuzz) '?([\w^$]+)`)
	folder := regexp.MustCompile(`\./[\w/]+`)
	seen := 0
	for _, page := range pages(t) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range named.FindAllStringSubmatch(string(raw), -1) {
			seen++
			require.True(t, has(root, "^"+m[1]+"$"), "%s: there is no %s", page, m[1])
		}
		for _, command := range run.FindAllString(string(raw), -1) {
			for _, m := range chosen.FindAllStringSubmatch(command, -1) {
				if m[1] == "^$" || m[1] == "xxx" { // none, besides the benchmarks or the fuzz target
					continue
				}
				seen++
				require.True(t, has(filepath.Join(root, folder.FindString(command)), m[1]), "%s: no test matches %s", page, command)
			}
		}
	}
	require.Greater(t, seen, 80)
}
