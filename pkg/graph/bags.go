package graph

import (
	"context"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
)

// Bag holds, encoded, what searches need from a message. It is stored with the message,
// so that loading an index reads no texts.
type Bag struct {
	Seq     uint64
	N       int    // number of the message, see Position
	Terms   []byte // an encoded recall.Bag
	Vectors []byte // its passages' built-in embeddings, see AppendBuiltIn

	// Words are the distinct terms by which a search over all conversations finds the message. They
	// are written with the bag and not read with it.
	Words []string
}

// Decode returns the bag, the vectors of its passages, and the table that made them, see
// [ParseBuiltIn].
func (b *Bag) Decode() (bag recall.Bag, vectors []recall.Vector, table byte, err error) {
	if bag, err = recall.ParseBag(b.Terms); err != nil {
		return bag, nil, 0, err
	}
	vectors, table, err = ParseBuiltIn(b.Vectors)
	return bag, vectors, table, err
}

// said is a new message that needs a bag.
type said struct {
	seq     uint64
	n       int
	message recall.Message
}

// made is a bag without the message's number, or why there is none.
type made struct {
	bag Bag
	err error
}

// derive makes the bag of a message ahead of the transaction, because bags are most of a batch's
// computation and depend on nothing else.
func derive(e *events.Recorded) func(*Unit) {
	p, ok := e.Payload.(*events.MessageCreated)
	if !ok {
		return nil
	}
	bag, err := bagOf(e.Seq, messageOf(e, p))
	seq := e.Seq
	return func(u *Unit) { u.made[seq] = made{bag, err} }
}

// messageOf returns what searches see of a message.
func messageOf(e *events.Recorded, p *events.MessageCreated) recall.Message {
	return recall.Message{Role: p.Role, Speaker: name(p.Speaker), Session: name(p.Session), Time: e.Time, Content: kept(p.Content)}
}

// Bags returns the bags of the new messages that have text. It makes those that were not derived
// ahead. An error is projection.ErrRejected, so that only its message fails.
func (u *Unit) Bags() ([]projection.Of[State, Bag], error) {
	bags := make([]projection.Of[State, Bag], 0, len(u.said))
	for _, s := range u.said {
		m, ok := u.made[s.Row.seq]
		if !ok {
			m.bag, m.err = bagOf(s.Row.seq, s.Row.message)
		}
		if m.err != nil {
			return nil, m.err
		}
		if m.bag.Terms != nil {
			m.bag.N = s.Row.n
			bags = append(bags, projection.RowOf(s.State, m.bag))
		}
	}
	return bags, nil
}

// bagOf returns the bag of a message, which is empty without a text.
func bagOf(seq uint64, m recall.Message) (b Bag, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: taking the terms of message %d panicked: %v", projection.ErrRejected, seq, r)
		}
	}()
	bag := recall.NewBag(m)
	if len(bag.Passages) == 0 {
		return Bag{}, nil
	}
	terms, err := bag.AppendBinary(nil)
	if err != nil {
		return Bag{}, err
	}
	vectors := AppendBuiltIn(make([]byte, 0, len(bag.Passages)*static.Dimensions+1), m.Content, bag.Passages)
	return Bag{Seq: seq, Terms: terms, Vectors: vectors, Words: wordsOf(bag)}, nil
}

// RecallReader reads the rows for a search in one conversation. It returns ErrNotFound
// like Reader.
type RecallReader interface {
	// Bags reads bags in order of sequence. It returns fewer than requested only at the
	// end.
	Bags(ctx context.Context, id events.ConversationID, q BagQuery) ([]Bag, error)
	// MessagesAt reads the messages that have these sequences, in the order of the log.
	// Unknown sequences are left out.
	MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) ([]Message, error)
}

// BagQuery selects bags.
type BagQuery struct {
	From   uint64 // only sequences from this one on
	Before uint64 // only sequences below this one; 0 means all
	Limit  int    // 0 means 50
}
