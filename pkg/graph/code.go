package graph

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"mneme/events"
)

// What a look for a piece of code examines, whatever there is.
const (
	// MaxMentions is how many mentions conversations are found by: the newest of all files
	// with the same last component, or of all symbols with the same name.
	MaxMentions = 5000
	// MaxMentionsEach is how many mentions of one conversation are answered.
	MaxMentionsEach = 5
	// firstMentions is what is tried before MaxMentions.
	firstMentions = 200
	// MentionsEach is how many references of one conversation are looked at for these, the
	// newest.
	MentionsEach = 200
	// maxCodeBytes is how long the path of a file may be, and the name of a symbol, to be
	// found by it.
	maxCodeBytes = 4 << 10
)

// CodeReader finds the conversations whose messages speak of a piece of code.
type CodeReader interface {
	// Referring finds the conversations of a tenant with a message that refers to it, the
	// one with the newest such message first. Deleted ones are left out.
	Referring(ctx context.Context, tenant string, q CodeQuery) (Mentions, error)
	// References reads conversations with what they refer to, the newest first and
	// [MaxMentionsEach] at most, up to the sequence that each is asked with. Those that are
	// not there are left out.
	References(ctx context.Context, tenant string, list []Mentioned, q CodeQuery) ([]CodeReferences, error)
}

// AccessReader finds the conversations whose tool calls touched a file. Accesses by
// failed calls do not count, nor does a query for a symbol find any.
type AccessReader interface {
	// Accessing finds the conversations of a tenant that accessed it, the one with the
	// newest access first. Deleted ones are left out.
	Accessing(ctx context.Context, tenant string, q CodeQuery) (Mentions, error)
	// Accesses reads the newest access of each path and kind, [MaxMentionsEach] at most, by
	// the ids of their conversations. It looks at as many as Accessing does.
	Accesses(ctx context.Context, tenant string, ids []string, q CodeQuery) (map[string][]FileAccess, error)
}

// CodeQuery asks for a piece of code: a file, some line of it, a symbol, or a symbol in a
// file. Without a file and a name it finds nothing.
type CodeQuery struct {
	File string // a path as an agent wrote it, or the end of one by whole components
	// Line is a line of the file. References without lines are of all of them, and so are
	// accesses. 0 means all.
	Line  int
	Name  string // the name of a symbol, as it is written
	Limit int    // conversations; 0 means 20
}

// Mention is that a conversation mentions a piece of code: one found, see
// [CodeQuery.Mentions].
type Mention struct {
	Conversation string // its id; "" for what is not to be seen
	Seq          uint64
	events.Reference
}

// Mentioned is a conversation of a tenant with the sequence of its newest mention.
type Mentioned struct {
	ID  string
	Seq uint64
}

// Mentions are conversations, the one with the newest mention first. More says that older
// mentions were not looked at.
type Mentions struct {
	Conversations []Mentioned
	More          bool
}

// CodeReferences is a conversation with what its messages refer to.
type CodeReferences struct {
	Conversation
	References []CodeReference
}

// CodeReference is a piece of code that a message speaks of.
type CodeReference struct {
	Seq       uint64
	Turn      int
	MessageID string
	events.Reference
}

// CodeBase is the last component of a path, by which files are found; "" if it has none,
// or is too long. Both kinds of slashes part components.
func CodeBase(file string) string {
	base := path.Base(codePath(file))
	if base == "." || base == ".." || base == "/" {
		return ""
	}
	return base
}

// CodeName is the name of a symbol that is referred to, if it is found by it.
func CodeName(r events.Reference) string {
	if len(r.Name) > maxCodeBytes || len(r.File) > maxCodeBytes {
		return ""
	}
	return r.Name
}

// codePath is a path in the form in which paths are compared.
func codePath(file string) string {
	if file == "" || len(file) > maxCodeBytes {
		return ""
	}
	return path.Clean(strings.ReplaceAll(file, `\`, "/"))
}

// Base is what files are looked up by.
func (q CodeQuery) Base() string { return CodeBase(q.File) }

// Empty tells whether nothing can be found: neither a file nor a symbol is named.
func (q CodeQuery) Empty() bool {
	return q.File == "" && q.Name == "" || q.File != "" && q.Base() == "" || len(q.Name) > maxCodeBytes
}

// matcher tells what is asked for.
func (q CodeQuery) matcher() func(events.Reference) bool {
	file := codePath(q.File)
	for strings.HasPrefix(file, "../") { // what lies there is not known: the rest is the end of the path
		file = file[len("../"):]
	}
	return func(r events.Reference) bool {
		if len(r.File) > maxCodeBytes || q.Name != "" && r.Name != q.Name {
			return false
		}
		if q.Line != 0 && (r.StartLine != 0 || r.EndLine != 0) && (q.Line < r.StartLine || q.Line > max(r.StartLine, r.EndLine)) {
			return false
		}
		return file == "" || endsWith(codePath(r.File), file)
	}
}

// endsWith tells whether a path is another one, or ends with its components.
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

// Mentions finds conversations by what read gives: the newest mentions of the file's last
// component, or of the name if there is one, so many at most. Backends share it.
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
		if found.More { // than the limit
			return found, nil
		}
		if len(list) < n {
			return found, nil
		}
	}
	found.More = true
	return found, nil
}

// mentioned are the conversations of mentions that match.
func (q CodeQuery) mentioned(list []Mention) (found Mentions) {
	matches, known := q.matcher(), map[string]bool{}
	for i := range list {
		m := &list[i]
		if m.Conversation == "" || known[m.Conversation] || !matches(m.Reference) {
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

// NewestReferences takes of a conversation's references those that match, the newest
// first and each once. Backends share it.
func (q CodeQuery) NewestReferences(list []CodeReference) []CodeReference {
	matches := q.matcher()
	list = slices.DeleteFunc(list, func(r CodeReference) bool { return !matches(r.Reference) })
	slices.SortStableFunc(list, func(a, b CodeReference) int {
		return cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(a.File, b.File), cmp.Compare(a.StartLine, b.StartLine), cmp.Compare(a.EndLine, b.EndLine), cmp.Compare(a.Name, b.Name))
	})
	list = slices.Compact(list)
	return list[:min(len(list), MaxMentionsEach)]
}

// NewestAccesses does the same for accesses of several conversations. add is given them
// one after the other, the newest first.
func (q CodeQuery) NewestAccesses() (found map[string][]FileAccess, add func(id string, a FileAccess)) {
	matches := q.matcher()
	found = map[string][]FileAccess{}
	return found, func(id string, a FileAccess) {
		if len(found[id]) < MaxMentionsEach && matches(events.Reference{File: a.Path}) {
			found[id] = append(found[id], a)
		}
	}
}
