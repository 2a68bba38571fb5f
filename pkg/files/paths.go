package files

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Normalise returns path in the form in which accesses are compared: absolute if cwd is
// known, without "." and "..", and without a trailing slash.
//
// It returns "" for anything that is not a path: an empty string, a URL, and text that is
// not UTF-8, holds control characters or is longer than [MaxPathBytes]. A leading ~ is not
// expanded, and a Windows path keeps its backslashes. A relative cwd counts as unknown; the
// path then stays relative.
func Normalise(cwd, path string) string {
	if !rooted(cwd) {
		cwd = ""
	}
	return join(cwd, path)
}

// Split returns the folder of a path in the form of [Normalise], "." if none is known, and the last component.
func Split(p string) (folder, name string) {
	if !windows(p) {
		return path.Dir(p), path.Base(p)
	}
	i := strings.LastIndexAny(p, `/\`)
	folder, name = p[:i], p[i+1:]
	if len(folder) == len("C:") {
		folder += `\`
	}
	return folder, name
}

// join is Normalise with a base that may be relative, like a shell's directory after cd.
func join(base, p string) string {
	if !plausible(p) {
		return ""
	}
	if !rooted(p) && base != "" {
		if windows(base) {
			p = base + `\` + p
		} else {
			p = base + "/" + p
		}
	}
	if windows(p) {
		p = cleanWindows(p)
	} else {
		p = path.Clean(p)
	}
	if len(p) > MaxPathBytes {
		return ""
	}
	return p
}

func plausible(p string) bool {
	return strings.TrimSpace(p) != "" && len(p) <= MaxPathBytes && utf8.ValidString(p) &&
		!strings.ContainsFunc(p, unicode.IsControl) && !isURL(p)
}

// isURL reports whether p begins with a scheme and "://".
func isURL(p string) bool {
	scheme, _, ok := strings.Cut(p, "://")
	return ok && scheme != "" && !strings.ContainsFunc(scheme, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+-.", r)
	})
}

// rooted reports whether p makes sense without a folder: it is absolute or begins at a home
// directory.
func rooted(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || windows(p)
}

// windows reports whether p begins with a drive (C:\ or C:/) or a share (\\).
func windows(p string) bool {
	if strings.HasPrefix(p, `\\`) {
		return true
	}
	if len(p) < 3 || p[1] != ':' || p[2] != '\\' && p[2] != '/' {
		return false
	}
	drive := p[0] | 0x20
	return 'a' <= drive && drive <= 'z'
}

// cleanWindows is path.Clean for a Windows path, which may mix both separators.
func cleanWindows(p string) string {
	root, rest := p[:2], p[2:]
	if root == `\\` {
		root = `\`
	}
	cleaned := path.Clean("/" + strings.ReplaceAll(rest, `\`, "/"))
	return root + strings.ReplaceAll(cleaned, "/", `\`)
}
