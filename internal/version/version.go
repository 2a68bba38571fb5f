// Package version identifies the build of mneme.
package version

import (
	"runtime/debug"
	"strings"
)

// Info is what the Go toolchain has stamped on a program.
type Info struct {
	Version string `json:"version" doc:"the module's version, (devel) for a build of a working copy"`
	Commit  string `json:"commit,omitempty" doc:"the commit it was built from"`
	Date    string `json:"date,omitempty" doc:"when that commit was made"`
	Changed bool   `json:"changed,omitempty" doc:"files differed from the commit"`
	Go      string `json:"go"`
}

// Get returns the build info of this program.
func Get() Info {
	info := Info{Version: "(devel)"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.Go = build.GoVersion
	if build.Main.Version != "" {
		info.Version = build.Main.Version
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.time":
			info.Date = s.Value
		case "vcs.modified":
			info.Changed = s.Value == "true"
		}
	}
	return info
}

// Short returns the version and the commit, for a table.
func (i Info) Short() string {
	if i.Commit == "" {
		return i.Version
	}
	short := i.Version + " " + i.Commit[:min(7, len(i.Commit))]
	if i.Changed {
		short += "+"
	}
	return short
}

// String returns the version on one line.
func (i Info) String() string {
	if i.Version == "" { // a server that does not report it
		return "unknown"
	}
	parts := []string{i.Version}
	if i.Commit != "" {
		commit := "commit " + i.Commit[:min(12, len(i.Commit))]
		if i.Changed {
			commit += " with changes"
		}
		if i.Date != "" {
			commit += " of " + i.Date
		}
		parts = append(parts, commit)
	}
	return strings.Join(append(parts, i.Go), ", ")
}
