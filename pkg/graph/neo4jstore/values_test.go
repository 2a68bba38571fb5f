package neo4jstore

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

func TestValuesAreTakenInOrder(t *testing.T) {
	t.Parallel()
	digest := events.DigestOf("x")
	v := &values{list: []any{"text", int64(7), int64(1 << 62), true, digest.String(), []any{"a", "b"}, nil, 1.5, nil, nil, nil, nil}}
	require.Equal(t, "text", v.text())
	require.Equal(t, 7, v.int())
	require.EqualValues(t, 1<<62, v.seq())
	require.True(t, v.flag())
	require.Equal(t, digest, v.digest())
	require.Equal(t, []string{"a", "b"}, v.strings())
	require.Nil(t, optional[float64](v))
	require.InDelta(t, 1.5, *optional[float64](v), 0)
	require.Empty(t, v.text(), "what is not stored is empty")
	require.Zero(t, v.int())
	require.Zero(t, v.digest())
	require.Nil(t, v.strings())
	require.NoError(t, v.err)
	require.Zero(t, v.int())
	require.ErrorContains(t, v.err, "12 values")
}

func TestTheFirstMismatchedValueIsTheError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value any
		take  func(*values)
	}{
		"a number for a text":   {int64(1), func(v *values) { v.text() }},
		"a text for a number":   {"1", func(v *values) { v.int() }},
		"a fraction":            {1.5, func(v *values) { v.seq() }},
		"no digest":             {"zz", func(v *values) { v.digest() }},
		"a digest that is cut":  {"abcd", func(v *values) { v.digest() }},
		"a list of other types": {[]any{"a", int64(1)}, func(v *values) { v.strings() }},
		"a flag":                {"true", func(v *values) { optional[bool](v) }},
	} {
		v := &values{list: []any{c.value, int64(1)}}
		c.take(v)
		require.Error(t, v.err, name)
		first := v.err
		v.text()
		require.Equal(t, first, v.err, name)
	}
	require.Error(t, valuesOf("text").err)
}

func TestABodyIsReadBackUnchanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := graph.Body{Text: rapid.String().Draw(r, "text"), Bytes: rapid.IntRange(0, 9).Draw(r, "bytes"), Chars: rapid.IntRange(0, 9).Draw(r, "chars")}
		if rapid.Bool().Draw(r, "cut") {
			b.Hash = events.DigestOf(b.Text)
		}
		to := Row{}
		to.body("a", "b", "c", "d", &b)
		v := &values{}
		for _, name := range []string{"a", "b", "c", "d"} {
			value := to[name]
			if n, ok := value.(int); ok {
				value = int64(n)
			}
			v.list = append(v.list, value)
		}
		require.Equal(r, b, v.body())
		require.NoError(r, v.err)
	})
}

func TestKeysOfDifferentThingsDiffer(t *testing.T) {
	t.Parallel()
	text := rapid.StringOfN(rapid.SampledFrom([]rune("a/%2F.1 é")), 1, 4, -1)
	rapid.Check(t, func(r *rapid.T) {
		of := func() (*store, events.ConversationID) {
			return &store{generation: rapid.IntRange(1, 12).Draw(r, "generation")}, events.ConversationID{Tenant: text.Draw(r, "tenant"), ID: text.Draw(r, "id")}
		}
		s, a := of()
		u, b := of()
		same := s.generation == u.generation && a == b
		require.Equal(r, same, s.Key(a) == u.Key(b), "%s and %s", s.Key(a), u.Key(b))
		require.Equal(r, same, s.payloadKey(a, "m") == u.payloadKey(b, "m"))
		require.Equal(r, s.generation == u.generation && a.Tenant == b.Tenant, s.tenantKey(a.Tenant) == u.tenantKey(b.Tenant))
	})
}

func TestSequencesAreCappedAtNeo4jsMaximum(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 5, number(5))
	require.EqualValues(t, maxSeq, number(graph.Latest))
	require.EqualValues(t, maxSeq, before(0))
	require.EqualValues(t, 4, before(5))
	require.Equal(t, int64(7005), place(7, 5))
}
