package events

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADigestHashesEachPartAfterItsLength(t *testing.T) {
	for _, parts := range [][]string{
		nil, {""}, {"a", "", "b"}, {strings.Repeat("x", 503)}, {strings.Repeat("x", 504)}, {strings.Repeat("x", 505), "y"},
		{strings.Repeat("abc", 5000), strings.Repeat("z", 504+512), "end"},
	} {
		var all []byte
		for _, p := range parts {
			all = append(binary.BigEndian.AppendUint64(all, uint64(len(p))), p...)
		}
		sum := sha256.Sum256(all)
		require.Equal(t, Digest(sum[:16]), DigestOf(parts...))
	}
}

func BenchmarkDigestOfLongText(b *testing.B) {
	text := strings.Repeat("0123456789abcdef", 4096)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		DigestOf(text)
	}
}
