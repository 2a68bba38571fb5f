package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// codeVersion is part of every fingerprint. Raise it when the code, not the table,
// comes to find other accesses in the same call.
const codeVersion = 1

// Rule says how the calls and results of some tools name files. The zero value
// of a field means that the tools have nothing of the kind.
type Rule struct {
	// Tools are names as the agents send them. A name is looked up as it is written
	// and, if that is unknown, without regard to case.
	Tools []string
	Kind  Kind

	// Paths are arguments that name files: a string, a list of strings, or a list of
	// objects with the members path, file or file_path. All that are present count.
	Paths []string

	// Verb is an argument whose value decides the kind, such as the command "view" of
	// an editor tool. A value that Verbs does not hold means no access.
	Verb  string
	Verbs map[string]Kind

	// Line is an argument that repeats the tool as a command line ("open a.py 10");
	// Operand is the place of the path in it, counted from 1.
	Line    string
	Operand int

	// Shell are arguments that hold a shell command, as text or as a list of words,
	// and Folder those that hold the directory it runs in.
	Shell  []string
	Folder []string

	// Patch are arguments that hold a patch of the apply_patch form.
	Patch []string

	Result Form

	// Below says that relative paths of the result begin at the path that the call
	// names and not at the working directory.
	Below bool
}

// Form is how a result names files.
type Form string

// The forms of a result. In each, a result that is JSON is searched for the members
// path, file and file_path and for lists of names; the form matters for text.
const (
	FormNone  Form = ""
	FormHits  Form = "hits"  // search hits: "a.go:12: text", "Found 2 files" and a path a line, and kin
	FormPaths Form = "paths" // a path a line
	FormNames Form = "names" // a listing: a name a line, or "[FILE] name"
	FormOpen  Form = "open"  // the file is named at the top: "[File: /a.py (10 lines total)]"
	FormView  Form = "view"  // a file's text or, for a folder, its listing
)

// pathMembers name the file in an object of a list of files.
var pathMembers = []string{"path", "file", "file_path"}

// mcpPrefixes are cut off a tool's name: the file tools of these servers are the
// ones of the table. Other servers may mean anything by "create_file".
var mcpPrefixes = []string{"mcp__filesystem__", "filesystem__", "filesystem."}

// Table says for each tool how its arguments and results name files. It is
// immutable and safe for concurrent use.
type Table struct {
	rules       []Rule
	exact       map[string]int
	folded      map[string]int
	fingerprint string
}

// NewTable makes a table. Where two rules name the same tool the later one
// counts, so append(DefaultRules(), own...) puts one's own names first.
func NewTable(rules []Rule) *Table {
	t := &Table{rules: rules, exact: map[string]int{}, folded: map[string]int{}}
	for i, r := range rules {
		for _, name := range r.Tools {
			t.exact[name] = i
			t.folded[strings.ToLower(name)] = i
		}
	}
	t.fingerprint = fingerprint(rules, shellCommands, mcpPrefixes, pathMembers)
	return t
}

// DefaultTable is the table of [DefaultRules].
func DefaultTable() *Table { return NewTable(DefaultRules()) }

// Fingerprint is a hash of the table and of the version of the code that applies
// it. It stays the same from one program and machine to the next; with another one
// derived accesses must be rebuilt.
func (t *Table) Fingerprint() string { return t.fingerprint }

func (t *Table) rule(tool string) (*Rule, bool) {
	for _, prefix := range mcpPrefixes {
		tool = strings.TrimPrefix(tool, prefix)
	}
	i, known := t.exact[tool]
	if !known {
		i, known = t.folded[strings.ToLower(tool)]
	}
	if !known {
		return nil, false
	}
	return &t.rules[i], true
}

// fingerprint hashes the parts as JSON: struct fields in order, map keys sorted.
func fingerprint(parts ...any) string {
	text, err := json.Marshal([]any{codeVersion, parts})
	if err != nil {
		panic("files: a table is not plain data: " + err.Error()) // impossible: strings, numbers, lists and maps of them
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
