package scopes

import (
	"go/ast"
	"go/parser"
	"go/token"
)

// cutGo cuts a file of Go at its declarations.
func cutGo(s *source) []Scope {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", s.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || file == nil {
		return cutBrackets(s, byFile[".go"])
	}
	at := set.File(file.Package)
	line := func(p token.Pos) int { return 1 + s.line(at.Offset(p)) } // a //line comment changes nothing
	list := make([]Scope, 0, len(file.Decls))
	add := func(name string, kind Kind, doc *ast.CommentGroup, node ast.Node) {
		from := node.Pos()
		if doc != nil {
			from = doc.Pos()
		}
		list = append(list, Scope{Name: name, Kind: kind, Start: line(from), End: line(node.End() - 1)})
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(funcName(d), Function, d.Doc, d)
		case *ast.GenDecl:
			switch {
			case d.Tok == token.IMPORT:
			case d.Tok == token.TYPE && d.Lparen.IsValid():
				for _, spec := range d.Specs {
					add(spec.(*ast.TypeSpec).Name.Name, Type, spec.(*ast.TypeSpec).Doc, spec)
				}
			case d.Tok == token.TYPE:
				add(d.Specs[0].(*ast.TypeSpec).Name.Name, Type, d.Doc, d)
			case len(d.Specs) > 0:
				add(d.Specs[0].(*ast.ValueSpec).Names[0].Name, Value, d.Doc, d)
			}
		}
	}
	return list
}

// funcName is Type.Method for a method.
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	for of := d.Recv.List[0].Type; ; {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.ParenExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}
