package plain

import (
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"strings"
)

// data is a place in a text, from byte start to end, that holds a file as base64. name stands for it.
type data struct {
	start, end int
	name       string // such as "[image/png, 60 kB]": ASCII, without quotes, shorter than what it stands for
}

// NameData returns a text with names, such as "[image/png, 60 kB]", in place of the images, sounds and other files that it
// holds as base64 of at least 1,000 characters: data URLs, members of JSON such as "data" beside a media type, and what begins
// as a well-known kind of file does. The base64 may be escaped as in JSON, and on lines of equal length.
func NameData(text string) string {
	var out strings.Builder
	at := 0
	for d := range findData(text) {
		out.WriteString(text[at:d.start])
		out.WriteString(d.name)
		at = d.end
	}
	if at == 0 {
		return text
	}
	out.WriteString(text[at:])
	return out.String()
}

// name matches the names that [NameData] writes.
var name = regexp.MustCompile(`\[(?:file|[a-z0-9.+-]+/[a-z0-9.+-]+), [0-9.]+ [kM]B\]`)

// HasName reports whether a text has a name that [NameData] may have written.
func HasName(text string) bool { return name.MatchString(text) }

func findData(text string) iter.Seq[data] {
	return func(yield func(data) bool) {
		last := 0 // where the data before ends
		for at := 0; ; {
			r, ok := nextRun(text, at)
			if !ok {
				return
			}
			at = r.end
			d, ok := dataIn(text, last, r)
			if !ok {
				continue
			}
			if last = d.end; !yield(d) {
				return
			}
		}
	}
}

// sizeOf shows a number of bytes.
func sizeOf(bytes int) string {
	if bytes < 999_500 {
		return fmt.Sprintf("%d kB", max(1, (bytes+500)/1_000))
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// around is how far around data its media type is looked for, in bytes. A file's name may be in between.
const around = 300

var (
	// (?i) would match letters that are not ASCII, such as ſ.
	dataURL   = regexp.MustCompile(`[Dd][Aa][Tt][Aa]:([A-Za-z0-9.+-]+\\*/[A-Za-z0-9.+-]+)?(?:;[A-Za-z0-9.+_-]+=[A-Za-z0-9.+_"%-]+)*;[Bb][Aa][Ss][Ee]64,$`)
	dataKey   = regexp.MustCompile(`"(?:data|blob)\\*"\s*:\s*\\*"$`)
	mediaType = regexp.MustCompile(`"(?:media_type|mediaType|mimeType|mime_type)\\*"\s*:\s*\\*"([a-zA-Z0-9.+-]+\\*/[a-zA-Z0-9.+-]+)`)
)

// dataIn returns the data that base64 is, which does not begin before after.
func dataIn(text string, after int, r run) (d data, ok bool) {
	kind := ""
	if first := r.before; first.start >= after && first.letters > 0 {
		if d.start, kind = kindOf(text, after, first.start, r.end); kind != "" {
			r.letters += first.letters
		}
	}
	if kind == "" {
		d.start, kind = kindOf(text, after, r.start, r.end)
	}
	d.end, d.name = r.end, fmt.Sprintf("[%s, %s]", kind, sizeOf(r.letters*3/4))
	return d, kind != ""
}

// kindOf says what kind of file the base64 from start to end is, "" if it is none that is known, and from where on the text names
// it, which is not before after.
func kindOf(text string, after, start, end int) (from int, kind string) {
	before := text[max(after, start-around):start]
	if m := dataURL.FindStringSubmatchIndex(before); m != nil {
		if m[2] >= 0 {
			kind = typeOf(before[m[2]:m[3]])
		} else if kind = kindByContent(text, start, end); kind == "" {
			kind = "file"
		}
		return start - len(before) + m[0], kind
	}
	if dataKey.MatchString(before) {
		behind := text[end:min(len(text), end+around)]
		if i := strings.IndexAny(behind, "{}"); i >= 0 {
			behind = behind[:i]
		}
		before = before[strings.LastIndexByte(before, '}')+1:] // of the same object, or one around it
		if m := mediaType.FindStringSubmatch(before); m != nil {
			return start, typeOf(m[1])
		}
		if m := mediaType.FindStringSubmatch(behind); m != nil {
			return start, typeOf(m[1])
		}
	}
	return start, kindByContent(text, start, end)
}

// typeOf returns a media type as it is shown; JSON may escape its slash.
func typeOf(name string) string { return strings.ToLower(strings.ReplaceAll(name, `\`, "")) }

// kindByContent returns the media type of a file that is known by how it begins, "" for others.
func kindByContent(text string, start, end int) string {
	kind := http.DetectContentType(decoded(text, start, end))
	for _, known := range []string{"image/", "audio/", "video/", "font/", "application/pdf", "application/zip", "application/ogg"} {
		if strings.HasPrefix(kind, known) && kind != "image/bmp" && kind != "image/x-icon" { // two letters make a BMP, and DNA may begin as an icon does
			return kind
		}
	}
	return ""
}
