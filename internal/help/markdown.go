package help

import (
	"bytes"
	"html/template"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// page is one page of Markdown.
type page struct {
	file   string // below docs
	source []byte
	title  string
	lower  string // its text, in lower case, with the offsets of source
	render func() template.HTML
}

func newPage(file string, source []byte) *page {
	p := &page{file: file, source: source, lower: lowerASCII(string(source))}
	first, _, _ := strings.Cut(strings.TrimPrefix(string(source), "# "), "\n")
	p.title = strings.ReplaceAll(first, "`", "")
	p.render = sync.OnceValue(func() template.HTML {
		var out bytes.Buffer
		context := parser.NewContext(parser.WithIDs(sections{}))
		if err := markdown(file).Convert(source, &out, parser.WithContext(context)); err != nil {
			panic(err) // a buffer takes everything
		}
		return template.HTML(out.String()) //nolint:gosec // the source is embedded, and raw HTML in it is left out
	})
	return p
}

// lowerASCII keeps the length, so that offsets hold.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}

func (p *page) shown() shown { return shown{Title: p.title, Body: p.render()} }

// excerpt returns the text around the first occurrence of a word.
func (p *page) excerpt(word string) string {
	at := max(strings.Index(p.lower, word), 0)
	before, after := []rune(string(p.source[:at])), []rune(string(p.source[at:]))
	before = before[max(len(before)-excerptRunes/3, 0):]
	after = after[:min(len(after), excerptRunes)]
	return strings.Join(strings.Fields(string(before)+string(after)), " ")
}

func markdown(file string) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Linkify),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(&links{path.Dir(file)}, 1))),
	)
}

// links makes the links of a file lead to pages of this server. For a link out of docs only the text stays, because the
// target is not served.
type links struct{ folder string }

// Transform implements parser.ASTTransformer.
func (l *links) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var out []*ast.Link
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			if to, ok := l.target(string(n.Destination)); ok {
				n.Destination = []byte(to)
			} else {
				out = append(out, n)
			}
		case *ast.Image:
			if to, ok := l.target(string(n.Destination)); ok {
				n.Destination = []byte(to)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range out {
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			n.Parent().InsertBefore(n.Parent(), n, child)
		}
		n.Parent().RemoveChild(n.Parent(), n)
	}
}

// target returns where a link leads on this server; ok is false if that is out of docs.
func (l *links) target(to string) (string, bool) {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Path == "" || path.IsAbs(u.Path) {
		return to, err == nil
	}
	file := path.Join(l.folder, u.Path)
	if file == ".." || strings.HasPrefix(file, "../") {
		return "", false
	}
	u.Path = strings.TrimSuffix(Root+"/"+nameOf(file), "/")
	return u.String(), true
}

// Section returns the name of a section in links, as web sites that show Markdown make it.
func Section(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(title))
}

// sections names the sections of a page.
type sections struct{}

// Generate implements parser.IDs.
func (sections) Generate(title []byte, _ ast.NodeKind) []byte { return []byte(Section(string(title))) }

// Put implements parser.IDs.
func (sections) Put([]byte) {}
