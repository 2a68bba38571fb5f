package files

import "encoding/json"

// Kind is how a file was accessed.
type Kind string

// The kinds of access. An edit is a write.
const (
	KindRead   Kind = "read"
	KindWrite  Kind = "write"
	KindSearch Kind = "search" // a search went through it or found something in it
	KindList   Kind = "list"   // it was listed, or files in it were
)

// Limits of input and output.
const (
	MaxArgumentBytes = 8 << 20  // of a call's arguments; longer ones are ignored
	MaxCommandBytes  = 64 << 10 // of one shell command; longer ones are ignored
	MaxResultBytes   = 1 << 20  // of a result's text; the rest is ignored
	MaxAccesses      = 100      // from one call, and from one result
	MaxPathBytes     = 1024     // of one path; longer ones are ignored
)

// Access is one file and how a call accessed it.
type Access struct {
	Path string // as returned by Normalise, never empty
	Kind Kind
}

// Call is a tool call.
type Call struct {
	Tool      string          // the tool's name as the agent sends it
	Arguments json.RawMessage // an object, or a string that holds one; anything else names no file
	Cwd       string          // the conversation's working directory, "" if unknown
}

// strength decides which kind wins if one call accesses a file in several ways.
var strength = map[Kind]int{KindList: 1, KindSearch: 2, KindRead: 3, KindWrite: 4}

// collection gathers accesses in order of first appearance, each path once with its
// strongest kind.
type collection struct {
	list []Access
	at   map[string]int
}

// add records an access to path, resolved against base.
func (c *collection) add(base, path string, kind Kind) {
	path = join(base, path)
	if path == "" {
		return
	}
	if i, known := c.at[path]; known {
		if strength[kind] > strength[c.list[i].Kind] {
			c.list[i].Kind = kind
		}
		return
	}
	if len(c.list) == MaxAccesses {
		return
	}
	if c.at == nil {
		c.at = map[string]int{}
	}
	c.at[path] = len(c.list)
	c.list = append(c.list, Access{Path: path, Kind: kind})
}

func (c *collection) full() bool { return len(c.list) == MaxAccesses }
