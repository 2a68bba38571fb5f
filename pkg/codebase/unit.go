package codebase

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	json "github.com/go-json-experiment/json/v1"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
)

// Name is the name of the read model.
const Name = "code"

// State is an index in a unit of work.
type State struct {
	projection.ConversationState
	Project string // of its newest scan, "" before the first
}

// Version is what a file holds from a sequence on.
type Version struct {
	Seq      uint64
	EventID  string
	Path     string
	Hash     string // SHA-256 of its bytes, in hex
	Removed  bool
	Language string
	Lines    int
	Left     int // scopes over a limit
	Scopes   []Scope
	Bags     []byte // what a search needs from each scope, see AppendBag
	Texts    []string
}

// Scope is a piece of a file, without its text.
type Scope struct {
	Name  string `json:"n,omitempty"`
	Kind  string `json:"k"`
	Start int    `json:"s"` // lines from 1
	End   int    `json:"e"`
}

// Scan says that reading a folder began or ended.
type Scan struct {
	Seq     uint64
	EventID string
	Project string
	Root    string
	Done    bool
	Files   int
}

// Unit is the unit of work of the projection "code".
type Unit struct {
	projection.States[State, *State]
	Versions []projection.Of[State, Version]
	Scans    []projection.Of[State, Scan]
	made     map[uint64][]byte // bags made ahead, by sequence
}

// NewUnit makes an empty unit; the backend adds what it loads.
func NewUnit() *Unit {
	return &Unit{States: projection.States[State, *State]{}, made: map[uint64][]byte{}}
}

// Projection declares the read model "code".
func Projection() projection.Projection[*Unit] {
	return projection.Projection[*Unit]{
		Name:     Name,
		Version:  2,
		Settings: static.Model, // rows hold its embeddings
		Reducers: map[string]projection.Reducer[*Unit]{
			events.TypeCodeIndexed:         (*Unit).indexed,
			events.TypeCodeScanned:         (*Unit).scanned,
			events.TypeConversationDeleted: (*Unit).deleted,
		},
		Derive: derive,
		Gather: gather,
	}
}

// gather is how long batches wait for more events. Nearly all events of a log are of no use here, and each batch costs
// a transaction.
const gather = 250 * time.Millisecond

// derive makes the bags of a file ahead of the transaction: they are most of the work.
func derive(e *events.Recorded) func(*Unit) {
	p, ok := e.Payload.(*events.CodeIndexed)
	if !ok || p.Removed {
		return nil
	}
	seq, bags := e.Seq, bagsOf(p)
	return func(u *Unit) { u.made[seq] = bags }
}

func (u *Unit) indexed(e *events.Recorded) error {
	p := e.Payload.(*events.CodeIndexed)
	v := Version{Seq: e.Seq, EventID: e.ID, Path: p.Path, Hash: p.Hash, Removed: p.Removed}
	if !p.Removed {
		v.Language, v.Lines, v.Left = p.Language, p.Lines, p.Left
		for _, s := range p.Scopes {
			v.Scopes = append(v.Scopes, Scope{Name: s.Name, Kind: s.Kind, Start: s.StartLine, End: s.EndLine})
			v.Texts = append(v.Texts, s.Text)
		}
		var ok bool
		if v.Bags, ok = u.made[e.Seq]; !ok {
			v.Bags = bagsOf(p)
		}
	}
	u.Versions = append(u.Versions, projection.RowOf(u.Touch(e), v))
	return nil
}

func (u *Unit) scanned(e *events.Recorded) error {
	p := e.Payload.(*events.CodeScanned)
	s := u.Touch(e)
	s.Project = p.Project
	u.Scans = append(u.Scans, projection.RowOf(s, Scan{Seq: e.Seq, EventID: e.ID, Project: p.Project, Root: p.Root, Done: p.Done, Files: p.Files}))
	return nil
}

func (u *Unit) deleted(e *events.Recorded) error {
	s := u.Delete(e)
	u.Versions, u.Scans = projection.Without(u.Versions, s), projection.Without(u.Scans, s)
	return nil
}

// content is what a search sees of a scope: its place and its name count too.
func content(path, name, text string) string {
	if name == "" {
		return path + "\n" + text
	}
	return path + "\n" + name + "\n" + text
}

// bagsOf encodes what a search needs from the scopes of a file: for each the lengths of its bag and of its vectors, and
// both.
func bagsOf(p *events.CodeIndexed) (dst []byte) {
	for i := range p.Scopes {
		text := content(p.Path, p.Scopes[i].Name, p.Scopes[i].Text)
		bag := recall.NewBag(recall.Message{Content: text})
		terms, _ := bag.AppendBinary(nil) // never fails
		vectors := graph.AppendBuiltIn(nil, text, bag.Passages)
		dst = binary.AppendUvarint(dst, uint64(len(terms)))
		dst = binary.AppendUvarint(dst, uint64(len(vectors)))
		dst = append(append(dst, terms...), vectors...)
	}
	return dst
}

// errBags means that stored bags are damaged.
var errBags = errors.New("the bags of a file are damaged")

// nextBag takes the first bag and its vectors.
func nextBag(data []byte) (bag recall.Bag, vectors []recall.Vector, rest []byte, err error) {
	terms, n := binary.Uvarint(data)
	if n <= 0 {
		return bag, nil, nil, errBags
	}
	size, m := binary.Uvarint(data[n:])
	if data = data[n+max(m, 0):]; m <= 0 || terms > uint64(len(data)) || size > uint64(len(data))-terms {
		return bag, nil, nil, errBags
	}
	if bag, err = recall.ParseBag(data[:terms]); err != nil {
		return bag, nil, nil, err
	}
	vectors, _, err = graph.ParseBuiltIn(data[terms : terms+size])
	return bag, vectors, data[terms+size:], err
}

// Vectors returns a vector of each scope, for backends that index vectors: the vector of its first passage, which has
// its name; nil if there is none.
func (v *Version) Vectors() (list []recall.Vector, err error) {
	data := v.Bags
	for range v.Scopes {
		var vectors []recall.Vector
		if _, vectors, data, err = nextBag(data); err != nil {
			return nil, err
		}
		var first recall.Vector
		if len(vectors) > 0 {
			first = vectors[0]
		}
		list = append(list, first)
	}
	return list, nil
}

// Encode returns the scopes or the texts of a version as they are stored.
func Encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // texts and numbers always marshal
		panic(err)
	}
	return string(raw)
}

// Decode is the inverse of [Encode].
func Decode[V any](text string) (v V, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &v)
	}
	return v, err
}

// Hasher computes the hash of an index from its rows, in the order of the log. Sequences do not count, see
// projection.ReadStore.
type Hasher struct{ parts []string }

// NewHasher starts the hash of an index.
func NewHasher(id events.ConversationID, deleted bool) *Hasher {
	return &Hasher{[]string{id.Tenant, id.ID, fmt.Sprint(deleted)}}
}

// Version feeds a version, without its texts.
func (h *Hasher) Version(v *Version) {
	h.add("version", v.EventID, v.Path, v.Hash, fmt.Sprint(v.Removed), v.Language, fmt.Sprint(v.Lines, v.Left), Encode(v.Scopes), string(v.Bags))
}

// Scan feeds a scan. All versions come first.
func (h *Hasher) Scan(s *Scan) {
	h.add("scan", s.EventID, s.Project, s.Root, fmt.Sprint(s.Done, s.Files))
}

// add hashes now and then, so that a long index takes no memory.
func (h *Hasher) add(parts ...string) {
	sum := events.DigestOf(append(h.parts, parts...)...)
	h.parts = []string{string(sum[:])}
}

// Sum returns the hash.
func (h *Hasher) Sum() events.Digest { return events.DigestOf(h.parts...) }
