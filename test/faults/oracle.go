package main

import (
	"cmp"
	"fmt"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// kind is the kind of a row in the graph.
type kind byte

const (
	kindMessage kind = 'm'
	kindCall    kind = 'c'
	kindResult  kind = 'r'
)

// row is an event of a conversation in the form that the read model "graph" has it.
type row struct {
	seq      uint64
	kind     kind
	identity events.Digest
}

// logged is a message as the log holds it.
type logged struct {
	seq      uint64
	identity events.Digest // zero if it is unreadable
	message  events.Digest
}

// expected is what a projection must make of the log. It has its own implementation of the rules:
// the first event of an identity, or of a payload's id, counts; a repeat is a duplicate, and other
// content is refused; nothing follows a deletion.
type expected struct {
	name                string
	reduced             map[string]bool // types of events that it reduces
	applied, duplicates uint64
	failed              map[uint64]bool // sequences
	deleted             map[string]bool // conversations
	claims              map[events.Digest]claim
}

// claim is the event that holds a key, and its content.
type claim struct {
	seq     uint64
	content events.Digest
}

func newExpected(name string, types []string) *expected {
	x := &expected{name: name, reduced: map[string]bool{}, failed: map[uint64]bool{}, deleted: map[string]bool{}, claims: map[events.Digest]claim{}}
	for _, t := range types {
		x.reduced[t] = true
	}
	return x
}

// event takes a valid event with its keys, and reports whether it is applied.
func (x *expected) event(r events.Recorded, content events.Digest, keys []events.Digest) bool {
	if !x.reduced[r.Type] {
		return false
	}
	var holder claim
	for _, key := range keys {
		if c, held := x.claims[key]; held {
			holder = c
			break
		}
	}
	switch {
	case x.deleted[r.Subject], holder.seq > 0 && holder.content != content:
		x.failed[r.Seq] = true
		return false
	case holder.seq > 0:
		x.duplicates++
		return false
	}
	for _, key := range keys {
		x.claims[key] = claim{r.Seq, content}
	}
	x.applied++
	x.deleted[r.Subject] = r.Type == events.TypeConversationDeleted
	return true
}

// oracle reads the log and determines what must be in the read models.
type oracle struct {
	graph, files, summaries *expected

	log     []logged
	first   map[events.Digest]uint64 // position of the applied event of an identity
	rows    map[string][]row         // by conversation
	stories map[string]*story        // likewise
	written map[events.Digest]int    // how often the log has each event of the summarizers
}

func newOracle() *oracle {
	g, f, s := graph.Projection(), graph.FilesProjection(files.DefaultTable()), summary.Projection()
	return &oracle{
		graph: newExpected(g.Name, g.Types()), files: newExpected(f.Name, f.Types()), summaries: newExpected(s.Name, s.Types()),
		first: map[events.Digest]uint64{}, rows: map[string][]row{}, stories: map[string]*story{}, written: map[events.Digest]int{},
	}
}

// message takes the next message of the log.
func (o *oracle) message(m eventlog.Message) error {
	if n := len(o.log); n > 0 && m.Seq <= o.log[n-1].seq {
		return fmt.Errorf("the log delivers sequence %d after %d", m.Seq, o.log[n-1].seq)
	}
	entry := logged{seq: m.Seq, message: digest(m)}
	r, address, err := m.Decode()
	if err != nil {
		if r.ID != "" {
			r.Subject = address.Conversation
			entry.identity = r.Identity(address.Tenant)
		}
		o.log = append(o.log, entry)
		o.graph.failed[m.Seq], o.files.failed[m.Seq], o.summaries.failed[m.Seq] = true, true, true
		return nil
	}
	entry.identity = r.Identity(r.Tenant)
	o.log = append(o.log, entry)

	content, keys := r.Content(), []events.Digest{entry.identity}
	if key := r.Payload.Key(); key != "" {
		keys = append(keys, projection.PayloadKey(r.Conversation(), key))
	}
	o.files.event(r, content, keys)
	o.summaries.event(r, content, keys)
	if r.Source == summary.Source {
		o.written[entry.identity]++
	}
	if o.graph.event(r, content, keys) {
		o.first[entry.identity] = r.Seq
		o.apply(r, entry.identity)
		o.tell(r)
	}
	return nil
}

// apply notes the row that an event makes in the graph.
func (o *oracle) apply(r events.Recorded, identity events.Digest) {
	id := r.Subject
	list := o.rows[id]
	switch r.Payload.(type) {
	case *events.MessageCreated:
		list = append(list, row{r.Seq, kindMessage, identity})
	case *events.ToolCalled:
		list = append(list, row{r.Seq, kindCall, identity})
	case *events.ToolReturned:
		list = append(list, row{r.Seq, kindResult, identity})
	case *events.ConversationDeleted:
		list = nil
	}
	o.rows[id] = list
}

// at returns the message at a sequence.
func (o *oracle) at(seq uint64) (logged, bool) {
	i, there := slices.BinarySearchFunc(o.log, seq, func(m logged, seq uint64) int { return cmp.Compare(m.seq, seq) })
	if !there {
		return logged{}, false
	}
	return o.log[i], true
}
