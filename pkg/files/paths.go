package files

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Normalise writes path in the one form that accesses are compared in: absolute
// if cwd is known, without "." and ".." and without a slash at its end.
//
// It returns "" for what is no path: nothing, a URL of any scheme, text that is not
// UTF-8, holds control characters or is longer than [MaxPathBytes]. A path that
// begins with ~ is not expanded, and a Windows path keeps its backslashes. A cwd
// that is itself relative counts as unknown; the path then stays relative.
func Normalise(cwd, path string) string {
	if !rooted(cwd) {
		cwd = ""
	}
	return join(cwd, path)
}

// join is Normalise for a base that may be relative, as a shell's is after cd.
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

// isURL tells whether p begins with a scheme and "://".
func isURL(p string) bool {
	scheme, _, ok := strings.Cut(p, "://")
	return ok && scheme != "" && !strings.ContainsFunc(scheme, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+-.", r)
	})
}

// rooted tells whether p needs no folder to be understood: it is absolute or
// begins at a home.
func rooted(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || windows(p)
}

// windows tells whether p begins with a drive (C:\ or C:/) or a share (\\).
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

// cleanWindows is path.Clean for a Windows path, which may mix its separators.
func cleanWindows(p string) string {
	root, rest := p[:2], p[2:]
	if root == `\\` {
		root = `\`
	}
	cleaned := path.Clean("/" + strings.ReplaceAll(rest, `\`, "/"))
	return root + strings.ReplaceAll(cleaned, "/", `\`)
}
