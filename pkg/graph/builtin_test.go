package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
)

func TestVectorsOfAnotherTableAreNoVectors(t *testing.T) {
	const text = "The parser fails on paths."
	passages := []recall.Passage{{Start: 0, End: 10}, {Start: 11, End: 26}}
	stored := graph.AppendBuiltIn(nil, text, passages)

	vectors, table, err := graph.ParseBuiltIn(stored)
	require.NoError(t, err)
	require.EqualValues(t, static.Table, table)
	require.Equal(t, []recall.Vector{recall.Quantize(static.Embed(text[:10])), recall.Quantize(static.Embed(text[11:26]))}, vectors)

	none := make([]recall.Vector, 2)
	stored[len(stored)-1] = static.Table + 1
	vectors, table, err = graph.ParseBuiltIn(stored)
	require.NoError(t, err)
	require.EqualValues(t, static.Table+1, table)
	require.Equal(t, none, vectors)

	vectors, table, err = graph.ParseBuiltIn(stored[:len(stored)-1]) // the first table stored no number
	require.NoError(t, err)
	require.EqualValues(t, 1, table)
	require.Equal(t, none, vectors)

	_, _, err = graph.ParseBuiltIn(stored[:len(stored)-2])
	require.ErrorIs(t, err, recall.ErrVectors)
}
