package static

import (
	_ "embed"
	"encoding/binary"
	"math"
	"strings"
	"sync"
)

// Model names the table wherever the origin of an embedding is recorded, and Table is its number.
// Another table must get another name and number. Read models that store embeddings are then rebuilt.
const (
	Model = "mneme-static-128-v2"
	Table = 2
)

// Dimensions is the length of an embedding.
const Dimensions = 128

// MinCosine corresponds to a minimum semantic score of 0.3 with the original model: equally
// few unrelated texts reach it, 1.5 % of those that the table was fitted to. Half of their
// cosines are below 0.
const MinCosine = 0.35

//go:embed table.bin
var tableBytes string

//go:embed vocab.txt
var vocabulary string

// table holds the rows by the number of their word piece.
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

// floats maps the bytes of a row to their values.
var floats = func() (values [256]float64) {
	for i := range values {
		values[i] = float64(int8(i))
	}
	return values
}()

// add adds a row to a sum. This is most of the work; four dimensions per step save a third
// of the time.
func add(sum *[Dimensions]float64, scale float64, row string) {
	row = row[:Dimensions]
	for i := 0; i < Dimensions; i += 4 {
		s, r := sum[i:i+4], row[i:i+4]
		s[0] += float64(scale * floats[r[0]]) // the conversion prevents fusing
		s[1] += float64(scale * floats[r[1]])
		s[2] += float64(scale * floats[r[2]])
		s[3] += float64(scale * floats[r[3]])
	}
}

// Embed returns the embedding of a text, of length 1, or nil if the text has no known word
// piece. The first call loads the table, which takes a few milliseconds.
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
