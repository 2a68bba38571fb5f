package plain

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// pngOf returns the base64 of something that begins as a PNG does.
func pngOf(bytes int) string {
	return base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n" + strings.Repeat("\x01\x9a\xf7\xbe\xff", bytes/5+2)[:bytes-8]))
}

// broken returns a text on lines of this length, each but the first after a line end.
func broken(text string, length int, end string) string {
	var out strings.Builder
	for ; len(text) > length; text = text[length:] {
		out.WriteString(text[:length])
		out.WriteString(end)
	}
	return out.String() + text
}

func TestDataIsNamed(t *testing.T) {
	png, unknown := pngOf(60_000), base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01\x9a\xf7", 5_000)))
	require.Contains(t, png, "/")
	require.Contains(t, png, "+")
	numbered := func(text, mark string) string {
		var out strings.Builder
		for i, line := range strings.Split(broken(text, 76, "\n"), "\n") {
			fmt.Fprintf(&out, "%6d%s%s\n", i+1, mark, line)
		}
		return out.String()
	}
	for name, c := range map[string]struct{ text, want string }{
		"Anthropic": {text: `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}},{"type":"text","text":"a caption"}]`,
			want: `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"[image/png, 60 kB]"}},{"type":"text","text":"a caption"}]`},
		"MCP": {text: `{"content":[{"type":"image","data":"` + unknown + `","mimeType":"image/avif"}]}`,
			want: `{"content":[{"type":"image","data":"[image/avif, 15 kB]","mimeType":"image/avif"}]}`},
		"a resource of MCP": {text: `{"uri":"file:///a","mimeType":"application/x-thing","blob":"` + unknown + `"}`,
			want: `{"uri":"file:///a","mimeType":"application/x-thing","blob":"[application/x-thing, 15 kB]"}`},
		"a type around it": {text: `{"media_type":"image/avif","source":{"data":"` + unknown + `"}}`, want: `{"media_type":"image/avif","source":{"data":"[image/avif, 15 kB]"}}`},
		"OpenAI":           {text: `{"image_url":{"url":"data:image/webp;base64,` + unknown + `"}}`, want: `{"image_url":{"url":"[image/webp, 15 kB]"}}`},
		"Gemini":           {text: `{"inlineData":{"mimeType":"audio/wav","data":"` + unknown + `"}}`, want: `{"inlineData":{"mimeType":"audio/wav","data":"[audio/wav, 15 kB]"}}`},
		"spaced JSON":      {text: `{"mime_type": "image/png", "data" : "` + unknown + `"}`, want: `{"mime_type": "image/png", "data" : "[image/png, 15 kB]"}`},
		"JSON in JSON":     {text: `{"text":"{\"data\":\"` + png + `\"}"}`, want: `{"text":"{\"data\":\"[image/png, 60 kB]\"}"}`},
		"JSON in JSON, by its type": {text: `{"text":"{\"data\":\"` + unknown + `\",\"mimeType\":\"image\/avif\"}"}`,
			want: `{"text":"{\"data\":\"[image/avif, 15 kB]\",\"mimeType\":\"image\/avif\"}"}`},
		"by content":                {text: `{"b64_json":"` + png + `"}`, want: `{"b64_json":"[image/png, 60 kB]"}`},
		"bare":                      {text: png, want: "[image/png, 60 kB]"},
		"Markdown":                  {text: "See ![it](data:image/png;base64," + png + ") and ![that](data:;base64," + unknown + ").", want: "See ![it]([image/png, 60 kB]) and ![that]([file, 15 kB])."},
		"a URL that begins in data": {text: png + "data:image/webp;base64," + unknown, want: "[image/png, 60 kB]:image/webp;base64," + unknown},
		"in capitals":               {text: "DATA:IMAGE/WEBP;BASE64," + unknown, want: "[image/webp, 15 kB]"},
		"parameters":                {text: "data:text/plain;charset=utf-8;base64," + unknown, want: "[text/plain, 15 kB]"},
		"of megabytes":              {text: pngOf(2_345_678), want: "[image/png, 2.3 MB]"},
		"on lines": {text: "Here is the screenshot\n" + broken(png, 76, "\n") + "\nIt is blue.\n",
			want: "Here is the screenshot\n[image/png, 60 kB]\nIt is blue.\n"},
		"on lines of 64":             {text: "See:\n\n" + broken(png, 64, "\r\n") + "\r\n\r\nIt is blue.", want: "See:\n\n[image/png, 60 kB]\r\n\r\nIt is blue."},
		"on indented lines":          {text: "image: |\n  " + broken(png, 76, "\n  ") + "\nname: shot\n", want: "image: |\n  [image/png, 60 kB]\nname: shot\n"},
		"on numbered lines":          {text: numbered(png, "\t"), want: "     1\t[image/png, 60 kB]\n"},
		"on lines with arrows":       {text: numbered(png, "→") + "\nthe end", want: "     1→[image/png, 60 kB]\n\nthe end"},
		"a URL on lines":             {text: "data:image/png;base64," + png[:50] + "\n" + broken(png[50:], 76, "\n"), want: "[image/png, 60 kB]"},
		"with escaped slashes":       {text: `{"url":"data:image\/png;base64,` + strings.ReplaceAll(png, "/", `\/`) + `"}`, want: `{"url":"[image/png, 60 kB]"}`},
		"with escaped pluses":        {text: `{"b":"` + strings.ReplaceAll(png, "+", `\u002B`) + `"}`, want: `{"b":"[image/png, 60 kB]"}`},
		"on escaped lines":           {text: `{"stdout":"$ base64 shot.png\n` + broken(png, 76, `\n`) + `\nIt is blue.\n"}`, want: `{"stdout":"$ base64 shot.png\n[image/png, 60 kB]\nIt is blue.\n"}`},
		"on lines that JSON escapes": {text: `{"text":"{\"stdout\":\"` + broken(png, 76, `\\r\\n`) + `\\r\\n\"}"}`, want: `{"text":"{\"stdout\":\"[image/png, 60 kB]\\r\\n\"}"}`},
		"on numbered lines in JSON":  {text: `{"t":"` + strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(numbered(png, "\t")) + `"}`, want: `{"t":"     1\t[image/png, 60 kB]\n"}`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, NameData(c.text))
			assert.False(t, HasName(c.text))
			assert.True(t, HasName(c.want))
		})
	}
}

func TestWhatIsNoDataStays(t *testing.T) {
	unknown := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01\x9a\xf7", 5_000)))
	for name, text := range map[string]string{
		"short":                     `{"media_type":"image/png","data":"` + pngOf(600) + `"}`,
		"a short URL":               "data:image/png;base64," + pngOf(600),
		"short, on lines":           broken(pngOf(700), 76, "\n"),
		"a long word":               strings.Repeat("a", 5_000),
		"unknown base64":            unknown,
		"unknown base64 on lines":   broken(unknown, 64, "\n"),
		"without a media type":      `{"data":"` + unknown + `"}`,
		"another's media type":      `[{"mimeType":"image/png"},{"data":"` + unknown + `"},{"mimeType":"image/png"}]`,
		"another member":            `{"mimeType":"text/plain","text":"` + unknown + `"}`,
		"a path":                    strings.Repeat("/usr/lib", 500),
		"a sentence":                strings.Repeat("data of image/png and base64. ", 500),
		"a URL of something else":   "data:image/png;base65," + unknown,
		"letters that are no ASCII": "data:image/png;ba\u017fe64," + unknown,
		"DNA":                       ">chr1\n" + strings.Repeat(strings.Repeat("ACGT", 15)+"\n", 100),
		"DNA like an icon":          ">chr2\n" + strings.Repeat("AAACAACCGTTGGATC", 100),
		"hashes":                    `{"mimeType":"text/plain","data":"see"}` + strings.Repeat("\n"+strings.Repeat("0123456789abcdef", 4), 100),
		"a certificate":             "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("MIIDdzCCAl"+strings.Repeat("AgEBMA0G", 7)[:54]+"\n", 30) + "-----END CERTIFICATE-----",
		"an SSH key":                "ssh-rsa " + base64.StdEncoding.EncodeToString([]byte("\x00\x00\x00\x07ssh-rsa\x00\x00\x00\x03\x01\x00\x01\x00\x00\x04\x01"+strings.Repeat("\x01\x9a\xf7", 350))) + " ada@example.com",
		"lines of other lengths":    strings.Join(strings.Split(broken(pngOf(6_000), 30, "\n"), "\n"), "\n"),
		"backslashes":               strings.Repeat(`\`, 5_000) + strings.Repeat(`\n`, 5_000) + strings.Repeat(`\u00`, 500),
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, text, NameData(text)) })
	}
}

// What follows base64 on lines is not taken for its last line.
func TestAWordBehindDataStays(t *testing.T) {
	whole := pngOf(57 * 40) // forty full lines
	require.Len(t, whole, 76*40)
	for _, behind := range []string{"Done", "ok", "next line", "README", "= 5", ""} {
		text := "before\n" + broken(whole, 76, "\n") + "\n" + behind
		assert.Equal(t, "before\n[image/png, 2 kB]\n"+behind, NameData(text))
	}
}

// However it is broken and escaped, an image in a text is named, and the text around it stays.
func TestAnImageIsFoundHoweverItIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		image := pngOf(rapid.IntRange(2_000, 9_000).Draw(t, "bytes"))
		want := NameData(image)
		require.True(t, strings.HasPrefix(want, "[image/png, "))
		if length := rapid.SampledFrom([]int{0, 60, 64, 72, 76, 100, 1_000}).Draw(t, "length"); length > 0 {
			image = broken(image, length, rapid.SampledFrom([]string{"\n", "\r\n", "\n    ", " \n"}).Draw(t, "end"))
		}
		filler := rapid.Map(rapid.IntRange(0, 1_500), func(n int) string { return strings.Repeat("It is a long text. ", n/19+1)[:n] })
		before, after := filler.Draw(t, "before")+"See:\n", ".\n"+filler.Draw(t, "after")
		text, wanted := before+image+after, before+want+after
		for range rapid.IntRange(0, 3).Draw(t, "deep") {
			raw, err := json.Marshal(map[string]string{"text": text})
			require.NoError(t, err)
			text = strings.ReplaceAll(string(raw), "/", rapid.SampledFrom([]string{"/", `\/`}).Draw(t, "slash"))
			raw, err = json.Marshal(map[string]string{"text": wanted})
			require.NoError(t, err)
			wanted = string(raw)
		}
		require.Equal(t, wanted, strings.ReplaceAll(NameData(text), `\/`, "/"))
	})
}

// A long word is found wherever it is, whatever is around it.
func TestLongWordsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, n := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 30, 500, 998, 999, 1_000, 1_001, 2_500}), 0, 8).Draw(t, "words") {
			fmt.Fprintf(&text, "%s%s", strings.Repeat("x", n), rapid.SampledFrom([]string{" ", "é", "."}).Draw(t, "between"))
		}
		var want, got []string
		for _, word := range strings.FieldsFunc(text.String(), func(r rune) bool { return r != 'x' }) {
			if len(word) >= leastData {
				want = append(want, word)
			}
		}
		for at := 0; ; {
			r, ok := nextRun(text.String(), at)
			if !ok {
				break
			}
			at = r.end
			got = append(got, text.String()[r.start:r.end])
		}
		assert.Equal(t, want, got)
	})
}

func FuzzNameData(f *testing.F) {
	f.Add(`{"media_type":"image/png","data":"`, 60_000, `"}`, 0, `\n`)
	f.Add(`{"data":"`, 9_000, `","mimeType":"image/png"}`, 64, "\r\n")
	f.Add("data:image/png;base64,", 1_000, "==)", 76, "\n")
	f.Add(`{"blob":"`, 900, "", 76, `\\n`)
	f.Add("é", 749, "\xff", 76, "\n   12→")
	f.Add("", 999, "data:;base64,"+strings.Repeat("A", leastData), 40, "\n12\t")
	f.Add(`\u`, 2_000, `\`, 1, `\/`)
	f.Fuzz(func(t *testing.T, before string, bytes int, after string, line int, between string) {
		text := pngOf(min(max(bytes, 8), 100_000))
		if line > 0 && len(text)/line < 5_000 {
			text = broken(text, line, between)
		}
		text = before + text + after
		at := 0
		for d := range findData(text) {
			if d.start < at || d.end < d.start+leastData || d.end > len(text) || len(d.name) >= d.end-d.start {
				t.Fatalf("%+v after %d", d, at)
			}
			if strings.ContainsAny(d.name, "\"\\\n") {
				t.Fatalf("%q", d.name)
			}
			at = d.end
		}
		named := NameData(text)
		if utf8.ValidString(text) && !utf8.ValidString(named) {
			t.Fatal("not UTF-8 any more")
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(named)) {
			t.Fatal("not JSON any more")
		}
		if again := NameData(named); len(again) > len(named) {
			t.Fatal("longer")
		}
	})
}

func BenchmarkNameData(b *testing.B) {
	const size = 50_000_000
	repeated := func(text string) string { return strings.Repeat(text, size/len(text)+1)[:size] }
	for name, text := range map[string]string{
		"prose":            repeated("The quick brown fox jumps over the lazy dog in pkg/window/build_test.go:120.\n"),
		"escaped":          repeated(`{"text":"The quick brown fox\n\tjumps over the lazy dog in \"pkg\\window\\build_test.go\":120.\n"}`),
		"paths":            repeated("/usr/local/lib/node_modules/some-package/node_modules/other_package/lib/index_file.js\n"),
		"DNA like an icon": ">chr2\n" + strings.Repeat("AAACAACCGTTGGATC", 100),
		"hashes":           repeated(strings.Repeat("0123456789abcdef", 4) + "\n"),
		"one word":         repeated("a"),
		"backslashes":      repeated(`\`),
		"line ends":        repeated("\n"),
		"nearly a run":     repeated(strings.Repeat("a", 999) + "\n\n"),
		"nearly lines":     repeated(strings.Repeat(strings.Repeat("a", 76)+"\n", 12) + "\n"),
		"growing lines":    repeated(strings.Repeat("a", 41) + "\n" + strings.Repeat("b", 42) + "\n" + strings.Repeat("c", 43) + "\n"),
		"image":            pngOf(size * 3 / 4),
		"image on lines":   broken(pngOf(size*3/4), 76, "\n"),
		"screenshots":      repeated(`{"type":"image","data":"` + pngOf(150_000) + `"}, {"text":"What is on it?"}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				NameData(text)
			}
		})
	}
}
