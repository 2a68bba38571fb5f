package readmodel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/graph/readmodel"
)

// A second list of read models would soon disagree with this package's.
func TestNoOtherListOfReadModelsIsInTheSources(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	read := 0
	for _, dir := range []string{"cmd", "internal", "pkg", "events", "deploy"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"),
				strings.Contains(path, filepath.Join("graph", "storetest")): // tests
				return nil
			}
			read++
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, node := range listsIn(file) {
				t.Errorf("%s lists read models: use readmodel.Names or readmodel.Ours", files.Position(node.Pos()))
			}
			return nil
		}))
	}
	require.Greater(t, read, 100, "the sources were not found")
}

func TestListsAreFound(t *testing.T) {
	t.Parallel()
	for source, found := range map[string]int{
		`var x = []string{"graph", "files"}`:                                 1,
		`var x = map[string]int{"graph": 1, "embeddings": 2}`:                1,
		`var x = map[string]string{"a": "graph", "b": "summaries"}`:          1,
		`func f(s string) bool { return s == "graph" || s == "files" }`:      1,
		`func f(s string) { switch s { case "graph", "files": } }`:           1,
		"type x struct { Name string `enum:\"graph,files\"` }":               1,
		`var x = "graph, files or all"`:                                      1,
		`var x = []string{"graph", "other"}`:                                 0,
		`var x = "rebuilds the files, then the graph of all conversations"`:  0,
		`var x = []struct{ a, b []string }{{a: []string{"graph"}, b: nil}}`:  0,
		`func f(s string) bool { return s == "graph" || s == "something" }`:  0,
		`var x = "SELECT files FROM summaries"`:                              0,
		"type x struct { Files string `json:\"files\" doc:\"of a graph\"` }": 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+source, 0)
		require.NoError(t, err)
		require.Len(t, listsIn(file), found, source)
	}
}

// listsIn returns the nodes that name more than one read model: elements of one literal, operands of
// one expression, cases of one switch, or the words of one text.
func listsIn(file *ast.File) (lists []ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		var parts []ast.Expr
		switch n := n.(type) {
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					parts = append(parts, kv.Key, kv.Value)
				} else {
					parts = append(parts, e)
				}
			}
		case *ast.SwitchStmt:
			for _, s := range n.Body.List {
				parts = append(parts, s.(*ast.CaseClause).List...)
			}
		case *ast.BinaryExpr:
			if n.Op == token.LOR || n.Op == token.LAND {
				ast.Inspect(n, func(inner ast.Node) bool {
					if l, ok := inner.(*ast.BasicLit); ok {
						parts = append(parts, l)
					}
					return true
				})
			}
		case *ast.BasicLit:
			if listed(n.Value) {
				lists = append(lists, n)
			}
			return true
		}
		named := map[string]bool{}
		for _, p := range parts {
			if l, ok := p.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, _ := strconv.Unquote(l.Value); slices.Contains(readmodel.Names(), text) {
					named[text] = true
				}
			}
		}
		if len(named) > 1 {
			lists = append(lists, n)
		}
		return true
	})
	return lists
}

// listed reports whether a text has two names next to each other, with only a comma between them.
func listed(text string) bool {
	for _, a := range readmodel.Names() {
		for _, b := range readmodel.Names() {
			for _, between := range []string{",", ", "} {
				if a != b && strings.Contains(text, a+between+b) { // claude-code,codex names none
					return true
				}
			}
		}
	}
	return false
}
