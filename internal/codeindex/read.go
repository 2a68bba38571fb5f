package codeindex

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mneme.dev/mneme/pkg/scopes"
)

// outcome is the result of reading a file.
type outcome struct {
	job
	hash     string
	why      string
	cut      scopes.File
	redacted int
	bytes    int64
	err      error
}

// changing is why a file is left out that changes while it is read.
const changing = "changing"

// read reads and cuts a file. A file that changes while it is read is read once more.
func (r *run) read(f job) outcome {
	name := filepath.Join(r.Root, filepath.FromSlash(f.path))
	for range 2 {
		content, info, same, err := readFile(name)
		if err != nil {
			return outcome{job: f, err: err}
		}
		if !same {
			continue
		}
		f.size, f.time = info.Size(), info.ModTime().UnixNano()
		sum := sha256.Sum256(content)
		o := outcome{job: f, hash: hex.EncodeToString(sum[:]), bytes: int64(len(content))}
		if f.size > scopes.MaxFileBytes {
			o.hash = fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint("large ", f.size, f.time)))) // not read to its end
		}
		if f.old != nil && f.old.Hash == o.hash {
			o.why = f.old.Why
			return o
		}
		var reason scopes.Reason
		if o.cut, reason = scopes.Cut(f.path, content); reason != "" {
			o.why = string(reason)
		} else if len(o.cut.Scopes) == 0 {
			o.why = string(scopes.Empty)
		} else {
			r.clean(&o, content)
		}
		return o
	}
	return outcome{job: f, why: changing}
}

// readFile reads at most one byte more than a file may have. same reports whether it stayed the same while it
// was read.
func readFile(name string) (content []byte, info os.FileInfo, same bool, err error) {
	before, err := os.Lstat(name)
	if err != nil || !before.Mode().IsRegular() { // it became a link, or something that never ends
		return nil, before, false, err
	}
	in, err := os.Open(name)
	if err != nil {
		return nil, nil, false, err
	}
	defer func() { _ = in.Close() }()
	if content, err = io.ReadAll(io.LimitReader(in, scopes.MaxFileBytes+1)); err != nil {
		return nil, nil, false, err
	}
	info, err = in.Stat()
	if err != nil {
		return nil, nil, false, err
	}
	return content, info, os.SameFile(before, info) && before.Size() == info.Size() && before.ModTime().Equal(info.ModTime()), nil
}

// clean replaces secrets. It looks at the whole file, because a secret of several lines can end in another scope than
// it begins in, and cuts the file again if there are any. What is between <private> and </private> is looked for in
// each scope once more: in a program the two tags can be far apart and not belong together. Of a long scope only the
// beginning is published, so the second tag may come after it.
func (r *run) clean(o *outcome, content []byte) {
	if r.Redact == nil {
		return
	}
	before := map[string]bool{}
	for _, s := range o.cut.Scopes {
		before[s.Text] = true
	}
	if text, kinds := r.whole.Lines(string(content)); len(kinds) > 0 {
		var reason scopes.Reason
		if o.cut, reason = scopes.Cut(o.path, []byte(text)); reason != "" {
			o.why = string(reason)
		}
	}
	lines := sync.OnceValue(func() []string { return linesOf(content) })
	for i := range o.cut.Scopes {
		s := &o.cut.Scopes[i]
		whole := s.Text
		if at := strings.LastIndex(whole, "<private>"); at > strings.LastIndex(whole, "</private>") {
			all := lines()
			if slices.ContainsFunc(all[min(s.Start-1, len(all)):min(s.End, len(all))], func(line string) bool { return strings.Contains(line, "</private>") }) {
				whole += "</private>"
			}
		}
		if strings.Contains(whole, "</private>") {
			if text, kinds := r.Redact.Lines(whole); len(kinds) > 0 {
				s.Text = text
				s.Name, _, _ = strings.Cut(s.Name, "<private>") // it can begin in a heading
			}
		}
		if !before[s.Text] {
			o.redacted++
		}
	}
}

// linesOf returns the lines of a file as package scopes counts them.
func linesOf(content []byte) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(content)), "\n")
}
