package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// codeVersion is part of every fingerprint. Raise it when a change of code, not of the
// table, finds other accesses in the same call.
const codeVersion = 1

// Rule says how the calls and results of some tools name files. A zero field means that the
// tools have nothing of that kind.
type Rule struct {
	// Tools are names as agents send them. An exact match wins over one that ignores case.
	Tools []string
	Kind  Kind

	// Paths are arguments that name files: a string, a list of strings, or a list of
	// objects with the members path, file or file_path. All that are present count.
	Paths []string

	// Verb is an argument whose value decides the kind, such as the command "view" of an
	// editor tool. A value that is not in Verbs means no access.
	Verb  string
	Verbs map[string]Kind

	// Line is an argument that repeats the call as a command line ("open a.py 10"). Operand
	// is the position of the path in it, counted from 1.
	Line    string
	Operand int

	// Shell are the arguments with a shell command, as text or as a list of words. Folder are the arguments with the
	// directory in which it runs. Shells are the arguments with several commands, each of which begins there: texts, or
	// objects with the members command and args.
	Shell  []string
	Shells []string
	Folder []string

	// Patch are arguments with a patch in apply_patch format.
	Patch []string

	Result Form

	// Below says that relative paths in the result start at the path that the call names,
	// not at the working directory.
	Below bool
}

// Form says how a result names files.
type Form string

// Forms of a result. They apply to text: a result in JSON is always searched for the
// members path, file and file_path and for lists of names.
const (
	FormNone  Form = ""
	FormHits  Form = "hits"  // search hits: "a.go:12: text", "Found 2 files" then one path per line, and the like
	FormPaths Form = "paths" // one path per line
	FormNames Form = "names" // a listing with one name per line, or "[FILE] name"
	FormOpen  Form = "open"  // the first line names the file: "[File: /a.py (10 lines total)]"
	FormView  Form = "view"  // a file's text or, for a folder, its listing
)

// pathMembers are the members that name the file in a list of objects.
var pathMembers = []string{"path", "file", "file_path", "filePath"}

// mcpPrefixes are cut off tool names, because these servers offer the tools of the table; developer is that of goose. A
// "create_file" of another server may mean anything.
var mcpPrefixes = []string{"mcp__filesystem__", "filesystem__", "filesystem.", "developer__"}

// Table says for each tool how its arguments and results name files. It is immutable and
// safe for concurrent use.
type Table struct {
	rules       []Rule
	exact       map[string]int
	folded      map[string]int
	fingerprint string
}

// NewTable returns a table. If two rules name the same tool, the later one wins, so
// append(DefaultRules(), own...) gives your own rules priority.
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

// DefaultTable returns the table of [DefaultRules].
func DefaultTable() *Table { return NewTable(DefaultRules()) }

// Fingerprint returns a hash of the table and of the version of its code. It is equal in
// every program and on every machine. If it changes, derived accesses must be rebuilt.
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
