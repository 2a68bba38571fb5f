package files

import "strings"

// patchHeads begin the lines of a patch of the apply_patch form that name a file
// which is there afterwards. A deleted file is left out, and so is the name that a
// moved file had.
const (
	patchBegin  = "*** Begin Patch"
	patchUpdate = "*** Update File: "
	patchAdd    = "*** Add File: "
	patchMove   = "*** Move to: "
)

// patched adds the files that a patch writes. Text without patchBegin is no patch.
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
