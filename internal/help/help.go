// Package help serves the documentation of the program's own version as web pages. They need no
// network, no script and no rights, because they hold only what the source holds.
package help

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"mneme.dev/mneme/docs"
)

// Policy is the Content-Security-Policy of the pages.
const Policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Root is the path below which the pages are. A page docs/NAME.md is at Root/NAME, the index at Root.
const Root = "/help"

//go:embed page.html help.css
var chrome embed.FS

var layout = template.Must(template.ParseFS(chrome, "page.html"))

// shown is what the layout needs to know about a page.
type shown struct {
	Title string
	Query string
	Body  template.HTML // made from the embedded Markdown only
	Found []found
}

// found is a page that a search found.
type found struct{ Link, Title, Text string }

// book is all pages by name, without .md; "" is the index.
type book struct {
	names []string
	pages map[string]*page
}

var open = sync.OnceValue(func() *book {
	b := &book{pages: map[string]*page{}}
	err := fs.WalkDir(docs.Files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".md" {
			return err
		}
		source, err := docs.Files.ReadFile(file)
		if err != nil {
			return err
		}
		b.add(nameOf(file), newPage(file, source))
		return nil
	})
	if err != nil {
		panic(err) // the files are embedded
	}
	for _, folder := range []string{"adr", "examples"} { // folders that have no page of their own
		b.add(folder, b.list(folder))
	}
	return b
})

// nameOf returns the name of the page that a file makes.
func nameOf(file string) string {
	if file == "README.md" {
		return ""
	}
	return strings.TrimSuffix(file, ".md")
}

func (b *book) add(name string, p *page) {
	b.names = append(b.names, name)
	b.pages[name] = p
}

// list makes a page that lists the pages of a folder.
func (b *book) list(folder string) *page {
	titles := map[string]string{"adr": "Decisions", "examples": "Examples of contexts"}
	source := "# " + titles[folder] + "\n\n"
	for _, name := range b.names {
		if strings.HasPrefix(name, folder+"/") {
			source += fmt.Sprintf("- [%s](%s.md)\n", b.pages[name].title, name)
		}
	}
	return newPage("README.md", []byte(source))
}

// Handler serves the pages, at Root and below.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Root, index)
	mux.HandleFunc("GET "+Root+"/{name...}", named)
	mux.HandleFunc("GET "+Root+"/images/{file}", picture)
	mux.HandleFunc("GET "+Root+"/help.css", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, chrome, "help.css") })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", Policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

func picture(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, docs.Files, "images/"+path.Base(r.PathValue("file")))
}

func index(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query().Get("q")
	if strings.TrimSpace(query) == "" {
		write(w, http.StatusOK, open().pages[""].shown())
		return
	}
	hits := open().search(query)
	title := fmt.Sprintf("%d pages found", len(hits))
	if len(hits) == 1 {
		title = "1 page found"
	}
	write(w, http.StatusOK, shown{Title: title, Query: query, Found: hits})
}

func named(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if short := strings.TrimSuffix(strings.Trim(name, "/"), ".md"); short != name || name == "" {
		http.Redirect(w, r, (&url.URL{Path: strings.TrimSuffix(Root+"/"+short, "/")}).String(), http.StatusMovedPermanently)
		return
	}
	if p, ok := open().pages[name]; ok {
		write(w, http.StatusOK, p.shown())
		return
	}
	write(w, http.StatusNotFound, shown{Title: "There is no such page", Found: []found{{Link: Root, Title: "All pages"}}})
}

func write(w http.ResponseWriter, status int, s shown) {
	var out bytes.Buffer
	if err := layout.Execute(&out, s); err != nil {
		panic(err) // the layout fits what it is given
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // if it fails, the client is gone
}

// Limits of a search.
const (
	maxQueryWords = 8
	maxFound      = 20
	excerptRunes  = 160
)

// search finds the pages with all words of a query: those with a word in the title first, then those
// that have the words most often.
func (b *book) search(query string) []found {
	words := strings.Fields(strings.ToLower(query))
	words = words[:min(len(words), maxQueryWords)]
	type hit struct {
		found
		weight int
	}
	var hits []hit
	for _, name := range b.names {
		p := b.pages[name]
		weight := 0
		for _, word := range words {
			n := strings.Count(p.lower, word)
			if n == 0 {
				weight = 0
				break
			}
			if weight += n; strings.Contains(strings.ToLower(p.title), word) {
				weight += 1_000
			}
		}
		if weight > 0 {
			hits = append(hits, hit{found{strings.TrimSuffix(Root+"/"+name, "/"), p.title, p.excerpt(words[0])}, weight})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.weight - a.weight })
	list := make([]found, min(len(hits), maxFound))
	for i := range list {
		list[i] = hits[i].found
	}
	return list
}
