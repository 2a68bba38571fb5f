package codebase

import (
	"strconv"
	"strings"
)

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// Base returns the folder to which the paths of an index are relative for an agent that works in a directory: the
// folder that was read, or the repository that it is a worktree of, if that contains the directory or is inside
// it. It returns "" if the index is of no use there.
func (s *Scan) Base(cwd string) string {
	for _, folder := range []string{s.Root, s.Project} {
		if within(cwd, folder) || within(folder, cwd) {
			return strings.TrimSuffix(folder, "/")
		}
	}
	return ""
}

// within reports whether a path is a folder or in it. The name of a project that is not a path holds nothing.
func within(path, folder string) bool {
	folder = strings.TrimSuffix(folder, "/")
	if !strings.HasPrefix(folder, "/") && !strings.HasPrefix(folder, `\\`) && (len(folder) < 3 || folder[1] != ':') {
		return false
	}
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}
