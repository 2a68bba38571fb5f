package erasure

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// maxHashes limits how many hashes of conversations a report lists; the record must stay small.
const maxHashes = 1000

// Report says what an erasure removed. It holds no content, and no ids except those of its scope.
type Report struct {
	Scope         Scope     `json:"scope"`
	AskedAt       time.Time `json:"asked_at"`
	MarkedAt      time.Time `json:"marked_at,omitzero"` // every conversation has its tombstone
	ErasedAt      time.Time `json:"erased_at,omitzero"` // every read model had applied it, and the log holds nothing else
	EndedAt       time.Time `json:"ended_at,omitzero"`  // the stores are clean too
	Conversations int       `json:"conversations"`
	// ConversationHashes are HashOf the tenant and the id of each conversation, at most a thousand.
	ConversationHashes []string          `json:"conversation_hashes,omitempty"`
	Events             map[string]uint64 `json:"events"` // erased in the log, by kind; "other" if the subject can't be read
	Bytes              uint64            `json:"bytes"`  // of their subjects, headers and bodies
	FirstSeq           uint64            `json:"first_seq,omitempty"`
	LastSeq            uint64            `json:"last_seq,omitempty"`
	Stores             []StoreReport     `json:"stores"`
	NotReached         []string          `json:"not_reached"`
	SHA256             string            `json:"sha256,omitempty"`
}

// StoreReport is the part of one generation of one read model.
type StoreReport struct {
	Store         string `json:"store"`
	Projection    string `json:"projection"`
	Generation    int    `json:"generation"`
	Conversations int    `json:"conversations"` // whose rows were deleted and made again from what the log still has
	BytesBefore   int64  `json:"bytes_before,omitempty"`
	BytesAfter    int64  `json:"bytes_after,omitempty"`
	Left          string `json:"left,omitempty"`
}

// giveUp says that a read model was not reached, and why.
func (r *Report) giveUp(name, why string) {
	r.NotReached = append(r.NotReached, fmt.Sprintf("%s (%s): erase again once it has applied all", readModel(name), why))
}

// tryAgain takes back what giveUp said.
func (r *Report) tryAgain(name string) {
	r.NotReached = slices.DeleteFunc(slices.Clone(r.NotReached), func(s string) bool { return strings.HasPrefix(s, readModel(name)+" ") })
}

// copyOn says that a server of a cluster was not there when messages were overwritten, and how to get rid of its copy.
func copyOn(server string) string {
	return fmt.Sprintf("the copy of the log on the NATS server %s, which was down or behind: when it is back it removes the messages, but does not overwrite them. Make its copy again: nats stream edit %s --replicas 1, then the same with the number from before", server, natsdeploy.Stream)
}

// interrupted says that a NATS server may have stopped between removing a message and overwriting it: it does the one before
// the other, and cannot be asked to overwrite a message that it has removed.
func (r *Report) interrupted(seq uint64) {
	r.NotReached = append(r.NotReached, fmt.Sprintf("the bytes of the event at sequence %d: the NATS server stopped while it erased it, and may have removed but not overwritten it. mneme erase --prove says whether they are left", seq))
}

// keepsCopy reports whether the report says so about a server.
func (r *Report) keepsCopy(server string) bool { return slices.Contains(r.NotReached, copyOn(server)) }

func readModel(name string) string { return "the read model " + name }

// notReached is what no erasure can reach.
var notReached = []string{
	"backups of the log and of the read models, exports, and copies of either",
	"in a replicated log, the servers' Raft logs, which hold the events for some minutes, until their next snapshot",
	"what agents, models, trace collectors and model endpoints have received",
	"other conversations that quote this one, such as those whose agent was shown a context of it",
	"the cache of an embedding endpoint, which holds vectors under hashes of texts: delete it to clear it",
	"files that mneme moved aside because they were damaged, and blocks that the file system has freed",
	"the memory of other running programs, until they need the room or restart",
}

// total counts the erased events.
func (r *Report) total() (n uint64) {
	for _, k := range r.Events {
		n += k
	}
	return n
}

// seal sets the hash over everything else.
func (r *Report) seal() error {
	sum, err := r.sum()
	r.SHA256 = sum
	return err
}

// Sealed reports whether the report is unchanged since it was made.
func (r *Report) Sealed() bool {
	sum, err := r.sum()
	return err == nil && sum == r.SHA256
}

func (r *Report) sum() (string, error) {
	bare := *r
	bare.SHA256 = ""
	raw, err := json.Marshal(bare)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// HashOf identifies a conversation in a report: only those who know the id can find it there.
func HashOf(tenant, conversation string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(tenant), tenant, conversation))
	return hex.EncodeToString(sum[:8])
}
