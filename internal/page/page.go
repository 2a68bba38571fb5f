// Package page serves the inspector: a page that shows what mneme keeps and what an agent
// would see. The page is a client of the HTTP API like any other; it has no rights of its
// own, and everything it needs is embedded, so it works offline.
//
// The sources are in src. go generate bundles them into dist, which is committed, so that a
// build needs nothing but Go.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:generate go run ./bundle

//go:embed dist
var dist embed.FS

// Policy is the Content-Security-Policy of the page. What the page shows was written by
// agents, their tools and the web, so no text may ever become a script or an element:
// browsers with Trusted Types refuse every assignment to innerHTML and the like.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// Handlers returns a handler for each path of the page: "/" and the files below "/page/".
func Handlers() map[string]http.HandlerFunc {
	files, err := fs.ReadDir(dist, "dist")
	if err != nil {
		panic(err) // the folder is embedded
	}
	handlers := make(map[string]http.HandlerFunc, len(files))
	for _, f := range files {
		body, err := dist.ReadFile("dist/" + f.Name())
		if err != nil {
			panic(err)
		}
		at := "/page/" + f.Name()
		if f.Name() == "index.html" {
			at = "/"
		}
		handlers[at] = file(types[path.Ext(f.Name())], body)
	}
	return handlers
}

// file serves one file. Names never change, so browsers ask each time and compare the hash.
func file(contentType string, body []byte) http.HandlerFunc {
	hash := sha256.Sum256(body)
	etag := `"` + hex.EncodeToString(hash[:16]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", contentType)
		header.Set("Content-Security-Policy", Policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-cache")
		header.Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	}
}
