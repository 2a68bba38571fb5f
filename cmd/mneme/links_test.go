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

	"mneme.dev/mneme/internal/help"
)

var (
	fence  = regexp.MustCompile("(?ms)^```.*?^```")
	inline = regexp.MustCompile("`[^`\n]*`")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

func TestTheLinksInTheDocsLeadSomewhere(t *testing.T) {
	t.Parallel()
	anchors := map[string][]string{} // by page
	of := func(page string) []string {
		if _, ok := anchors[page]; !ok {
			anchors[page] = []string{}
			raw, err := os.ReadFile(page)
			if err != nil { // a folder
				return nil
			}
			for _, m := range title.FindAllStringSubmatch(fence.ReplaceAllString(string(raw), ""), -1) {
				anchors[page] = append(anchors[page], help.Section(m[1]))
			}
		}
		return anchors[page]
	}
	seen := 0
	for _, page := range pages(t) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		text := inline.ReplaceAllString(fence.ReplaceAllString(string(raw), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, section, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			seen++
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			} else if section != "" && !slices.Contains(of(target), section) {
				t.Errorf("%s: %s has no such section", page, m[1])
			}
		}
	}
	require.Greater(t, seen, 200)
}

func TestPagesAreShortEnoughToRead(t *testing.T) {
	t.Parallel()
	const most = 200
	for _, page := range pages(t) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		lines := strings.Count(string(raw), "\n")
		require.LessOrEqual(t, lines, most, "%s: move a topic to a page of its own, and link it from docs/README.md", page)
	}
}

// pages returns all pages that people read.
func pages(t *testing.T) (list []string) {
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() && name == "examples" && filepath.Base(filepath.Dir(path)) == "docs" {
			return filepath.SkipDir // recorded texts, with links of their own
		}
		if strings.HasSuffix(name, ".md") {
			list = append(list, path)
		}
		return nil
	}))
	return list
}
