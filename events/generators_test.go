package events

import (
	"encoding/json"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// genText draws text that is hard to escape: characters with a special meaning in subjects, headers
// and JSON, and any Unicode.
func genText(minimum, limit int) *rapid.Generator[string] {
	hard := rapid.SampledFrom([]string{".", " ", "*", ">", "%", "%41", "\"", "\\", "/", ":", "€", "😀", "\x00", "\n", "\u007f", "\u2028", "é", "a", "Z", "0", "<&>", "..", "$", "_"})
	return rapid.Custom(func(r *rapid.T) string {
		if rapid.Bool().Draw(r, "any Unicode") {
			return rapid.StringN(minimum, -1, limit).Draw(r, "text")
		}
		parts := rapid.SliceOfN(hard, minimum, 60).Draw(r, "parts")
		return cut(strings.Join(parts, ""), limit)
	})
}

// cut shortens text to a number of bytes without breaking a character.
func cut(s string, limit int) string {
	for len(s) > limit {
		runes := []rune(s)
		s = string(runes[:len(runes)-1])
	}
	return s
}

func genID() *rapid.Generator[string] {
	return rapid.OneOf(
		genText(1, MaxIDBytes),
		rapid.Just(strings.Repeat("é.", MaxIDBytes/3)),
		rapid.Just(strings.Repeat("*", 500)),
	)
}

// genEvent draws any valid event of CloudEvents 1.0, of our vocabulary or not.
func genEvent() *rapid.Generator[Event] {
	return rapid.Custom(func(r *rapid.T) Event {
		e := Event{
			SpecVersion: "1.0",
			ID:          genID().Draw(r, "id"),
			Source: rapid.SampledFrom([]string{"/agents/", "urn:uuid:", "https://example.com/a?b=", "mneme/", "#", "a b/", "ü/"}).Draw(r, "source") +
				rapid.StringMatching(`[a-z0-9/~-]{1,20}`).Draw(r, "rest of source"),
			Type:    genID().Draw(r, "type"),
			Subject: genText(0, MaxIDBytes).Draw(r, "subject"),
		}
		if rapid.Bool().Draw(r, "has time") {
			zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(r, "zone"))
			e.Time = time.Unix(rapid.Int64Range(-60_000_000_000, 250_000_000_000).Draw(r, "s"), rapid.Int64Range(0, 999_999_999).Draw(r, "ns")).In(zone)
		}
		if rapid.Bool().Draw(r, "has schema") {
			e.DataSchema = "https://example.com/" + rapid.StringMatching(`[a-z]{1,9}`).Draw(r, "schema")
		}
		for range rapid.IntRange(0, 3).Draw(r, "extensions") {
			if e.Extensions == nil {
				e.Extensions = map[string]any{}
			}
			name := "x" + rapid.StringMatching(`[a-z0-9]{0,12}`).Draw(r, "name")
			e.Extensions[name] = rapid.OneOf(
				rapid.Map(genText(0, 100), func(s string) any { return s }),
				rapid.Map(rapid.Int32(), func(n int32) any { return n }),
				rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			).Draw(r, "value")
		}
		e.DataContentType = rapid.SampledFrom([]string{"", "application/json", "application/json; charset=utf-8", "text/json", "application/vnd.x+json", "text/plain", "application/xml", "application/octet-stream"}).Draw(r, "content type")
		e.Data = genData(e.DataContentType).Draw(r, "data")
		return e
	})
}

func genData(contentType string) *rapid.Generator[[]byte] {
	return rapid.Custom(func(r *rapid.T) []byte {
		switch {
		case rapid.IntRange(0, 9).Draw(r, "no data") == 0:
			return nil
		case isJSON(contentType):
			return genJSON(rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(r, "space")).Draw(r, "json")
		case contentType == "application/octet-stream":
			return rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(r, "bytes")
		default:
			return []byte(genText(1, 200).Draw(r, "text"))
		}
	})
}

// genJSON draws a JSON object with this white space between its tokens.
func genJSON(space string) *rapid.Generator[[]byte] {
	return rapid.Custom(func(r *rapid.T) []byte {
		out := "{" + space
		for i := range rapid.IntRange(0, 4).Draw(r, "members") {
			if i > 0 {
				out += "," + space
			}
			name, _ := json.Marshal(genText(1, 20).Draw(r, "name"))
			value, _ := json.Marshal(rapid.OneOf(
				rapid.Map(genText(0, 50), func(s string) any { return s }),
				rapid.Map(rapid.Float64(), func(f float64) any { return f }),
				rapid.Map(rapid.SliceOfN(rapid.Int(), 0, 3), func(n []int) any { return n }),
				rapid.Just(any(nil)),
			).Draw(r, "value"))
			out += string(name) + space + ":" + space + string(value)
		}
		return []byte(out + space + "}")
	})
}
