package plain

import (
	"encoding/base64"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"strings"
)

// leastData is from how many characters on base64 is named instead of shown. Less is rarely a file, and does not fill
// a context.
const leastData = 1_000

// Data is a place in a text, from byte Start to End, that holds a file as base64. Name stands for it.
type Data struct {
	Start, End int
	Name       string // such as "[image/png, 60 kB]": ASCII, without quotes, shorter than what it stands for
}

// FindData finds the images, sounds and other files that a text holds as base64 of at least 1,000 characters: data URLs,
// members of JSON such as "data" beside a media type, and what begins as a well-known kind of file does. The text may be
// the beginning of a longer one; rest is how many bytes are missing. If the text ends in data, the rest counts as data.
//
// It reads little more than every thousandth character of a text without long words.
func FindData(text string, rest int) iter.Seq[Data] {
	return func(yield func(Data) bool) {
		last := 0 // where the data before ends
		for at := 0; ; {
			start, end := longWord(text, at)
			if start == end {
				return
			}
			at = end
			from, kind, ok := kindOfData(text, last, start, end, rest > 0 && end == len(text))
			if !ok {
				continue
			}
			n := (end - start) * 3 / 4
			padded := strings.TrimLeft(text[end:min(end+2, len(text))], "=")
			at = min(end+2, len(text)) - len(padded)
			last = at
			name := fmt.Sprintf("[%s, %s]", kind, sizeOf(n))
			if rest > 0 && at == len(text) {
				name = fmt.Sprintf("[%s, at most %s; the end is in the log]", kind, sizeOf(n+rest*3/4))
			}
			if !yield(Data{from, at, name}) {
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

var base64Bytes = func() (is [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_" { // of both alphabets
		is[c] = true
	}
	return is
}()

// longWord returns the first word in the letters of base64, from a place on, that is long enough; equal places if there
// is none.
func longWord(text string, from int) (start, end int) {
	for from+leastData <= len(text) {
		last := from + leastData - 1
		for last >= from && base64Bytes[text[last]] {
			last--
		}
		if last >= from {
			from = last + 1
			continue
		}
		end = from + leastData
		for end < len(text) && base64Bytes[text[end]] {
			end++
		}
		return from, end
	}
	return len(text), len(text)
}

// around is how far around data its media type is looked for, in bytes. A file's name may be in between.
const around = 300

var (
	// (?i) would match letters that are not ASCII, such as ſ.
	dataURL   = regexp.MustCompile(`[Dd][Aa][Tt][Aa]:([A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+)?(?:;[A-Za-z0-9.+_-]+=[A-Za-z0-9.+_"%-]+)*;[Bb][Aa][Ss][Ee]64,$`)
	dataKey   = regexp.MustCompile(`"(?:data|blob)"\s*:\s*"$`)
	mediaType = regexp.MustCompile(`"(?:media_type|mediaType|mimeType|mime_type)"\s*:\s*"([a-zA-Z0-9.+-]+/[a-zA-Z0-9.+-]+)`)
)

// kindOfData says what kind of file the base64 from start to end is, and from where on the text names it, which is not
// before after. open means that the data may go on after the text.
func kindOfData(text string, after, start, end int, open bool) (from int, kind string, ok bool) {
	before := text[max(after, start-around):start]
	if m := dataURL.FindStringSubmatchIndex(before); m != nil {
		if m[2] >= 0 {
			kind = strings.ToLower(before[m[2]:m[3]])
		} else if kind = kindByContent(text[start:end]); kind == "" {
			kind = "file"
		}
		return start - len(before) + m[0], kind, true
	}
	kind = kindByContent(text[start:end])
	if dataKey.MatchString(before) {
		behind := text[end:min(len(text), end+around)]
		if i := strings.IndexAny(behind, "{}"); i >= 0 {
			behind = behind[:i]
		}
		before = before[strings.LastIndexAny(before, "{}")+1:]
		if m := mediaType.FindStringSubmatch(before); m != nil {
			kind = strings.ToLower(m[1])
		} else if m := mediaType.FindStringSubmatch(behind); m != nil {
			kind = strings.ToLower(m[1])
		} else if open && kind == "" {
			kind = "file"
		}
	}
	return start, kind, kind != ""
}

// kindByContent returns the media type of a file that is known by how it begins, "" for others.
func kindByContent(data string) string {
	head := strings.NewReplacer("-", "+", "_", "/").Replace(data[:min(len(data), 684)&^3])
	raw, err := base64.StdEncoding.DecodeString(head)
	if err != nil {
		return ""
	}
	kind := http.DetectContentType(raw)
	for _, known := range []string{"image/", "audio/", "video/", "font/", "application/pdf", "application/zip", "application/ogg"} {
		if strings.HasPrefix(kind, known) && kind != "image/bmp" { // two letters make a BMP
			return kind
		}
	}
	return ""
}

// NameData returns a text with names, such as "[image/png, 60 kB]", in place of what [FindData] finds.
func NameData(text string, rest int) string {
	var out strings.Builder
	at := 0
	for d := range FindData(text, rest) {
		out.WriteString(text[at:d.Start])
		out.WriteString(d.Name)
		at = d.End
	}
	if at == 0 {
		return text
	}
	out.WriteString(text[at:])
	return out.String()
}
