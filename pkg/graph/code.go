package graph

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
)

// Limits of a search for a piece of code.
const (
	// MaxMentions is how many mentions are examined: the newest of all files
	// with the same last component, or of all symbols with the same name.
	MaxMentions = 5000
	// MaxMentionsEach is how many mentions of one conversation are returned.
	MaxMentionsEach = 5
	// firstMentions is the limit of the first attempt, before MaxMentions.
	firstMentions = 200
	// MentionsEach limits how many of a conversation's references are examined: the
	// newest ones.
	MentionsEach = 200
	// maxCodeBytes is how long a file's path or a symbol's name may be to be
	// found by it.
	maxCodeBytes = 4 << 10
)

// CodeReader finds the conversations whose messages mention a piece of code.
type CodeReader interface {
	// Referring finds the conversations of a tenant with a message that refers to the code, the
	// one with the newest such message first. Deleted ones are left out.
	Referring(ctx context.Context, tenant string, q CodeQuery) (Mentions, error)
	// References reads conversations with their references up to the sequence given for
	// each: at most [MaxMentionsEach], newest first. Unknown conversations are left out.
	References(ctx context.Context, tenant string, list []Mentioned, q CodeQuery) ([]CodeReferences, error)
}

// AccessReader finds the conversations whose tool calls touched a file. Accesses by
// failed calls do not count. A query for a symbol finds none.
type AccessReader interface {
	// Accessing finds the conversations of a tenant that accessed the file, the one with the
	// newest access first. Deleted ones are left out.
	Accessing(ctx context.Context, tenant string, q CodeQuery) (Mentions, error)
	// Accesses reads the newest access of each path and kind, at most [MaxMentionsEach], by
	// the ids of their conversations. It examines as many as Accessing does.
	Accesses(ctx context.Context, tenant string, ids []string, q CodeQuery) (map[string][]FileAccess, error)
}

// CodeQuery selects a piece of code: a file, a line of it, a symbol, or a symbol in a
// file. Without a file or a name it finds nothing.
type CodeQuery struct {
	File string // a path as an agent wrote it, or its last components
	// Line is a line of the file, 0 for all. References without lines match every line,
	// and so do accesses.
	Line  int
	Name  string // the name of a symbol, as it is written
	Limit int    // conversations; 0 means 20
	// Only are the ids of the conversations to find; nil means all of the tenant. Others do not count
	// against the limit.
	Only []string
	// Matches, if set, decides instead of Line and the path which references of the message with
	// this sequence count, among those to files with the same last component or to the symbol.
	Matches func(seq uint64, r events.Reference) bool
}

// Mention is one mention of a piece of code in a conversation, as found by
// [CodeQuery.Mentions].
type Mention struct {
	Conversation string // its id; "" if it must not be shown
	Seq          uint64
	events.Reference
}

// Mentioned is a conversation of a tenant with the sequence of its newest mention.
type Mentioned struct {
	ID  string
	Seq uint64
}

// Mentions holds conversations, the one with the newest mention first. More means that
// older mentions were not examined.
type Mentions struct {
	Conversations []Mentioned
	More          bool
}

// CodeReferences is a conversation with its messages' references.
type CodeReferences struct {
	Conversation
	References []CodeReference
}

// CodeReference is a piece of code that a message mentions.
type CodeReference struct {
	Seq       uint64
	Turn      int
	MessageID string
	events.Reference
}

// CodeBase returns the last component of a path, by which files are found; "" if there is
// none, or the path is too long. Slashes and backslashes separate components.
func CodeBase(file string) string {
	base := path.Base(codePath(file))
	if base == "." || base == ".." || base == "/" {
		return ""
	}
	return base
}

// CodeName returns the name of the referenced symbol, "" if it can't be found by name.
func CodeName(r events.Reference) string {
	if len(r.Name) > maxCodeBytes || len(r.File) > maxCodeBytes {
		return ""
	}
	return r.Name
}

// codePath returns a path in the form used for comparing.
func codePath(file string) string {
	if file == "" || len(file) > maxCodeBytes {
		return ""
	}
	return path.Clean(strings.ReplaceAll(file, `\`, "/"))
}

// Base returns the last component of the file, by which it is looked up.
func (q CodeQuery) Base() string { return CodeBase(q.File) }

// Empty reports whether the query names neither a file nor a symbol and so finds nothing.
func (q CodeQuery) Empty() bool {
	return q.File == "" && q.Name == "" || q.File != "" && q.Base() == "" || len(q.Name) > maxCodeBytes
}

// FileMatcher returns a function that reports whether a path is a file, given as
// CodeQuery.File. No file matches "".
func FileMatcher(file string) func(path string) bool {
	file = SoughtPath(file)
	return func(path string) bool { return file != "" && endsWith(codePath(path), file) }
}

// SoughtPath returns the path of a file that is looked for in its shortest form: the same for all ways to write it.
func SoughtPath(file string) string {
	file = codePath(file)
	for strings.HasPrefix(file, "../") { // the parent is unknown, so only the rest counts
		file = file[len("../"):]
	}
	return file
}

// matcher returns a function that reports whether a reference matches the query.
func (q CodeQuery) matcher() func(seq uint64, r events.Reference) bool {
	if q.Matches != nil {
		return q.Matches
	}
	file := SoughtPath(q.File)
	return func(_ uint64, r events.Reference) bool {
		if len(r.File) > maxCodeBytes || q.Name != "" && r.Name != q.Name {
			return false
		}
		if q.Line != 0 && (r.StartLine != 0 || r.EndLine != 0) && (q.Line < r.StartLine || q.Line > max(r.StartLine, r.EndLine)) {
			return false
		}
		return file == "" || endsWith(codePath(r.File), file)
	}
}

// endsWith reports whether a path equals another path or ends with its components.
func endsWith(whole, end string) bool {
	rest, ok := strings.CutSuffix(whole, end)
	return ok && (rest == "" || strings.HasSuffix(rest, "/") && !strings.HasPrefix(end, "/"))
}

func (q CodeQuery) limit() int {
	if q.Limit <= 0 {
		return 20
	}
	return q.Limit
}

// Mentions finds conversations among the mentions that read returns: up to limit of the
// newest mentions of the name if there is one, else of the file's last component.
// Backends share it.
func (q CodeQuery) Mentions(read func(limit int) ([]Mention, error)) (found Mentions, err error) {
	if q.Empty() {
		return found, nil
	}
	for _, n := range []int{firstMentions, MaxMentions} {
		list, err := read(n)
		if err != nil {
			return Mentions{}, err
		}
		found = q.mentioned(list)
		if found.More { // more than the limit
			return found, nil
		}
		if len(list) < n {
			return found, nil
		}
	}
	found.More = true
	return found, nil
}

// mentioned returns the conversations of the mentions that match.
func (q CodeQuery) mentioned(list []Mention) (found Mentions) {
	matches, known, only := q.matcher(), map[string]bool{}, map[string]bool{}
	for _, id := range q.Only {
		only[id] = true
	}
	for i := range list {
		m := &list[i]
		if m.Conversation == "" || known[m.Conversation] || q.Only != nil && !only[m.Conversation] || !matches(m.Seq, m.Reference) {
			continue
		}
		if len(known) == q.limit() {
			found.More = true
			return found
		}
		known[m.Conversation] = true
		found.Conversations = append(found.Conversations, Mentioned{m.Conversation, m.Seq})
	}
	return found
}

// NewestReferences returns the references of a conversation that match, the newest first
// and each once. Backends share it.
func (q CodeQuery) NewestReferences(list []CodeReference) []CodeReference {
	matches := q.matcher()
	list = slices.DeleteFunc(list, func(r CodeReference) bool { return !matches(r.Seq, r.Reference) })
	slices.SortStableFunc(list, func(a, b CodeReference) int {
		return cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(a.File, b.File), cmp.Compare(a.StartLine, b.StartLine), cmp.Compare(a.EndLine, b.EndLine), cmp.Compare(a.Name, b.Name))
	})
	list = slices.Compact(list)
	return list[:min(len(list), MaxMentionsEach)]
}

// NewestAccesses does the same for accesses of several conversations. Call add with each
// access, the newest first.
func (q CodeQuery) NewestAccesses() (found map[string][]FileAccess, add func(id string, a FileAccess)) {
	matches := q.matcher()
	found = map[string][]FileAccess{}
	return found, func(id string, a FileAccess) {
		if len(found[id]) < MaxMentionsEach && matches(a.Seq, events.Reference{File: a.Path}) {
			found[id] = append(found[id], a)
		}
	}
}
