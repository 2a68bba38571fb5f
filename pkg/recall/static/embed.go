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
	pieces *pieces
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

// add adds the rows of word pieces to a sum, in their order. This is most of the work; with four rows per
// step the sum is loaded and stored a quarter as often.
func (t *table) add(sum *[Dimensions]float64, pieces []int) {
	for ; len(pieces) >= 4; pieces = pieces[4:] {
		k0, k1, k2, k3 := t.scales[pieces[0]], t.scales[pieces[1]], t.scales[pieces[2]], t.scales[pieces[3]]
		r0, r1, r2, r3 := t.row(pieces[0]), t.row(pieces[1]), t.row(pieces[2]), t.row(pieces[3])
		for i := range sum {
			s := sum[i] // the conversions prevent fusing
			s += float64(k0 * floats[r0[i]])
			s += float64(k1 * floats[r1[i]])
			s += float64(k2 * floats[r2[i]])
			s += float64(k3 * floats[r3[i]])
			sum[i] = s
		}
	}
	for _, piece := range pieces {
		scale, row := t.scales[piece], t.row(piece)
		for i := range sum {
			sum[i] += float64(scale * floats[row[i]])
		}
	}
}

func (t *table) row(piece int) string { return t.rows[piece*Dimensions:][:Dimensions] }

// Embed returns the embedding of a text, of length 1, or nil if the text has no known word
// piece. The first call loads the table, which takes a few milliseconds.
func Embed(text string) []float32 {
	t := loaded()
	var sum [Dimensions]float64
	t.add(&sum, t.pieces.of(text))
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
