package project

import (
	"cmp"
	"encoding/hex"
	"path"
	"regexp"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
)

// MaxName is the longest name of a project in bytes.
const MaxName = 1024

// Name returns a project's name as it is stored: valid UTF-8, and a name that is too long ends in a hash
// of all of it, so that different names stay different.
func Name(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) <= MaxName {
		return name
	}
	sum := events.DigestOf(name)
	return strings.ToValidUTF8(name[:MaxName-40], "") + "…" + hex.EncodeToString(sum[:])
}

// Place says to which project a conversation belongs, as far as the conversation itself shows that.
type Place struct {
	Name string `json:"n,omitempty"` // "" if nothing shows it
	// Root is the root of a repository that the conversation shows, "" if it shows none. Conversations that only have a
	// working directory below the root belong to its project.
	Root string `json:"r,omitempty"`
	// Folder is the folder that the paths of its files start from: its checkout, or its working directory.
	Folder string `json:"f,omitempty"`
	// Fixed reports that the name was given or is a repository, so the name is never folded into another.
	Fixed bool `json:"x,omitempty"`
}

// PlaceOf finds the place of a conversation by what its first event says: its project, else its
// repository, else the folder that it works in.
func PlaceOf(name, repository, cwd string) Place {
	folder := files.Normalise("", cwd)
	if !absolute(folder) {
		folder = ""
	}
	root, inWorktree := fold(folder)
	p := Place{Folder: folder}
	if inWorktree {
		p.Root = Name(root)
	}
	if repository != "" {
		if at := files.Normalise("", repository); absolute(at) {
			at, _ = fold(at)
			p.Root, repository = Name(at), at
		} else {
			repository = Remote(repository)
		}
	}
	p.Fixed = name != "" || repository != ""
	p.Name = Name(cmp.Or(name, repository, root))
	return p
}

func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\\`) || len(p) > 2 && p[1] == ':'
}

// Worktrees are kept in these folders of a repository.
var worktrees = []string{"/.worktrees/", "/.claude/worktrees/", "/.git/worktrees/", "/.cursor/worktrees/"}

// fold returns the repository that a worktree belongs to, if the path shows it: /w/cli/.worktrees/4 belongs
// to /w/cli. Other paths it returns unchanged.
func fold(folder string) (root string, inWorktree bool) {
	slashed := strings.ReplaceAll(folder, `\`, "/") + "/"
	for _, w := range worktrees {
		if i := strings.Index(slashed, w); i > 0 {
			return folder[:i], true
		}
	}
	return folder, false
}

var (
	withScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/@]*@)?([^/:]+)(?::[0-9]+)?/(.+)$`)
	likeSCP    = regexp.MustCompile(`^(?:[^/@:]+@)?([^/@:]+):([^/].*)$`)
)

// Remote returns a repository's remote in one form, whatever the protocol and the user:
// git@github.com:o/r.git and https://github.com/o/r are both github.com/o/r.
func Remote(remote string) string {
	remote = strings.TrimSpace(remote)
	for _, form := range []*regexp.Regexp{withScheme, likeSCP} {
		if m := form.FindStringSubmatch(remote); m != nil {
			remote = strings.ToLower(m[1]) + "/" + m[2]
			break
		}
	}
	return strings.TrimSuffix(strings.TrimRight(remote, "/"), ".git")
}

// foldersAbove lists the folders above a path, the nearest first, without the topmost.
func foldersAbove(folder string) (list []string) {
	if !absolute(folder) {
		return nil
	}
	for {
		i := strings.LastIndexAny(folder, `/\`)
		if i <= 0 || len(list) == maxDepth {
			return list
		}
		folder = folder[:i]
		list = append(list, folder)
	}
}

const maxDepth = 64

// Relative returns the path of a file as seen from the folder of its conversation, so that it means the
// same in another checkout. A path outside of the folder and of the repository stays as it is.
func (p Place) Relative(file string) string {
	file = path.Clean(file)
	for _, base := range []string{p.Folder, p.Root} {
		rest, ok := strings.CutPrefix(file, base)
		if base == "" || !ok || rest == "" {
			continue
		}
		if rest[0] != '/' && rest[0] != '\\' {
			continue
		}
		rest = rest[1:]
		for _, w := range worktrees { // a worktree of the repository: its name is taken to be one component
			if in, ok := strings.CutPrefix(rest, w[1:]); ok {
				if _, below, ok := strings.Cut(in, "/"); ok {
					rest = below
				}
			}
		}
		return rest
	}
	return file
}
