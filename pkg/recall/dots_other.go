//go:build !amd64

package recall

// dots computes the inner product of the query and each of len(out) vectors, which lie one
// after the other.
func dots(query []int16, vectors []int8, out []int32) { dotsPlain(query, vectors, out) }
