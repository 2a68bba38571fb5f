package neo4jstore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

var (
	accessProps  = props{"conversation", "tenant", "conversation_id", "at", "seq", "rank", "path", "kind", "tool", "turn", "count", "current", "place", "revoked", "about"}
	trackedProps = props{"seq", "tool", "arguments", "cwd", "turn"}
	earlyProps   = props{"seq", "failed", "result", "files"}
	waitingProps = props{"key", "conversation", "tool_call_id"}
)

var filesLayout = Layout{
	Projection: "files", Conversation: "FilesConversation", Event: "FilesEvent", Payloads: []string{"FilesEvent"},
	Statements: []string{selectFilesStates, selectWaiting, selectRevoked, revokeAccesses, countDown, selectPlaces},
	Writes: []Piece{
		NewConversations("FilesConversation"),
		movePiece("FilesConversation", "cwd", "turn_count"),
		Tombstone("FilesConversation", ""),
		Events("FilesEvent"),
		NewPiece("metCalls", "UNWIND $in.rows AS key MATCH (t:TrackedCall {key: key}) DELETE t"),
		NewPiece("metResults", "UNWIND $in.rows AS key MATCH (e:EarlyResult {key: key}) DELETE e"),
		NewPiece("trackedCalls", "UNWIND $in.rows AS r CREATE (:TrackedCall "+slices.Concat(waitingProps, trackedProps).create()+")"),
		NewPiece("earlyResults", "UNWIND $in.rows AS r CREATE (:EarlyResult "+slices.Concat(waitingProps, earlyProps).create()+")"),
		NewPiece("ended", "UNWIND $in.rows AS r MATCH (a:FileAccess {conversation: r.conversation, at: r.at}) SET a.until = r.until, a.current = r.current"),
		NewPiece("paths", "UNWIND $in.rows AS r MERGE (f:File {key: r.key}) SET f.tenant = r.tenant, f.path = r.path"),
		NewPiece("accesses", "UNWIND $in.rows AS r CREATE (a:FileAccess "+accessProps.create()+`)
			WITH a, r MATCH (f:File {key: r.file}) CREATE (a)-[:OF_FILE]->(f)`),
	},
	Tidy: []Piece{
		NewPiece("revoked", "UNWIND $in.rows AS r MATCH (a:FileAccess {conversation: r.conversation, at: r.at}) SET a.current = null"),
	},
	Sweeps: []string{
		`MATCH (a:FileAccess) WHERE a.conversation = $key AND a.at IS NOT NULL
			MATCH (a)-[x:OF_FILE]->(f:File) WITH x, f LIMIT $limit WITH collect(x) AS links, collect(DISTINCT f) AS files
			CALL (links) { UNWIND links AS x DELETE x }
			CALL (files) { UNWIND files AS f SET f.path = f.path WITH f WHERE NOT EXISTS { (f)<-[:OF_FILE]-() } DELETE f }
			RETURN size(links)`,
		Empty("FileAccess", "at"), "MATCH (n:TrackedCall {conversation: $key}) WITH n LIMIT $limit DELETE n RETURN count(*)",
		"MATCH (n:EarlyResult {conversation: $key}) WITH n LIMIT $limit DELETE n RETURN count(*)", Empty("FilesEvent", "seq"),
	},
	Nodes: []Nodes{{"FilesEvent", bySeq}, {"FileAccess", []string{"at"}}, {Label: "File"}, {Label: "TrackedCall"}, {Label: "EarlyResult"}},
}

type filesTx struct{ *Tx }

var selectFilesStates = statesOf("FilesConversation", "cwd", "turn_count")

// Load implements Work.
func (t *filesTx) Load(ctx context.Context, list []*events.Recorded) (*graph.FilesUnit, error) {
	u := graph.NewFilesUnit()
	if err := loadStates(ctx, t.Tx, u.States, list, selectFilesStates, func(v *values, s *graph.FilesState) error {
		s.Cwd, s.TurnCount = v.text(), v.int()
		return nil
	}); err != nil {
		return nil, err
	}
	return u, t.loadWaiting(ctx, u, list)
}

const selectWaiting = `CALL () {
	UNWIND $in.results AS key MATCH (t:TrackedCall {key: key}) RETURN key, [t.seq, t.tool, t.arguments, t.cwd, t.turn] AS call, null AS result
	UNION ALL UNWIND $in.calls AS key MATCH (e:EarlyResult {key: key}) RETURN key, null AS call, [e.seq, e.failed, e.result, e.files] AS result
} RETURN key, call, result`

// loadWaiting loads the calls that the batch's results belong to, and earlier results of
// the batch's calls.
func (t *filesTx) loadWaiting(ctx context.Context, u *graph.FilesUnit, list []*events.Recorded) error {
	calls, results, refs := []string{}, []string{}, map[string]graph.CallRef{}
	for _, e := range list {
		id := e.Conversation()
		if u.States[id].Key == 0 {
			continue // it has no stored rows
		}
		switch p := e.Payload.(type) {
		case *events.ToolCalled:
			ref := graph.CallRef{Conversation: id, ToolCallID: p.ToolCallID}
			calls = append(calls, t.waitingKey(ref))
			refs[t.waitingKey(ref)] = ref
		case *events.ToolReturned:
			ref := graph.CallRef{Conversation: id, ToolCallID: p.ToolCallID}
			results = append(results, t.waitingKey(ref))
			refs[t.waitingKey(ref)] = ref
		}
	}
	if len(refs) == 0 {
		return nil
	}
	rows, err := t.Run(ctx, selectWaiting, map[string]any{"in": map[string]any{"calls": calls, "results": results}})
	if err != nil {
		return err
	}
	for _, row := range rows {
		key, _ := row[0].(string)
		ref := refs[key]
		if row[1] != nil {
			v := valuesOf(row[1])
			u.Calls.Loaded(ref, graph.TrackedCall{Seq: v.seq(), Tool: v.text(), Arguments: v.text(), Cwd: v.text(), Turn: v.int()})
			if v.err != nil {
				return v.err
			}
			continue
		}
		v := valuesOf(row[2])
		early := graph.EarlyResult{Seq: v.seq(), Failed: v.flag(), Result: v.text()}
		if reported := v.text(); reported != "" {
			if err := json.Unmarshal([]byte(reported), &early.Files); err != nil {
				return err
			}
		}
		u.Early.Loaded(ref, early)
		if v.err != nil {
			return v.err
		}
	}
	return nil
}

// waitingKey is the key of a call or result that waits for its counterpart.
func (s *store) waitingKey(ref graph.CallRef) string {
	return s.keyIn(ref.Conversation, events.ToolCallKey(ref.ToolCallID))
}

// Save implements Work.
func (t *filesTx) Save(ctx context.Context, u *graph.FilesUnit) error {
	saveStates(t.Tx, u.States, func(s *graph.FilesState, r Row) {
		r.text("cwd", s.Cwd)
		r.count("turn_count", s.TurnCount)
	})
	t.AddEvents(u.Lives)
	t.saveWaiting(u)
	if err := t.revoke(ctx, u.Revoked); err != nil {
		return err
	}
	return t.saveAccesses(ctx, u.Accesses)
}

// saveWaiting stores rows that wait for a later batch, and deletes those that no longer wait.
func (t *filesTx) saveWaiting(u *graph.FilesUnit) {
	for _, ref := range u.Calls.Met() {
		t.Add("metCalls", t.waitingKey(ref))
	}
	for _, ref := range u.Early.Met() {
		t.Add("metResults", t.waitingKey(ref))
	}
	waits := func(ref graph.CallRef, seq uint64) Row {
		return Row{"key": t.waitingKey(ref), "conversation": t.Key(ref.Conversation), "tool_call_id": ref.ToolCallID, "seq": number(seq)}
	}
	for _, ref := range u.Calls.New() {
		c := u.Calls.Row(ref)
		r := waits(ref, c.Seq)
		r.text("tool", c.Tool)
		r.text("arguments", c.Arguments)
		r.text("cwd", c.Cwd)
		r.count("turn", c.Turn)
		t.Add("trackedCalls", r)
	}
	for _, ref := range u.Early.New() {
		e := u.Early.Row(ref)
		r := waits(ref, e.Seq)
		r["failed"] = e.Failed
		r.text("result", e.Result)
		if len(e.Files) > 0 {
			raw, _ := json.Marshal(e.Files) // of texts
			r["files"] = string(raw)
		}
		t.Add("earlyResults", r)
	}
}

const (
	selectRevoked = `UNWIND $in.calls AS r MATCH (a:FileAccess) USING INDEX SEEK a:FileAccess(conversation, at)
		WHERE a.conversation = r.conversation AND a.at >= r.seq * 1000 AND a.at < (r.seq + 1) * 1000 AND a.revoked IS NULL
		RETURN a.conversation, a.at, a.place, a.count, a.current IS NOT NULL AND a.until IS NULL, r.by`
	revokeAccesses = "UNWIND $in.rows AS r MATCH (a:FileAccess {conversation: r.conversation, at: r.at}) SET a.revoked = r.by, a.until = coalesce(a.until, r.by), a.place = null"
	// The newest of a place is the current one, or becomes it.
	countDown = `UNWIND $in.places AS r CALL (r) {
			MATCH (a:FileAccess) USING INDEX SEEK a:FileAccess(place, at) WHERE a.place = r.place AND a.at >= 0 RETURN a ORDER BY a.place DESC, a.at DESC LIMIT 1
		} SET a.count = coalesce(r.count, a.count) - r.revoked, a.current = a.at, a.until = null, a.since = coalesce(r.since, a.since)`
)

// revoke ends the accesses of calls that failed. If one was current, the newest access that
// it had superseded is current again.
func (t *filesTx) revoke(ctx context.Context, list []projection.Of[graph.FilesState, graph.Revocation]) error {
	if len(list) == 0 {
		return nil
	}
	calls := make([]any, len(list))
	for i, r := range list {
		calls[i] = Row{"conversation": t.Key(r.State.ID), "seq": number(r.Row.Call), "by": number(r.Row.Seq)}
	}
	found, err := t.Run(ctx, selectRevoked, In("calls", calls))
	if err != nil || len(found) == 0 {
		return err
	}
	var rows []any
	places := map[string]Row{}
	for _, one := range found {
		v := &values{list: one}
		conversation, at, place, count, current, by := v.text(), v.seq(), v.text(), v.int(), v.flag(), v.seq()
		if v.err != nil {
			return v.err
		}
		rows = append(rows, Row{"conversation": conversation, "at": number(at), "by": number(by)})
		p := places[place]
		if p == nil {
			p = Row{"place": place, "revoked": 0}
			places[place] = p
		}
		p["revoked"] = p["revoked"].(int) + 1
		if current {
			p["count"], p["since"] = count, number(by)
		}
	}
	t.after["revoked"] = rows
	if _, err := t.Run(ctx, revokeAccesses, In("rows", rows)); err != nil {
		return err
	}
	sorted := make([]any, 0, len(places))
	for _, place := range slices.Sorted(maps.Keys(places)) {
		sorted = append(sorted, places[place])
	}
	_, err = t.Run(ctx, countDown, In("places", sorted))
	return err
}

const selectPlaces = `UNWIND $in.places AS place CALL (place) {
		MATCH (a:FileAccess) USING INDEX SEEK a:FileAccess(place, at) WHERE a.place = place AND a.at >= 0 RETURN a ORDER BY a.place DESC, a.at DESC LIMIT 2
	} RETURN place, a.conversation, a.at, a.count, a.until`

// saveAccesses adds accesses. The newest of each path and kind supersedes the current one
// and continues its count. A superseded access stays among the current ones until the next
// is superseded, because readers of the settled sequence still need it.
func (t *filesTx) saveAccesses(ctx context.Context, list []projection.Of[graph.FilesState, graph.NewAccess]) error {
	if len(list) == 0 {
		return nil
	}
	counts, newest, order := map[string]int{}, map[string]int{}, []string{}
	at := make([]string, len(list))
	for i := range list {
		a := &list[i]
		at[i] = t.placeOf(a.State.ID, a.Row.Path, a.Row.Kind)
		if a.Row.Revoked == 0 {
			if counts[at[i]] == 0 {
				order = append(order, at[i])
			}
			counts[at[i]]++
			newest[at[i]] = i
		}
	}
	found, err := t.Run(ctx, selectPlaces, In("places", order))
	if err != nil {
		return err
	}
	superseded := map[string]bool{}
	for _, one := range found {
		v := &values{list: one}
		p, conversation, where, count, until := v.text(), v.text(), v.seq(), v.int(), optional[int64](v)
		if v.err != nil {
			return v.err
		}
		r := Row{"conversation": conversation, "at": number(where)}
		if !superseded[p] {
			superseded[p] = true
			counts[p] += count
			r["current"], r["until"] = number(where), number(list[newest[p]].Row.Seq)
		} else if until != nil { // readers that still find it see that it has ended
			r["until"] = *until
		}
		t.Add("ended", r)
	}
	paths := map[string]Row{}
	for i := range list {
		t.saveAccess(&list[i], at[i], counts[at[i]], newest, i, paths)
	}
	for _, key := range slices.Sorted(maps.Keys(paths)) { // sorted, so that concurrent writers lock in the same order
		t.Add("paths", paths[key])
	}
	return nil
}

func (t *filesTx) saveAccess(of *projection.Of[graph.FilesState, graph.NewAccess], where string, count int, newest map[string]int, i int, paths map[string]Row) {
	a, id := &of.Row, of.State.ID
	file := t.tenantKey(id.Tenant) + "/" + a.Path
	paths[file] = Row{"key": file, "tenant": id.Tenant, "path": a.Path}
	r := Row{
		"conversation": t.Key(id), "tenant": id.Tenant, "conversation_id": id.ID, "file": file,
		"at": place(a.Seq, a.Rank), "seq": number(a.Seq), "rank": a.Rank, "path": a.Path, "kind": string(a.Kind), "tool": a.Tool, "count": count,
	}
	r.count("turn", a.Turn)
	r.text("about", t.codeKey(id.Tenant, graph.CodeBase(a.Path)))
	if a.Revoked != 0 {
		r["revoked"] = number(a.Revoked)
	} else {
		r["place"] = where
	}
	if last, ok := newest[where]; ok && last == i {
		r["current"] = r["at"]
	}
	t.Add("accesses", r)
}

// placeOf is the key of a path and kind in a conversation.
func (s *store) placeOf(id events.ConversationID, path string, kind files.Kind) string {
	return s.digestKey(events.DigestOf("place", id.Tenant, id.ID, path, string(kind)))
}
