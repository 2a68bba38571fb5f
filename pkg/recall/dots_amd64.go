package recall

import "golang.org/x/sys/cpu"

// dotsAVX2 computes the inner products of a query and n vectors that lie one after the
// other. The width must be a positive multiple of 32.
//
//go:noescape
func dotsAVX2(query *int16, vectors *int8, width, n int, out *int32)

// dots computes the inner product of the query and each of len(out) vectors, which lie one
// after the other: most of a search is this loop. Products are whole numbers, so the
// processor's vector instructions give the same ones.
func dots(query []int16, vectors []int8, out []int32) {
	width := len(query)
	if !cpu.X86.HasAVX2 || width == 0 || width%32 != 0 || len(out) == 0 {
		dotsPlain(query, vectors, out)
		return
	}
	_ = vectors[len(out)*width-1]
	dotsAVX2(&query[0], &vectors[0], width, len(out), &out[0])
}
