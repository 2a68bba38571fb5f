package neo4jstore

import (
	"net/url"
	"strconv"

	"mneme/events"
)

// maxSeq is the greatest sequence that Neo4j's integers can hold.
const maxSeq = uint64(1<<63 - 1)

// number is a sequence as a parameter.
func number(seq uint64) int64 { return int64(min(seq, maxSeq)) }

// tenantKey is what the keys of all conversations of a tenant begin with.
func (s *store) tenantKey(tenant string) string {
	return strconv.Itoa(s.generation) + "/" + url.PathEscape(tenant)
}

// key is the key of a conversation. The tenant is escaped so that it ends at the
// second slash.
func (s *store) key(id events.ConversationID) string { return s.tenantKey(id.Tenant) + "/" + id.ID }

// keyIn is the key of something that has a name in a conversation.
func (s *store) keyIn(id events.ConversationID, name string) string {
	return s.digestKey(events.DigestOf(id.Tenant, id.ID, name))
}

// digestKey is a digest as a key of this generation.
func (s *store) digestKey(d events.Digest) string {
	return strconv.Itoa(s.generation) + "/" + d.String()
}

// checkpointKey is the key of a partition.
func (s *store) checkpointKey(partition int) string {
	return strconv.Itoa(s.generation) + "/" + strconv.Itoa(partition)
}

// prefix is what every key of the generation begins with.
func (s *store) prefix() string { return strconv.Itoa(s.generation) + "/" }
