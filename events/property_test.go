package events

import (
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEveryEventComesBackFromBothModes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { requireRoundTrips(r, genEvent().Draw(r, "event")) })
}

func TestEveryAddressComesBackFromItsSubject(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := Address{
			Tenant:       genText(1, MaxTenantBytes).Draw(r, "tenant"),
			Conversation: genID().Draw(r, "conversation"),
			Kind:         genID().Draw(r, "kind"),
		}
		subject, err := a.Subject()
		require.NoError(r, err)
		requirePublishable(r, subject)
		require.Less(r, len(subject), 4000, "the server's control line is 4096 bytes")
		back, err := ParseSubject(subject)
		require.NoError(r, err)
		require.Equal(r, a, back)

		a.Partition = rapid.IntRange(0, 31).Draw(r, "partition")
		stored := storedPrefix + strconv.Itoa(a.Partition) + "." + strings.TrimPrefix(subject, publishPrefix)
		back, err = ParseSubject(stored)
		require.NoError(r, err)
		require.Equal(r, a, back)
	})
}

func TestIdsOfEveryKindAreOneToken(t *testing.T) {
	for _, id := range []string{"a.b", "a b", "*", ">", "a>", "😀", "%", "%41", "a%2Eb", strings.Repeat("x", 500), strings.Repeat("é", 256), "\x00\r\n", "$SYS", "_INBOX", "é", "é"} {
		a := Address{Tenant: "t", Conversation: id, Kind: "message_created"}
		subject, err := a.Subject()
		require.NoError(t, err)
		requirePublishable(t, subject)
		back, err := ParseSubject(subject)
		require.NoError(t, err)
		require.Equal(t, a, back)
		require.Equal(t, storedPrefix+"*.t."+Escape(id)+".*", ConversationFilter("t", id))
	}
}

// requirePublishable checks the server's rules for a subject to publish to.
func requirePublishable(t require.TestingT, subject string) {
	require.Len(t, strings.Split(subject, "."), 4)
	for token := range strings.SplitSeq(subject, ".") {
		require.NotEmpty(t, token, subject)
	}
	for _, c := range subject {
		require.True(t, c < 0x7F && !unicode.IsSpace(c) && !unicode.IsControl(c) && c != '*' && c != '>', "%q in %q", c, subject)
	}
}

func TestUnescapeUndoesEscape(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := genText(1, 600).Draw(r, "text")
		back, err := Unescape(Escape(s))
		require.NoError(r, err)
		require.Equal(r, s, back)
	})
}

func TestIdentityDependsOnWhereItsPartsEnd(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		// Two ways to split the same text into four parts.
		text := genText(4, 80).Draw(r, "text")
		parts := func(label string) [4]string {
			var p [4]string
			at := 0
			for i := range 3 {
				next := rapid.IntRange(at, len(text)).Draw(r, label)
				p[i], at = text[at:next], next
			}
			p[3] = text[at:]
			return p
		}
		a, b := parts("a"), parts("b")
		identity := func(p [4]string) Digest {
			e := Event{Subject: p[1], Source: p[2], ID: p[3]}
			return e.Identity(p[0])
		}
		require.Equal(r, a == b, identity(a) == identity(b), "%q %q", a, b)
	})
}

func TestIdentityDoesNotDependOnContent(t *testing.T) {
	e, _ := golden(t, TypeMessageCreated)
	other := e
	other.Type, other.Data, other.Extensions, other.Time = TypeToolCalled, []byte("1"), nil, e.Time.Add(1)
	require.Equal(t, e.Identity("t"), other.Identity("t"))
	require.NotEqual(t, e.Identity("t"), e.Identity("u"))
	require.Len(t, e.Identity("t").String(), 32)
	require.False(t, e.Identity("t").IsZero())
}

func TestContentIsTheSameWhateverTheModeAndWhiteSpace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		e := genEvent().Draw(r, "event")
		structured, err := EncodeStructured(e)
		require.NoError(r, err)
		viaStructured, err := DecodeStructured(structured)
		require.NoError(r, err)
		viaBinary, err := DecodeMessage(EncodeMessage(e))
		require.NoError(r, err)
		require.Equal(r, e.Content(), viaStructured.Content())
		require.Equal(r, e.Content(), viaBinary.Content())
	})
}

func TestContentIgnoresWhiteSpaceAndEscapedLetters(t *testing.T) {
	content := func(data string) Digest { return (&Event{Type: "t", Data: []byte(data)}).Content() }
	require.Equal(t, content(`{"a":"x y","b":[1,2]}`), content("{ \"a\" :\t\"x y\",\r\n\"b\": [1, 2] }\n"))
	require.Equal(t, content(`{"a":"café/\n"}`), content(`{"a":"caf\u00e9\/\n"}`), "encoders differ in what they escape")
	require.NotEqual(t, content(`{"a":"x y"}`), content(`{"a":"xy"}`))
	require.NotEqual(t, content(`{"a":"\" "}`), content(`{"a":"\""}`))
	require.NotEqual(t, content(`[1,2]`), content(`[12]`))
	require.NotEqual(t, content(`not json`), content(`notjson`), "text that is not JSON has no insignificant white space")
	require.NotEqual(t, (&Event{Type: "a", Data: []byte("b")}).Content(), (&Event{Type: "ab"}).Content())
	text := func(data string) Digest {
		return (&Event{Type: "t", DataContentType: "text/plain", Data: []byte(data)}).Content()
	}
	require.NotEqual(t, text("1 2"), text("12"))
}

func TestDifferentDataHasDifferentContent(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := genJSON("").Draw(r, "a"), genJSON("").Draw(r, "b")
		x, y := Event{Type: "t", Data: a}, Event{Type: "t", Data: b}
		require.Equal(r, string(a) == string(b), x.Content() == y.Content())
	})
}

func TestKindIsOneWordWhateverTheType(t *testing.T) {
	for eventType, kind := range map[string]string{
		TypeMessageCreated: "message_created", TypeSummaryWritten: "summary_written",
		"dev.mneme.message.created.v2": "message_created", "dev.mneme.message.created": "other",
		"dev.mneme.Message.created.v1": "other", "com.example.message.created.v1": "other",
		"dev.mneme..created.v1": "other", "dev.mneme.message.created.v": "other", "": "other",
		"dev.mneme.message.created.v1.x": "other",
	} {
		require.Equal(t, kind, Kind(eventType), eventType)
	}
}
