package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// fixture is a load of the sessions in this repository.
func fixture(t *testing.T, seed uint64) *load {
	t.Helper()
	list, err := sessions(t.Context(), filepath.Join("..", "..", fixtures))
	require.NoError(t, err)
	l, err := newLoad(seed, list)
	require.NoError(t, err)
	return l
}

// recording is a log and its acknowledged events.
type recording struct {
	log    []eventlog.Message
	ledger []entry
}

// publish adds an event of a conversation to the log and to the ledger.
func (r *recording) publish(t *testing.T, conversation, index int, e events.Event) {
	t.Helper()
	m := r.store(t, e)
	r.ledger = append(r.ledger, entry{conversation: conversation, index: index, seq: m.Seq, identity: e.Identity(tenant), message: digest(m)})
}

// store adds an event only to the log.
func (r *recording) store(t *testing.T, e events.Event) eventlog.Message {
	t.Helper()
	sent, err := eventlog.NewMsg(tenant, e)
	require.NoError(t, err)
	m := eventlog.Message{Seq: uint64(len(r.log) + 1), Subject: sent.Subject, Header: sent.Header, Data: sent.Data}
	r.log = append(r.log, m)
	return m
}

// renumber gives messages consecutive sequences, in order.
func renumber(log []eventlog.Message) []eventlog.Message {
	log = slices.Clone(log)
	for i := range log {
		log[i].Seq = uint64(i + 1)
	}
	return log
}

// record publishes three conversations in which tools are used and events have times, one event of each in turn.
func record(t *testing.T) *recording {
	t.Helper()
	l, r := fixture(t, 1), &recording{}
	var list []session
	for n := 0; len(list) < 3; n++ {
		require.Less(t, n, 1000, "the fixtures have no such conversations")
		s, err := l.conversation(n)
		require.NoError(t, err)
		used := slices.ContainsFunc(s[:minEvents], func(e events.Event) bool { return e.Type == events.TypeToolReturned })
		if used && !slices.ContainsFunc(s[:minEvents], func(e events.Event) bool { return e.Time.IsZero() }) {
			list = append(list, s)
		}
	}
	for i := range minEvents {
		for n, s := range list {
			r.publish(t, n, i, s[i])
		}
	}
	return r
}

// oracleOf reads a log.
func oracleOf(t *testing.T, log []eventlog.Message) *oracle {
	t.Helper()
	o := newOracle()
	for _, m := range log {
		require.NoError(t, o.message(m))
	}
	return o
}
