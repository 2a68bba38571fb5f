package settings

import (
	"errors"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// DefaultMemory is the memory of a program that neither a setting nor a container limits, in
// MiB.
const DefaultMemory = 640

// Memory says how much memory a program takes: one number, of which each part has a share.
type Memory struct {
	Memory      int `envconfig:"MNEME_MEMORY" default:"0" desc:"MiB of memory for this program: five eighths for the Go heap, of which the indexes are a part, a quarter for the caches of SQLite, the rest for the program itself; 0 for 640, or for eight fifths of GOMEMLIMIT if that is set, but not more than nine tenths of the limit of the container or the systemd unit"`
	IndexMemory int `name:"index-memory" envconfig:"MNEME_INDEX_MEMORY" default:"0" desc:"MiB of it for the most recently searched conversations: their indexes and the rows that contexts have read; 0 for a fifth"`
}

// check reports every invalid setting by its variable.
func (m Memory) check() error {
	var small error
	if m.Memory != 0 {
		small = between("MNEME_MEMORY", m.Memory, 64, 1<<20)
	}
	return errors.Join(small, between("MNEME_INDEX_MEMORY", m.IndexMemory, 0, 1<<20))
}

// Shares are the parts of a program's memory, in bytes.
type Shares struct {
	Total   int64
	Heap    int64 // of Go, as GOMEMLIMIT counts it; includes Indexes
	Indexes int64
	Caches  int64 // of SQLite, outside of the heap
}

// Shares divides the memory.
func (m Memory) Shares() Shares {
	s := Shares{Total: int64(m.Memory) << 20}
	if s.Total == 0 {
		s.Total = availableMemory(debug.SetMemoryLimit(-1), containerLimit)
	}
	s.Heap, s.Indexes, s.Caches = s.Total/8*5, s.Total/5, s.Total/4
	if m.IndexMemory > 0 {
		s.Indexes = int64(m.IndexMemory) << 20
	}
	return s
}

// availableMemory returns the memory of a program without MNEME_MEMORY. A heap limit of
// [math.MaxInt64] is none. Whatever the heap's limit, the container's is not exceeded.
func availableMemory(heap int64, container func() (int64, bool)) int64 {
	total := int64(DefaultMemory) << 20
	if heap < math.MaxInt64 {
		total = heap / 5 * 8
	}
	if limit, ok := container(); ok {
		total = min(total, limit/10*9)
	}
	return total
}

// containerLimit returns the limit of the process's control group, version 2 or 1, if it has
// one: that of its container, or of its unit of systemd.
func containerLimit() (int64, bool) {
	groups, _ := os.ReadFile("/proc/self/cgroup") // missing outside of Linux
	return groupLimit("/sys/fs/cgroup", string(groups))
}

// groupLimit returns the smallest limit of the groups that /proc/self/cgroup lists and of the
// groups around them, in the file system mounted at root. A container may see its own group as
// the root while /proc names it as the host does, so a path that is not there is skipped.
func groupLimit(root, groups string) (int64, bool) {
	least := int64(math.MaxInt64)
	read := func(dir, group, file string) {
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			raw, _ := os.ReadFile(filepath.Join(root, dir, group, file))
			if limit, ok := parseLimit(string(raw)); ok {
				least = min(least, limit)
			}
			if group == "/" {
				return
			}
		}
	}
	read("", "/", "memory.max")
	read("memory", "/", "memory.limit_in_bytes")
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // a number, controllers, a path
		switch {
		case len(parts) < 3:
		case parts[1] == "":
			read("", parts[2], "memory.max")
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			read("memory", parts[2], "memory.limit_in_bytes")
		}
	}
	return least, least < math.MaxInt64
}

// parseLimit reads a limit as control groups write it: version 2 writes "max" for none,
// version 1 a number close to the greatest.
func parseLimit(text string) (int64, bool) {
	limit, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return limit, err == nil && limit > 0 && limit < math.MaxInt64/2
}
