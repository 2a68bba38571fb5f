package static

import (
	_ "embed"
	"encoding/binary"
	"math"
	"strings"
	"sync"
)

// Model names the table where the origin of an embedding is kept. Another table gets
// another name.
const Model = "mneme-static-128-v1"

// Dimensions is the length of an embedding.
const Dimensions = 128

// MinCosine is the cosine that stands for a least semantic score of 0.3 with the model of
// the table: as few unrelated texts reach it, 4 %. The cosines of any two texts are higher
// here, half of them above 0.25.
const MinCosine = 0.48

//go:embed table.bin
var tableBytes string

//go:embed vocab.txt
var vocabulary string

// table has the rows by the number of their word piece.
type table struct {
	pieces pieces
	scales []float64
	rows   string // of int8
}

var loaded = sync.OnceValue(func() *table {
	n := int(binary.LittleEndian.Uint32([]byte(tableBytes[:4])))
	t := &table{scales: make([]float64, n), rows: tableBytes[8+4*n:]}
	for i := range t.scales {
		bits := binary.LittleEndian.Uint32([]byte(tableBytes[8+4*i : 12+4*i]))
		t.scales[i] = float64(math.Float32frombits(bits))
	}
	t.pieces = newPieces(strings.Split(strings.TrimSuffix(vocabulary, "\n"), "\n"))
	return t
})

// Embed is the embedding of a text, of length 1; nil if the text has no known word
// piece. The first call takes some milliseconds more.
func Embed(text string) []float32 {
	t := loaded()
	var sum [Dimensions]float64
	t.pieces.each(text, func(piece int) {
		scale := t.scales[piece]
		row := t.rows[piece*Dimensions:][:Dimensions]
		for i := range sum {
			sum[i] += float64(scale * float64(int8(row[i]))) // the conversion forbids to fuse
		}
	})
	var square float64
	for _, v := range sum {
		square += float64(v * v)
	}
	if square == 0 {
		return nil
	}
	length := math.Sqrt(square)
	embedding := make([]float32, Dimensions)
	for i, v := range sum {
		embedding[i] = float32(v / length)
	}
	return embedding
}
