package graph

import (
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
)

// AppendBuiltIn appends the built-in embeddings of a text's passages as they are stored:
// static.Dimensions bytes each, and then static.Table.
func AppendBuiltIn(dst []byte, text string, passages []recall.Passage) []byte {
	for _, p := range passages {
		dst = recall.AppendVector(dst, recall.Quantize(static.Embed(text[p.Start:p.End])), static.Dimensions)
	}
	return append(dst, static.Table)
}

// ParseBuiltIn decodes what [AppendBuiltIn] appended: a vector for each passage, which is nil if the model knows no
// word of it, and the number of the table that made the vectors, 1 for data without one. Vectors of another table than
// the current one are nil too, because a cosine between vectors of two tables means nothing: searches go by words until
// the read model is rebuilt. It returns recall.ErrVectors for a wrong length.
func ParseBuiltIn(data []byte) (vectors []recall.Vector, of byte, err error) {
	if n := len(data); n%static.Dimensions == 0 {
		return make([]recall.Vector, n/static.Dimensions), 1, nil
	}
	last := len(data) - 1
	of, data = data[last], data[:last]
	if vectors, err = recall.ParseVectors(data, static.Dimensions); err == nil && of != static.Table {
		clear(vectors)
	}
	return vectors, of, err
}
