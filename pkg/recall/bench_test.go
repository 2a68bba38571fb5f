package recall

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/pkg/recall/static"
)

// recordedMessages returns the first n messages of recorded people and agents: LoCoMo's,
// which are short, BEAM's, half of which are long, and those of coding agents; then the
// same again.
func recordedMessages(t testing.TB, n int) []Message {
	var all []Message
	for _, name := range []string{"locomo", "beam_100k", "claude_code"} {
		for e := range testdata.Events(t, name) {
			if len(all) == n {
				return all
			}
			if e.Kind == "message" {
				all = append(all, Message{Role: e.Role, Speaker: e.MetaText("speaker"), Session: strconv.Itoa(len(all) / 25), Content: e.Content})
			}
		}
	}
	for i := 0; len(all) < n; i++ {
		all = append(all, all[i])
	}
	return all
}

// vectorsOf returns the vectors of a message's passages.
func vectorsOf(m Message) (vectors []Vector) {
	for _, p := range Passages(m.Content) {
		vectors = append(vectors, Quantize(static.Embed(p)))
	}
	return vectors
}

// recordedIndex returns an index of recordedMessages with their vectors.
func recordedIndex(t testing.TB, n int) *Index {
	x := &Index{}
	for i, m := range recordedMessages(t, n) {
		require.NoError(t, x.Add(uint64(i+1), NewBag(m)))
		require.NoError(t, x.SetVectors(uint64(i+1), vectorsOf(m)))
	}
	return x
}

// BenchmarkSearch searches for a page of hits, and for a context of 100,000 characters: for the hits that it needs at
// first, with the others in short, and for as many as there are short messages in it.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 85_792} {
		x := recordedIndex(b, n)
		texts := []string{
			"When did Caroline go to the support group?", "fix the failing test of the session parser in pkg/store",
			"What did you recommend for the database schema and its migrations?", "the kids, the dog and the trip to the mountains in May",
		}
		var queries []Query
		for _, text := range texts {
			queries = append(queries, Query{Text: text, Vector: Quantize(static.Embed(x.Unnamed(text, 0)))})
		}
		for _, vectors := range []bool{false, true} {
			for _, size := range []struct{ limit, most int }{{100, 0}, {1_512, 17_178}, {17_178, 0}} {
				b.Run(fmt.Sprintf("messages=%d/vectors=%t/limit=%d", n, vectors, size.limit), func(b *testing.B) {
					b.ReportAllocs()
					defer mnemetest.ReportCPU(b)()
					for i := 0; b.Loop(); i++ {
						q := queries[i%len(queries)]
						if q.Limit, q.Most = size.limit, size.most; !vectors {
							q.Vector = nil
						}
						x.Search(q)
					}
				})
			}
		}
	}
}

// BenchmarkLoad builds an index of 10,000 messages from their stored bags.
func BenchmarkLoad(b *testing.B) {
	const n = 10_000
	bags, vectors, size := make([][]byte, n), make([][]Vector, n), 0
	for i, m := range recordedMessages(b, n) {
		bags[i] = encoded(b, NewBag(m))
		vectors[i] = vectorsOf(m)
		size += len(bags[i])
	}
	load := func() *Index {
		x := &Index{}
		for i, data := range bags {
			bag, err := ParseBag(data)
			require.NoError(b, err)
			require.NoError(b, x.Add(uint64(i+1), bag))
			require.NoError(b, x.SetVectors(uint64(i+1), vectors[i]))
		}
		return x
	}
	b.ReportAllocs()
	for b.Loop() {
		load()
	}
	b.ReportMetric(float64(size)/1e6, "MB-bags")
}

// heap returns the memory in use, in bytes.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second cycle frees what the first found
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestMemoryOfAnIndexOf10000Messages(t *testing.T) {
	messages := recordedMessages(t, 10_000)
	static.Embed("its table is loaded")
	before := heap()
	x := &Index{}
	for i, m := range messages {
		require.NoError(t, x.Add(uint64(i+1), NewBag(m)))
		require.NoError(t, x.SetVectors(uint64(i+1), vectorsOf(m)))
	}
	takes := heap() - before
	t.Logf("%d passages: %.1f MB, of which Bytes reports %.1f", len(x.passages), float64(takes)/1e6, float64(x.Bytes())/1e6)
	assert.Less(t, takes, 25_000_000)
	assert.InEpsilon(t, takes, x.Bytes(), 0.25)
	runtime.KeepAlive(messages)
}

func BenchmarkNewBag(b *testing.B) {
	messages := recordedMessages(b, 5_000)
	text, bags := 0, 0
	for _, m := range messages {
		text += len(m.Content)
		bags += len(encoded(b, NewBag(m)))
	}
	b.SetBytes(int64(text / len(messages)))
	for i := 0; b.Loop(); i++ {
		NewBag(messages[i%len(messages)])
	}
	b.ReportMetric(float64(bags)/float64(text), "bytes/byte")
}
