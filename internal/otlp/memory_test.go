package otlp

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAHistoryThatTwoSessionsShareBelongsToTheOneUsedLast(t *testing.T) {
	t.Parallel()
	m := newMemory()
	end := hash{1}
	began := time.Unix(1, 0)
	for i, key := range []string{"d", "a", "c", "b"} {
		m.sessions[[2]string{"default", key}] = &session{
			tenant: "default", key: key, nameless: true, used: began.Add(time.Duration(i) * time.Second), threads: []*thread{{links: []link{{chain: end}}}},
		}
	}
	for range 20 { // maps have no order
		m.reindex()
		require.Equal(t, "b", m.withHistory(end).key)
	}
}

func TestOfSessionsUsedAtOnceTheSameOneIsForgotten(t *testing.T) {
	t.Parallel()
	end := hash{1}
	for range 20 { // maps have no order
		m := newMemory()
		for i := range maxSessions - 1 {
			key := strconv.Itoa(i)
			m.sessions[[2]string{"default", key}] = &session{tenant: "default", key: key, used: time.Unix(2, 0)}
		}
		for _, key := range []string{"a", "b"} {
			s := &session{tenant: "default", key: key, nameless: true, used: time.Unix(1, 0), threads: []*thread{{links: []link{{chain: end}}}}}
			m.sessions[[2]string{"default", key}] = s
			m.point(s)
		}
		m.remember(newPlan("default", m))
		require.Nil(t, m.session("default", "a"))
		require.Equal(t, "b", m.withHistory(end).key, "it shares the history of the one that was forgotten")
	}
}

func TestAForgottenHistoryIsNotFound(t *testing.T) {
	t.Parallel()
	m := newMemory()
	p := newPlan("default", m)
	for i := range maxSessions + 10 {
		key := strconv.Itoa(i)
		s := p.change(p.session(key, true))
		s.threads = []*thread{{links: []link{{chain: hash{1, byte(i), byte(i >> 8)}}}}}
	}
	m.remember(p)
	require.Len(t, m.sessions, maxSessions)
	require.Len(t, m.nameless, maxSessions, "their histories take no memory either")
}
