package neo4jstore

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

const (
	// The new partition shows what its ancestors showed, and continues their count of repairs.
	showInherited = `MATCH (s:$EngineSettled {key: $key}) SET s.seq = CASE WHEN s.seq < $seq THEN $seq ELSE s.seq END
		WITH s MATCH (p:$EngineSettled) WHERE p.key IN $ancestors
		WITH s, max(p.repairs) AS repairs SET s.repairs = coalesce(s.repairs, repairs)`

	inheritedAtOnce = 1000
)

// Inherit implements projection.Inheritor. A conversation is shown up to the settled sequence of its partition. So that
// of the new partition is raised before the conversations move: otherwise their newest rows would be hidden in between.
func (s *store) Inherit(ctx context.Context, ancestors []int, cp projection.Checkpoint, belong func(events.ConversationID) bool) error {
	key := s.checkpointKey(cp.Partition)
	from := make([]string, len(ancestors))
	for i, ancestor := range ancestors {
		from[i] = s.checkpointKey(ancestor)
	}
	if _, err := s.write(ctx, s.engine(showInherited), map[string]any{"key": key, "ancestors": from, "seq": number(cp.Seq)}); err != nil {
		return err
	}
	var moved []string
	err := s.scan(ctx, "MATCH (c:"+s.Conversation+") WHERE c.key STARTS WITH $prefix AND c.checkpoint IN $ancestors RETURN c.key, c.tenant, c.id",
		map[string]any{"prefix": s.prefix(), "ancestors": from}, func(v *values) {
			conversation, id := v.text(), events.ConversationID{Tenant: v.text(), ID: v.text()}
			if v.err == nil && belong(id) {
				moved = append(moved, conversation)
			}
		})
	if err != nil {
		return err
	}
	for len(moved) > 0 {
		n := min(len(moved), inheritedAtOnce)
		params := In("keys", moved[:n])
		params["to"] = key
		if _, err := s.write(ctx, "UNWIND $in.keys AS key MATCH (c:"+s.Conversation+" {key: key}) SET c.checkpoint = $to", params); err != nil {
			return err
		}
		moved = moved[n:]
	}
	return nil
}
