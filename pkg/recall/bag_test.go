package recall

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func encoded(t require.TestingT, b Bag) []byte {
	data, err := b.AppendBinary(nil)
	require.NoError(t, err)
	return data
}

func TestBagHoldsTheTermsOfEachPassage(t *testing.T) {
	filler := strings.Repeat("x ", 250)
	text := "zebra apple apples the ZEBRA zebra " + filler + "\n\n  Apple " + filler
	b := NewBag(Message{Role: "user", Speaker: "Ann", Session: "7", Time: time.Date(2023, 5, 8, 1, 2, 3, 0, time.UTC), Content: text})
	assert.Equal(t, Bag{
		Role: "user", Speaker: "Ann", Session: "7", Date: Date{2023, 5, 8},
		Terms: []string{"ann", "appl", "x", "zebra"},
		Passages: []Passage{
			{0, 534, []Count{{0, 1}, {1, 2}, {2, 250}, {3, 3}}},
			{539, len(text) - 1, []Count{{0, 1}, {1, 1}, {2, 250}}},
		},
	}, b)
}

func TestBagEncoding(t *testing.T) {
	b := Bag{Role: "user", Session: "s", Date: Date{2023, 5, 8}, Terms: []string{"a", "bc", "d"}, Passages: []Passage{
		{Start: 1, End: 9, Counts: []Count{{0, 1}, {2, 5}}}, {Start: 10, End: 12},
	}}
	want := "\x01" + "\x04user" + "\x00" + "\x01s" + "\xa8\x9d\x3f" + "\x03" + "\x01a" + "\x02bc" + "\x01d" +
		"\x02" + "\x01\x08\x02" + "\x00" + "\x03\x03" + "\x01\x02\x00"
	assert.Equal(t, want, string(encoded(t, b)))
}

func TestBagSurvivesEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, m := range drawMessages(t) {
			b := NewBag(m)
			data := encoded(t, b)
			got, err := ParseBag(data)
			require.NoError(t, err)
			assert.Equal(t, b, got)
			n := rapid.IntRange(0, len(data)-1).Draw(t, "n")
			_, err = ParseBag(data[:n])
			assert.ErrorIs(t, err, ErrBag)
			_, err = ParseBag(append(data, 0))
			assert.ErrorIs(t, err, ErrBag)
		}
	})
}

func TestVeryLongMessageIsIndexedByItsBeginning(t *testing.T) {
	b := NewBag(Message{Content: strings.Repeat("words and more of them. ", 100_000)})
	assert.Len(t, b.Passages, MaxPassages)
	_, err := ParseBag(encoded(t, b))
	assert.NoError(t, err)
}

// A bag that can be parsed can be added to an index, and is encoded as before.
func FuzzParseBag(f *testing.F) {
	for _, m := range []Message{{}, {Role: "user", Speaker: "Ann", Session: "1", Time: time.Unix(1e9, 0), Content: "one two two. " + strings.Repeat("three ", 200)}} {
		f.Add(encoded(f, NewBag(m)))
	}
	f.Add([]byte{BagVersion})
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x01\x00\x00\x80\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParseBag(data)
		if err != nil {
			require.ErrorIs(t, err, ErrBag)
			return
		}
		if again := encoded(t, b); !bytes.Equal(data, again) {
			t.Fatalf("%x is written as %x", data, again)
		}
		var x Index
		require.NoError(t, x.Add(1, b))
		x.Search(Query{Text: "one two 8 May", Limit: 3})
	})
}
