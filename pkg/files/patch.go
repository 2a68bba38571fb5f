package files

import "strings"

// The beginnings of the lines in an apply_patch patch that name a file which exists
// afterwards. Deleted files and the old names of moved files are left out.
const (
	patchBegin  = "*** Begin Patch"
	patchUpdate = "*** Update File: "
	patchAdd    = "*** Add File: "
	patchMove   = "*** Move to: "
)

// patched adds the files that a patch writes. Text without patchBegin is not a patch.
func (c *collection) patched(base, text string) {
	i := strings.Index(text, patchBegin)
	if i < 0 {
		return
	}
	var file string
	flush := func() {
		if file != "" {
			c.add(base, file, KindWrite)
		}
		file = ""
	}
	for line := range strings.Lines(text[i:]) {
		line = strings.TrimRight(line, "\r\n")
		if to, ok := strings.CutPrefix(line, patchMove); ok {
			file = strings.TrimSpace(to)
			continue
		}
		for _, head := range []string{patchUpdate, patchAdd} {
			if name, ok := strings.CutPrefix(line, head); ok {
				flush()
				file = strings.TrimSpace(name)
			}
		}
	}
	flush()
}
