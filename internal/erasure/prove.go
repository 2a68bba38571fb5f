package erasure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"

	"mneme.dev/mneme/events"
)

// MinCanary is the shortest text that is worth searching for: shorter ones occur by chance.
const MinCanary = 6

// Hit is a place where a canary was found.
type Hit struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Canary int    `json:"canary"` // which one, from 1; the text itself is not repeated
	Form   string `json:"form"`   // how it is written there
}

// Searched is what a search has read and found.
type Searched struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	Hits  []Hit `json:"hits"`           // at most maxHits
	More  bool  `json:"more,omitempty"` // the search ended with the first hit that it does not list
}

// maxHits is the number of hits that a search lists.
const maxHits = 1000

// form is an encoding of a canary.
type form struct {
	name   string
	bytes  []byte
	canary int
}

// forms are the encodings in which the log and the stores may hold a text: unchanged, in UTF-16, within JSON, in an
// event's header, in a subject, and in the lower case of search terms.
func forms(canaries []string) (list []form) {
	for i, text := range canaries {
		known := map[string]bool{}
		add := func(name string, raw []byte) {
			if !known[string(raw)] {
				known[string(raw)] = true
				list = append(list, form{name, raw, i + 1})
			}
		}
		add("utf-8", []byte(text))
		units := utf16.Encode([]rune(text))
		var little, big []byte
		for _, u := range units {
			little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
		}
		add("utf-16, little endian", little)
		add("utf-16, big endian", big)
		add("json", jsonOf(text, false))
		add("json, html escaped", jsonOf(text, true))
		add("json, ascii only", jsonASCII(text))
		add("header", percentEncoded(text))
		add("subject", []byte(events.Escape(text)))
		add("lower case", []byte(strings.ToLower(text)))
	}
	return list
}

// jsonOf writes a text as it is written between the quotes of a JSON string.
func jsonOf(text string, escapeHTML bool) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(escapeHTML)
	if encoder.Encode(text) != nil { // no string fails
		return []byte(text)
	}
	raw := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	return raw[1 : len(raw)-1]
}

func jsonASCII(text string) (ascii []byte) {
	for _, r := range string(jsonOf(text, false)) {
		if r < 0x80 {
			ascii = append(ascii, byte(r))
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			ascii = fmt.Appendf(ascii, `\u%04x`, u)
		}
	}
	return ascii
}

// percentEncoded writes a text as the NATS binding of CloudEvents writes attributes.
func percentEncoded(text string) (out []byte) {
	for _, b := range []byte(text) {
		if b <= ' ' || b >= 0x7f || b == '"' || b == '%' {
			out = fmt.Appendf(out, "%%%02X", b)
			continue
		}
		out = append(out, b)
	}
	return out
}

// CheckCanaries refuses texts whose search would prove nothing.
func CheckCanaries(canaries []string) error {
	for i, text := range canaries {
		if len(text) < MinCanary {
			return fmt.Errorf("text %d has %d bytes: give at least %d, because a shorter text is found by chance", i+1, len(text), MinCanary)
		}
	}
	if len(canaries) == 0 {
		return errors.New("there is no text to search for")
	}
	return nil
}

// Search reads every byte of the files below paths, also behind symbolic links, and looks for canaries, see
// [CheckCanaries]. A file that can't be read is an error, because it might hold one.
func Search(ctx context.Context, paths, canaries []string) (s Searched, err error) {
	if err := CheckCanaries(canaries); err != nil {
		return s, err
	}
	patterns := forms(canaries)
	s.Hits = []Hit{}
	searched := map[string]bool{} // real paths: links can lead to the same file twice, or in a circle
	for roots := slices.Clone(paths); len(roots) > 0; roots = roots[1:] {
		root, err := filepath.EvalSymlinks(roots[0])
		if err != nil {
			return s, err
		}
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case s.More:
				return fs.SkipAll
			case err != nil:
			case ctx.Err() != nil:
				return ctx.Err()
			case entry.Type()&fs.ModeSymlink != 0:
				if to, err := filepath.EvalSymlinks(path); err == nil { // else it leads nowhere
					roots = append(roots, to)
				}
			case searched[path] && entry.IsDir():
				return fs.SkipDir
			case searched[path]:
			case entry.Type().IsRegular():
				err = s.file(ctx, path, patterns)
			}
			searched[path] = true
			if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
				return nil
			}
			return err
		})
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// searchBuffer is how much of a file is searched at once.
const searchBuffer = 1 << 20

func (s *Searched) file(ctx context.Context, path string, patterns []form) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	s.Files++
	longest := 0
	for _, p := range patterns {
		longest = max(longest, len(p.bytes))
	}
	buffer := make([]byte, searchBuffer+longest)
	held, at := 0, int64(0) // bytes in the buffer, and where its first one is in the file
	for {
		n, err := io.ReadFull(f, buffer[held:])
		s.Bytes += int64(n)
		held += n
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		limit := held // the next read finds matches that begin after it
		if !ended {
			limit = held - longest
		}
		s.find(path, at, buffer[:held], limit, patterns)
		if ended || s.More {
			return ctx.Err()
		}
		copy(buffer, buffer[limit:held])
		at, held = at+int64(limit), held-limit
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (s *Searched) find(path string, at int64, data []byte, limit int, patterns []form) {
	for _, p := range patterns {
		for from := 0; from < limit; {
			i := bytes.Index(data[from:], p.bytes)
			if i < 0 || from+i >= limit {
				break
			}
			if len(s.Hits) == maxHits {
				s.More = true
				return
			}
			s.Hits = append(s.Hits, Hit{path, at + int64(from+i), p.canary, p.name})
			from += i + 1
		}
	}
}
