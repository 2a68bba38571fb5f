package recall

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/recall/static"
)

// Hits, their order and the bits of their scores are the same on every machine. A change of
// the ranking changes this.
func TestScoresAreBitExact(t *testing.T) {
	words := strings.Fields("sprint schema migration deploy failing test parser index cache token release budget wedding garden piano " +
		"mountain trip doctor kids dog")
	x := &Index{}
	state := uint32(1)
	next := func(n int) int { // xorshift (G. Marsaglia, 2003)
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		return int(state % uint32(n))
	}
	for i := range 300 {
		var text strings.Builder
		for range 3 + next(150) {
			text.WriteString(words[next(len(words))] + " ")
		}
		m := Message{
			Role: []string{"user", "assistant"}[next(2)], Speaker: []string{"", "Ann", "Bob"}[next(3)],
			Session: strconv.Itoa(i / 30), Time: time.Date(2023, 5, 1+i/10, 0, 0, 0, 0, time.UTC), Content: text.String(),
		}
		require.NoError(t, x.Add(uint64(i+1), NewBag(m)))
		require.NoError(t, x.SetVectors(uint64(i+1), vectorsOf(m)))
	}
	hash := sha256.New()
	for _, query := range []string{"the failing test of the parser", "What did Ann say of the doctor on 8 May?", "what did you say of the garden in June"} {
		for _, asOf := range []uint64{0, 100} {
			for _, v := range []Vector{nil, Quantize(static.Embed(x.Unnamed(query, asOf)))} {
				for _, h := range x.Search(Query{Text: query, Vector: v, AsOf: asOf, Limit: 50}) {
					for _, v := range []any{h.Seq, h.Score, h.Parts, h.BM25, h.Cosine, int64(h.Start)} {
						require.NoError(t, binary.Write(hash, binary.LittleEndian, v))
					}
				}
			}
		}
	}
	assert.Equal(t, "80d7cec40dd0e356b16eec721854af725f7bb4e435302ceb465411a200b5bbcc", hex.EncodeToString(hash.Sum(nil)))
}

// Where a processor has a fused multiply-add, the compiler uses it unless a conversion
// forces rounding.
func TestNoFusedOperations(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "build", "-gcflags=-S", ".", "./static")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	assembly, err := cmd.CombinedOutput()
	require.NoError(t, err, string(assembly))
	require.Contains(t, string(assembly), "FMULD", "the compiler prints its output")
	for line := range strings.Lines(string(assembly)) {
		assert.NotRegexp(t, regexp.MustCompile(`\bFN?M(ADD|SUB)[SD]\b`), line)
	}
}
