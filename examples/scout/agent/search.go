package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of one search through the folder.
const (
	MaxFiles     = 20_000    // files to search
	MaxFileBytes = 1 << 20   // size of one file; larger ones are skipped
	MaxBytes     = 128 << 20 // total size of all files
)

// maxHitsPerFile bounds the hits kept per file before spread.
const maxHitsPerFile = 50

// skipped lists folders of third-party or generated files.
var skipped = map[string]bool{
	".git": true, ".hg": true, ".svn": true, "vendor": true, "node_modules": true,
	".venv": true, "venv": true, "__pycache__": true, ".idea": true, ".vscode": true, ".cache": true, ".mneme": true,
}

var errEnough = errors.New("enough")

// grep searches every text file under a path for a pattern, in order of name. It records
// and skips files that cannot be read.
func (t *toolbox) grep(ctx context.Context, pattern *regexp.Regexp, need needed, path string) ([]hit, error) {
	var found [][]hit
	read, seen := 0, 0
	err := fs.WalkDir(t.root.FS(), path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == path:
			return err
		case err != nil:
			t.unreadable[name] = true
			return nil
		case d.IsDir() && name != path && skipped[d.Name()]:
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		case seen == MaxFiles || read > MaxBytes:
			t.cut = true
			return errEnough
		}
		seen++
		content, err := t.content(name)
		if errors.Is(err, errNoText) {
			return nil
		}
		if err != nil {
			t.unreadable[name] = true
			return nil
		}
		read += len(content)
		if hits := match(pattern, need, name, content); len(hits) > 0 {
			found = append(found, hits)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return spread(found), nil
}

// errNoText means that a file is too large or binary and is not searched.
var errNoText = errors.New("is too large or not a text")

// content reads a text file.
func (t *toolbox) content(name string) ([]byte, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxFileBytes || bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNoText}
	}
	return content, nil
}

func match(pattern *regexp.Regexp, need needed, name string, content []byte) []hit {
	if !need.in(content) {
		return nil
	}
	var hits []hit
	n := 0
	for line := range bytes.Lines(content) {
		n++
		if line = bytes.TrimRight(line, "\r\n"); need.in(line) && pattern.Match(line) {
			hits = append(hits, hit{File: strings.ToValidUTF8(name, "�"), Line: n, Text: shorten(string(line))})
			if len(hits) == maxHitsPerFile {
				break
			}
		}
	}
	return hits
}

// spread takes at most MaxHits, spread evenly over the files, so that the limit does not
// hide files whose names come last.
func spread(found [][]hit) []hit {
	total := func(each int) (n int) {
		for _, hits := range found {
			n += min(len(hits), each)
		}
		return n
	}
	each := maxHitsPerFile
	for each > 1 && total(each) > MaxHits {
		each--
	}
	all := make([]hit, 0, min(total(each), MaxHits))
	for _, hits := range found {
		all = append(all, hits[:min(len(hits), each)]...)
	}
	return all[:min(len(all), MaxHits)]
}

// needed holds lists of lower-case texts: a pattern can only match a text that contains all
// of one list. Checking that takes a tenth of the time of matching. Nil means unknown.
type needed [][][]byte

// neededText supports patterns made of words, ".*" and "|".
func neededText(pattern string) needed {
	var need needed
	for one := range strings.SplitSeq(pattern, "|") {
		var all [][]byte
		for piece := range strings.SplitSeq(one, ".*") {
			if regexp.QuoteMeta(piece) != piece || strings.ContainsFunc(piece, func(r rune) bool { return r >= utf8.RuneSelf }) {
				return nil // beyond ASCII a letter may have more than two cases
			}
			all = append(all, []byte(strings.ToLower(piece)))
		}
		need = append(need, all)
	}
	return need
}

func (need needed) in(text []byte) bool {
	if need == nil {
		return true
	}
	lower := bytes.ToLower(text)
	return slices.ContainsFunc(need, func(all [][]byte) bool {
		return !slices.ContainsFunc(all, func(piece []byte) bool { return !bytes.Contains(lower, piece) })
	})
}

// shorten cuts a line to MaxLineChars.
func shorten(line string) string {
	line = strings.TrimRight(strings.ToValidUTF8(line, "�"), " \t\r")
	n := 0
	for i := range line {
		if n++; n > MaxLineChars {
			return line[:i] + "…"
		}
	}
	return line
}
