package graph

import (
	"context"

	"mneme/events"
	"mneme/pkg/recall"
	"mneme/pkg/recall/static"
)

// Bag is what the search in a conversation needs of a message, encoded. It is made with
// the message, so that an index is loaded without texts.
type Bag struct {
	Seq     uint64
	N       int    // of the message, see Position
	Terms   []byte // of recall.Bag
	Vectors []byte // of its passages by the built-in embeddings: static.Dimensions bytes each
}

// Decode gives the bag and the vectors of its passages. A passage of which the model
// knows no word has no vector.
func (b *Bag) Decode() (recall.Bag, []recall.Vector, error) {
	bag, err := recall.ParseBag(b.Terms)
	if err != nil {
		return bag, nil, err
	}
	vectors, err := recall.ParseVectors(b.Vectors, static.Dimensions)
	return bag, vectors, err
}

// bagOf is the bag of the nth message, of which this content is kept; false if it has no text
// to search in.
func bagOf(e *events.Recorded, p *events.MessageCreated, n int, content Body) (Bag, bool) {
	bag := recall.NewBag(recall.Message{
		Role: p.Role, Speaker: name(p.Speaker), Session: name(p.Session), Time: e.Time, Content: content.Text,
	})
	if len(bag.Passages) == 0 {
		return Bag{}, false
	}
	terms, err := bag.AppendBinary(nil)
	if err != nil {
		return Bag{}, false // no NewBag makes one that can't be encoded
	}
	vectors := make([]byte, 0, len(bag.Passages)*static.Dimensions)
	for _, passage := range bag.Passages {
		v := recall.Quantize(static.Embed(content.Text[passage.Start:passage.End]))
		vectors = recall.AppendVector(vectors, v, static.Dimensions)
	}
	return Bag{Seq: e.Seq, N: n, Terms: terms, Vectors: vectors}, true
}

// RecallReader reads what a search in one conversation needs. It returns ErrNotFound as
// Reader does.
type RecallReader interface {
	// Bags reads bags in the order of their sequences, from a sequence on: as many as are
	// asked for, and fewer only at the end.
	Bags(ctx context.Context, id events.ConversationID, q BagQuery) ([]Bag, error)
	// MessagesAt reads the messages that have these sequences, in the order of the log.
	// Those that the conversation does not have are left out.
	MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) ([]Message, error)
}

// BagQuery selects bags.
type BagQuery struct {
	From   uint64 // only sequences from this one on
	Before uint64 // only sequences below this one; 0 means all
	Limit  int    // 0 means 50
}
