package neo4jstore

import (
	"net/url"
	"strconv"

	"mneme.dev/mneme/events"
)

// maxSeq is the highest sequence that fits Neo4j's integers.
const maxSeq = uint64(1<<63 - 1)

// number returns a sequence as a parameter.
func number(seq uint64) int64 { return int64(min(seq, maxSeq)) }

// tenantKey is the prefix of the keys of a tenant's conversations.
func (s *store) tenantKey(tenant string) string {
	return strconv.Itoa(s.generation) + "/" + url.PathEscape(tenant)
}

// Key is the key of a conversation. The tenant is escaped so that it ends at the
// second slash.
func (s *store) Key(id events.ConversationID) string { return s.tenantKey(id.Tenant) + "/" + id.ID }

// keyIn returns the key of something named within a conversation.
func (s *store) keyIn(id events.ConversationID, name string) string {
	return s.digestKey(events.DigestOf(id.Tenant, id.ID, name))
}

// digestKey returns a digest as a key of this generation.
func (s *store) digestKey(d events.Digest) string {
	return strconv.Itoa(s.generation) + "/" + d.String()
}

// checkpointKey is the key of a partition.
func (s *store) checkpointKey(partition int) string {
	return strconv.Itoa(s.generation) + "/" + strconv.Itoa(partition)
}

// prefix is the prefix of every key of the generation.
func (s *store) prefix() string { return strconv.Itoa(s.generation) + "/" }
