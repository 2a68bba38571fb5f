package plain

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// pngOf returns the base64 of something that begins as a PNG does.
func pngOf(bytes int) string {
	return base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n" + strings.Repeat("\x01\x9a\xf7", bytes/3+1)[:bytes-8]))
}

func TestDataIsNamed(t *testing.T) {
	png, unknown := pngOf(60_000), base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01\x9a\xf7", 5_000)))
	for name, c := range map[string]struct {
		text, want string
		rest       int
	}{
		"Anthropic": {text: `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}},{"type":"text","text":"a caption"}]`,
			want: `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"[image/png, 60 kB]"}},{"type":"text","text":"a caption"}]`},
		"MCP": {text: `{"content":[{"type":"image","data":"` + unknown + `","mimeType":"image/avif"}]}`,
			want: `{"content":[{"type":"image","data":"[image/avif, 15 kB]","mimeType":"image/avif"}]}`},
		"a resource of MCP": {text: `{"uri":"file:///a","mimeType":"application/x-thing","blob":"` + unknown + `"}`,
			want: `{"uri":"file:///a","mimeType":"application/x-thing","blob":"[application/x-thing, 15 kB]"}`},
		"OpenAI":                    {text: `{"image_url":{"url":"data:image/webp;base64,` + unknown + `"}}`, want: `{"image_url":{"url":"[image/webp, 15 kB]"}}`},
		"Gemini":                    {text: `{"inlineData":{"mimeType":"audio/wav","data":"` + unknown + `"}}`, want: `{"inlineData":{"mimeType":"audio/wav","data":"[audio/wav, 15 kB]"}}`},
		"spaced JSON":               {text: `{"mime_type": "image/png", "data" : "` + unknown + `"}`, want: `{"mime_type": "image/png", "data" : "[image/png, 15 kB]"}`},
		"JSON in JSON":              {text: `{"text":"{\"data\":\"` + png + `\"}"}`, want: `{"text":"{\"data\":\"[image/png, 60 kB]\"}"}`},
		"by content":                {text: `{"b64_json":"` + png + `"}`, want: `{"b64_json":"[image/png, 60 kB]"}`},
		"bare":                      {text: png, want: "[image/png, 60 kB]"},
		"Markdown":                  {text: "See ![it](data:image/png;base64," + png + ") and ![that](data:;base64," + unknown + ").", want: "See ![it]([image/png, 60 kB]) and ![that]([file, 15 kB])."},
		"a URL that begins in data": {text: png + "data:image/webp;base64," + unknown, want: "[image/png, 60 kB]:image/webp;base64," + unknown},
		"in capitals":               {text: "DATA:IMAGE/WEBP;BASE64," + unknown, want: "[image/webp, 15 kB]"},
		"parameters":                {text: "data:text/plain;charset=utf-8;base64," + unknown, want: "[text/plain, 15 kB]"},
		"of megabytes":              {text: pngOf(2_345_678), want: "[image/png, 2.3 MB]"},
		"the beginning of a text": {text: `{"media_type":"image/png","data":"` + png, rest: 40_000,
			want: `{"media_type":"image/png","data":"[image/png, at most 90 kB; the end is in the log]`},
		"the beginning, its kind is further on": {text: `{"type":"image","data":"` + unknown, rest: 4_000,
			want: `{"type":"image","data":"[file, at most 18 kB; the end is in the log]`},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, NameData(c.text, c.rest)) })
	}
}

func TestWhatIsNoDataStays(t *testing.T) {
	unknown := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01\x9a\xf7", 5_000)))
	for name, text := range map[string]string{
		"short":                     `{"media_type":"image/png","data":"` + pngOf(600) + `"}`,
		"a short URL":               "data:image/png;base64," + pngOf(600),
		"a long word":               strings.Repeat("a", 5_000),
		"unknown base64":            unknown,
		"without a media type":      `{"data":"` + unknown + `"}`,
		"another's media type":      `[{"mimeType":"image/png"},{"data":"` + unknown + `"},{"mimeType":"image/png"}]`,
		"another member":            `{"mimeType":"text/plain","text":"` + unknown + `"}`,
		"a path":                    strings.Repeat("/usr/lib", 500),
		"a sentence":                strings.Repeat("data of image/png and base64. ", 500),
		"a URL of something else":   "data:image/png;base65," + unknown,
		"letters that are no ASCII": "data:image/png;ba\u017fe64," + unknown,
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, text, NameData(text, 0)) })
	}
}

// A long word is found wherever it is, whatever is around it.
func TestLongWordsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, n := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 30, 500, 998, 999, 1_000, 1_001, 2_500}), 0, 8).Draw(t, "words") {
			fmt.Fprintf(&text, "%s%s", strings.Repeat("x", n), rapid.SampledFrom([]string{" ", "é", "=="}).Draw(t, "between"))
		}
		var want, got []string
		for _, word := range strings.FieldsFunc(text.String(), func(r rune) bool { return r != 'x' }) {
			if len(word) >= leastData {
				want = append(want, word)
			}
		}
		for at := 0; ; {
			start, end := longWord(text.String(), at)
			if at = end; start == end {
				break
			}
			got = append(got, text.String()[start:end])
		}
		assert.Equal(t, want, got)
	})
}

func FuzzNameData(f *testing.F) {
	f.Add(`{"media_type":"image/png","data":"`, 60_000, `"}`, 0)
	f.Add(`{"data":"`, 9_000, `","mimeType":"image/png"}`, 0)
	f.Add("data:image/png;base64,", 1_000, "==)", 0)
	f.Add(`{"blob":"`, 900, "", 5_000)
	f.Add("é", 749, "\xff", 1)
	f.Add("", 999, "data:;base64,"+strings.Repeat("A", leastData), 0)
	f.Fuzz(func(t *testing.T, before string, bytes int, after string, rest int) {
		text := before + pngOf(min(max(bytes, 8), 100_000)) + after
		rest = max(0, rest%(1<<30))
		at := 0
		for d := range FindData(text, rest) {
			if d.Start < at || d.End < d.Start+leastData || d.End > len(text) || len(d.Name) >= d.End-d.Start {
				t.Fatalf("%+v after %d", d, at)
			}
			if strings.ContainsAny(d.Name, "\"\\\n") {
				t.Fatalf("%q", d.Name)
			}
			at = d.End
		}
		named := NameData(text, rest)
		if utf8.ValidString(text) && !utf8.ValidString(named) {
			t.Fatal("not UTF-8 any more")
		}
	})
}

func BenchmarkNameData(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog in pkg/window/build_test.go:120.\n", 850)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		NameData(text, 0)
	}
}
