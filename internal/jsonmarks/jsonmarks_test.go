package jsonmarks

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarksInTextsDoNotCount(t *testing.T) {
	const data = `{"a": [1, 2, {"b": "{,[\"{\\"}], "c": "\\\"{"}`
	require.False(t, Exceed([]byte(data), "{", 2))
	require.True(t, Exceed([]byte(data), "{", 1))
	require.False(t, Exceed([]byte(data), ",{[", 6))
	require.True(t, Exceed([]byte(data), ",{[", 5))
	require.False(t, Exceed(nil, "{", 0))
}
