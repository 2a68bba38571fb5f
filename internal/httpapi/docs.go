package httpapi

import (
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"path"

	"github.com/swaggest/swgui/v5/static"

	"mneme.dev/mneme/internal/help"
	"mneme.dev/mneme/internal/page"
)

//go:embed docs
var docs embed.FS

// docsPolicy keeps the API's documentation page from loading anything from other hosts
// and from running inline scripts.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveDocs serves the API's documentation page with everything it needs. The viewer is
// Swagger UI from the module swgui.
func serveDocs(mux *http.ServeMux) {
	for file, contentType := range map[string]string{
		"index.html": "text/html; charset=utf-8", "start.js": "text/javascript; charset=utf-8",
		"swagger-ui.css.gz": "text/css; charset=utf-8", "swagger-ui-bundle.js.gz": "text/javascript; charset=utf-8",
	} {
		name, packed := file, path.Ext(file) == ".gz"
		if packed {
			name = file[:len(file)-len(".gz")]
		}
		route := "/docs/" + name
		if name == "index.html" {
			route = "/docs"
		}
		public(mux, route, func(w http.ResponseWriter, _ *http.Request) {
			header := w.Header()
			header.Set("Content-Type", contentType)
			header.Set("Content-Security-Policy", docsPolicy)
			header.Set("X-Content-Type-Options", "nosniff")
			header.Set("Referrer-Policy", "no-referrer")
			header.Set("Cache-Control", "no-cache")
			if err := copyDoc(w, file, packed); err != nil {
				panic(http.ErrAbortHandler) // the client is gone; the embedded files can't be the cause
			}
		})
	}
}

// copyDoc writes a file of the page. It decompresses compressed files, because not every
// client accepts them; for clients that do, the middleware compresses them again.
func copyDoc(w io.Writer, file string, packed bool) error {
	if !packed {
		body, err := docs.ReadFile("docs/" + file)
		if err != nil {
			return err
		}
		_, err = w.Write(body)
		return err
	}
	in, err := static.FS.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, unpacked)
	return err
}

// servePage serves the inspector page, and nothing else below "/".
func servePage(mux *http.ServeMux) {
	for path, handler := range page.Handlers() {
		public(mux, path, handler)
	}
}

// serveHelp serves the documentation of this version.
func serveHelp(mux *http.ServeMux) {
	handler := help.Handler()
	for _, path := range []string{help.Root, help.Root + "/"} {
		public(mux, path, handler.ServeHTTP)
	}
}
