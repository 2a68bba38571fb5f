package help

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/docs"
)

func get(t *testing.T, path string) (int, http.Header, string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Code, w.Header(), w.Body.String()
}

func TestEveryPageIsServedAndItsLinksLeadToPages(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	seen := 0
	var visit func(path string)
	visited := map[string]bool{}
	visit = func(path string) {
		if visited[path] {
			return
		}
		visited[path] = true
		code, header, body := get(t, path)
		require.Equal(t, http.StatusOK, code, path)
		require.Equal(t, Policy, header.Get("Content-Security-Policy"))
		if !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			return
		}
		require.NotContains(t, body, "<script")
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			to, section, _ := strings.Cut(m[1], "#")
			if to == "" {
				to = path
			}
			if to != Root && !strings.HasPrefix(to, Root+"/") {
				require.True(t, to == "/" || to == "/docs" || strings.Contains(to, "://"), "%s links to %s", path, m[1])
				continue
			}
			seen++
			visit(to)
			if section != "" {
				_, _, target := get(t, to)
				require.Contains(t, target, `id="`+section+`"`, "%s links to %s", path, m[1])
			}
		}
	}
	visit(Root)
	require.Greater(t, seen, 100)
	require.NoError(t, fs.WalkDir(docs.Files, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".md") {
			require.True(t, visited[strings.TrimSuffix(Root+"/"+nameOf(file), "/")], "nothing links to %s", file)
		}
		return err
	}))
}

func TestPagesAreFoundByTheirWords(t *testing.T) {
	t.Parallel()
	_, _, body := get(t, Root+"?q=erasure+tombstone")
	require.Contains(t, body, `href="/help/adr/0023-erasure"`)
	_, _, body = get(t, Root+"?q=MNEME_LLM_KEY")
	require.Contains(t, body, `href="/help/settings/summarizer"`)
	code, _, body := get(t, Root+"?q=nothing-has-this-word")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "0 pages found")
	for _, odd := range []string{"%00", "%3Cscript%3E", strings.Repeat("a+", 5_000), "%F0%9F%98%80", "%FF", "%C4%B0"} {
		code, _, body := get(t, Root+"?q="+odd)
		require.Equal(t, http.StatusOK, code)
		require.NotContains(t, body, "<script")
	}
}

func TestUnknownPagesAreNotFound(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/help/nothing": 404, "/help/images/nothing.png": 404, "/help/images/..%2fdocs.go": 400, "/help/%2e%2e%2fdocs": 404,
		"/help/settings.md": 301, "/help/": 301, "/help/settings/": 301,
	} {
		code, header, _ := get(t, path)
		require.Equal(t, want, code, path)
		require.False(t, strings.HasPrefix(header.Get("Location"), "//"), path)
	}
}
