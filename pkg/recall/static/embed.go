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

// floats are the values of the bytes of a row.
var floats = func() (values [256]float64) {
	for i := range values {
		values[i] = float64(int8(i))
	}
	return values
}()

// add adds a row to a sum. It is most of the work: four at a time take two thirds of the
// time.
func add(sum *[Dimensions]float64, scale float64, row string) {
	row = row[:Dimensions]
	for i := 0; i < Dimensions; i += 4 {
		s, r := sum[i:i+4], row[i:i+4]
		s[0] += float64(scale * floats[r[0]]) // the conversion forbids to fuse
		s[1] += float64(scale * floats[r[1]])
		s[2] += float64(scale * floats[r[2]])
		s[3] += float64(scale * floats[r[3]])
	}
}

// Embed is the embedding of a text, of length 1; nil if the text has no known word
// piece. The first call takes some milliseconds more.
func Embed(text string) []float32 {
	t := loaded()
	var sum [Dimensions]float64
	t.pieces.each(text, func(piece int) {
		add(&sum, t.scales[piece], t.rows[piece*Dimensions:])
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
