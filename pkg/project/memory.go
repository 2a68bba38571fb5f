package project

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

// MaxMemoryFiles is how many files the memory of a project holds. A digest is read whole, so this bounds it.
const MaxMemoryFiles = 256

// MemoryFile is a file of a project's memory. Its text is in the event that wrote it.
type MemoryFile struct {
	Path  string `json:"p"`
	Bytes int    `json:"b,omitempty"`
	Seq   uint64 `json:"s,omitempty"` // of the event that wrote it
}

// Memory is a change of a project's memory, see [events.MemoryChanged].
type Memory struct {
	Path    string `json:"p"`
	MovedTo string `json:"m,omitempty"`
	Written bool   `json:"w,omitempty"`
	Bytes   int    `json:"b,omitempty"`
}

// Conversation returns the id of a conversation that belongs to a project alone. A name that is too long for an id is
// replaced with its hash.
func Conversation(prefix, project string) string {
	if id := prefix + project; len(id) <= events.MaxIDBytes {
		return id
	}
	sum := events.DigestOf(project)
	return prefix + hex.EncodeToString(sum[:])
}

// Again returns the name under which a project's code is indexed, or its notes begin, for the nth time. The first is the
// project's own; another one follows when what was before it was erased, because an erased conversation takes nothing any more.
func Again(project string, n int) string {
	if n < 2 {
		return project
	}
	return Name(project + "#" + strconv.Itoa(n))
}

// Indexed returns the project whose code is indexed under a name; see [Again].
func Indexed(name string) string {
	at := strings.LastIndexByte(name, '#')
	if at <= 0 {
		return name
	}
	if n, err := strconv.Atoi(name[at+1:]); err != nil || n < 2 || Again(name[:at], n) != name {
		return name
	}
	return name[:at]
}

// Below reports whether a path is that of a folder, or in the folder.
func Below(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == '/')
}

// remember applies a change of the memory. A new file or folder replaces whatever is in its way. Beyond
// [MaxMemoryFiles] the last files are dropped.
func (d *Digest) remember(m Memory, seq uint64) {
	list := slices.Clone(d.Memory)
	var moved []MemoryFile
	list = slices.DeleteFunc(list, func(f MemoryFile) bool {
		if !Below(f.Path, m.Path) {
			return false
		}
		if to := m.MovedTo + strings.TrimPrefix(f.Path, m.Path); m.MovedTo != "" && len(to) <= events.MaxMemoryPathBytes {
			f.Path = to
			moved = append(moved, f)
		}
		return true
	})
	at := m.Path
	if m.MovedTo != "" {
		at = m.MovedTo
	}
	if m.Written {
		moved = []MemoryFile{{Path: at, Bytes: m.Bytes, Seq: seq}}
	}
	for _, f := range moved {
		list = slices.DeleteFunc(list, func(old MemoryFile) bool { return Below(old.Path, f.Path) || Below(f.Path, old.Path) })
		if len(list) < MaxMemoryFiles {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b MemoryFile) int { return strings.Compare(a.Path, b.Path) })
	d.Memory = list
}
