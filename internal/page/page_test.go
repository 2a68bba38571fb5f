package page

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T, path, etag string) *httptest.ResponseRecorder {
	t.Helper()
	handler, ok := Handlers()[path]
	require.True(t, ok, path)
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("If-None-Match", etag)
	w := httptest.NewRecorder()
	handler(w, r)
	return w
}

func TestThePageAllowsNoScriptOfAnotherPlace(t *testing.T) {
	var paths []string
	for path := range Handlers() {
		paths = append(paths, path)
		w := get(t, path, "")
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "require-trusted-types-for 'script'")
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.NotEmpty(t, w.Header().Get("Content-Type"))
	}
	slices.Sort(paths)
	require.Equal(t, []string{"/", "/page/app.js", "/page/icon.svg", "/page/style.css"}, paths)
	html := get(t, "/", "").Body.String()
	require.NotContains(t, html, "<script>")
	require.NotContains(t, html, "https://", "the page works offline")
	for _, path := range paths[1:] {
		require.Contains(t, html+get(t, "/page/style.css", "").Body.String(), path)
	}
}

func TestAnUnchangedFileIsNotSentAgain(t *testing.T) {
	etag := get(t, "/page/app.js", "").Header().Get("ETag")
	require.NotEmpty(t, etag)
	require.Equal(t, http.StatusNotModified, get(t, "/page/app.js", etag).Code)
	require.Equal(t, http.StatusOK, get(t, "/page/app.js", strings.Replace(etag, `"`, `"x`, 1)).Code)
}

func TestThePageIsSmall(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for path := range Handlers() {
		_, err := w.Write(get(t, path, "").Body.Bytes())
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	t.Logf("%d bytes with gzip", packed.Len())
	require.Less(t, packed.Len(), 60_000)
}
