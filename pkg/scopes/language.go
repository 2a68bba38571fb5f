package scopes

import (
	"path"
	"strings"
)

// cut is a way to cut a file.
type cut uint8

const (
	byBlocks cut = iota // at blank lines
	byParser
	byBrackets
	byIndentation
	byHeadings
)

// bare says where a name before parentheses declares a function, without a keyword.
type bare uint8

const (
	nowhere bare = iota
	inTypes
	everywhere
)

// language is what the cut of a file needs to know.
type language struct {
	name   string
	files  []string // suffixes such as .py, and whole names such as Makefile
	cut    cut
	syntax syntax
	words  map[string]Kind // words that declare: Block for those that only surround others, such as a namespace
	bare   bare
}

// syntax describes strings and comments.
type syntax struct {
	line      []string // begins a comment that ends with the line
	open      string   // begins a comment that close ends
	close     string
	quotes    string   // each begins and ends a string on one line
	long      []string // begins and ends a string of several lines
	macros    bool     // a line that begins with # is for the preprocessor
	chars     bool     // ' begins a character, or a lifetime that has no end
	closers   []string // words at the indentation of a declaration that are its last line
	raw       bool     // r#"…"# is a string
	script    bool     // /…/ can be a pattern, and {…} a type
	statement bool     // a declaration also ends at ;
}

func kinds(functions, types, around string) map[string]Kind {
	set := map[string]Kind{}
	for list, kind := range map[string]Kind{functions: Function, types: Type, around: Block} {
		for word := range strings.FieldsSeq(list) {
			set[word] = kind
		}
	}
	return set
}

var (
	likeC      = syntax{line: []string{"//"}, open: "/*", close: "*/", quotes: `"`, chars: true, statement: true}
	likeShell  = syntax{line: []string{"#"}, quotes: `"'`}
	likeScript = syntax{line: []string{"//"}, open: "/*", close: "*/", quotes: `"'`, long: []string{"`"}, statement: true, script: true}
)

func with(s syntax, change func(*syntax)) syntax {
	change(&s)
	return s
}

// languages are the languages that mneme knows. To add one, say how its files are named, what strings and comments look
// like, and which words declare.
var languages = []language{
	{name: "go", files: []string{".go"}, cut: byParser,
		syntax: with(likeC, func(s *syntax) { s.long = []string{"`"} }), words: kinds("func", "type", "")},
	{name: "markdown", files: []string{".md", ".markdown", ".mdx"}, cut: byHeadings},
	{name: "python", files: []string{".py", ".pyi", ".pyx"}, cut: byIndentation,
		syntax: syntax{line: []string{"#"}, quotes: `"'`, long: []string{`"""`, "'''"}}, words: kinds("def", "class", "")},
	{name: "ruby", files: []string{".rb", ".rake", "Rakefile", "Gemfile"}, cut: byIndentation,
		syntax: with(likeShell, func(s *syntax) { s.closers = []string{"end"} }), words: kinds("def", "class module", "")},
	{name: "elixir", files: []string{".ex", ".exs"}, cut: byIndentation,
		syntax: syntax{line: []string{"#"}, quotes: `"`, long: []string{`"""`}, closers: []string{"end"}}, words: kinds("def defp defmacro", "defmodule", "")},
	{name: "lua", files: []string{".lua"}, cut: byIndentation,
		syntax: syntax{line: []string{"--"}, quotes: `"'`, closers: []string{"end"}}, words: kinds("function", "", "")},
	{name: "typescript", files: []string{".ts", ".tsx", ".mts", ".cts"}, cut: byBrackets, bare: inTypes,
		syntax: likeScript, words: kinds("function", "class interface enum type", "namespace module")},
	{name: "javascript", files: []string{".js", ".jsx", ".mjs", ".cjs", ".vue", ".svelte"}, cut: byBrackets, bare: inTypes,
		syntax: likeScript, words: kinds("function", "class", "")},
	{name: "java", files: []string{".java"}, cut: byBrackets, bare: inTypes,
		syntax: with(likeC, func(s *syntax) { s.long = []string{`"""`} }), words: kinds("", "class interface enum record", "")},
	{name: "kotlin", files: []string{".kt", ".kts"}, cut: byBrackets,
		syntax: with(likeC, func(s *syntax) { s.long = []string{`"""`} }), words: kinds("fun", "class interface object", "")},
	{name: "scala", files: []string{".scala"}, cut: byBrackets,
		syntax: with(likeC, func(s *syntax) { s.long = []string{`"""`} }), words: kinds("def", "class trait object enum", "")},
	{name: "swift", files: []string{".swift"}, cut: byBrackets,
		syntax: with(likeC, func(s *syntax) { s.long = []string{`"""`} }), words: kinds("func init deinit", "class struct enum protocol actor extension", "")},
	{name: "csharp", files: []string{".cs"}, cut: byBrackets, bare: inTypes,
		syntax: with(likeC, func(s *syntax) { s.long = []string{`"""`}; s.macros = true }), words: kinds("", "class interface struct enum record", "namespace")},
	{name: "c", files: []string{".c", ".h"}, cut: byBrackets, bare: everywhere,
		syntax: with(likeC, func(s *syntax) { s.macros = true }), words: kinds("", "struct union enum", "extern")},
	{name: "cpp", files: []string{".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ino", ".cu", ".m", ".mm"}, cut: byBrackets, bare: everywhere,
		syntax: with(likeC, func(s *syntax) { s.macros = true }), words: kinds("", "class struct union enum", "namespace extern")},
	{name: "rust", files: []string{".rs"}, cut: byBrackets,
		syntax: with(likeC, func(s *syntax) { s.raw = true; s.long = []string{`"`} }), words: kinds("fn", "struct enum union trait", "impl mod")},
	{name: "php", files: []string{".php"}, cut: byBrackets,
		syntax: with(likeScript, func(s *syntax) { s.long, s.script = nil, false; s.line = []string{"//", "# "} }), words: kinds("function", "class interface trait enum", "namespace")},
	{name: "dart", files: []string{".dart"}, cut: byBrackets, bare: everywhere,
		syntax: with(likeScript, func(s *syntax) { s.long, s.script = []string{`"""`, "'''"}, false }), words: kinds("", "class mixin enum extension", "")},
	{name: "zig", files: []string{".zig"}, cut: byBrackets, syntax: likeC, words: kinds("fn", "", "")},
	{name: "solidity", files: []string{".sol"}, cut: byBrackets, syntax: likeScript, words: kinds("function modifier constructor", "contract interface library struct enum", "")},
	{name: "protobuf", files: []string{".proto"}, cut: byBrackets, syntax: likeC, words: kinds("", "message service enum", "")},
	{name: "terraform", files: []string{".tf", ".hcl"}, cut: byBlocks, syntax: likeShell},
	{name: "css", files: []string{".css", ".scss", ".less"}, cut: byBlocks, syntax: likeC},
	{name: "shell", files: []string{".sh", ".bash", ".zsh"}, cut: byBrackets, bare: everywhere, syntax: likeShell, words: kinds("function", "", "")},
	{name: "sql", files: []string{".sql"}, cut: byBlocks, syntax: syntax{line: []string{"--"}}},
	{name: "yaml", files: []string{".yaml", ".yml"}, cut: byBlocks, syntax: likeShell},
	{name: "toml", files: []string{".toml"}, cut: byBlocks, syntax: likeShell},
	{name: "make", files: []string{".mk", "Makefile", "GNUmakefile"}, cut: byBlocks, syntax: likeShell},
	{name: "docker", files: []string{"Dockerfile", "Containerfile"}, cut: byBlocks, syntax: likeShell},
	{name: "html", files: []string{".html", ".htm"}, cut: byBlocks, syntax: syntax{}},
	{name: "text", files: []string{".rst", ".adoc", ".txt"}, cut: byBlocks, syntax: syntax{}},
}

var byFile = func() map[string]*language {
	set := map[string]*language{}
	for i := range languages {
		for _, name := range languages[i].files {
			set[name] = &languages[i]
		}
	}
	return set
}()

// languageOf returns the language of a file, nil if it has none.
func languageOf(name string) *language {
	name = path.Base(name)
	if l := byFile[name]; l != nil && name[0] != '.' {
		return l
	}
	ext := path.Ext(name)
	if ext == name { // .gitignore
		return nil
	}
	if l := byFile[ext]; l != nil {
		return l
	}
	return byFile[strings.ToLower(ext)]
}

// dull reports whether a line outside of declarations says nothing by itself: an import, a comment, a bracket.
func (l *language) dull(line string) bool {
	for _, sign := range l.syntax.line {
		if strings.HasPrefix(line, sign) {
			return true
		}
	}
	word, _, _ := strings.Cut(line, " ")
	switch word {
	case "import", "from", "use", "using", "package", "#include", "require", "require_relative", "<?php", "'use", `"use`:
		return true
	}
	return strings.Trim(line, "{}()[];,*/") == ""
}
