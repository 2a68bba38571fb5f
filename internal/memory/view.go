package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/pkg/project"
)

// view shows a file with numbered lines, or lists a folder. Recorded text is put into a frame.
func (f *Folder) view(ctx context.Context, c Command) (string, error) {
	at, err := below(c.Path)
	if err != nil {
		return "", err
	}
	file := f.find(at)
	if file == nil {
		if !f.isFolder(at) {
			return "", refuse("The path %s does not exist. Please provide a valid path.", c.Path)
		}
		return f.list(strings.TrimSuffix(c.Path, "/"), at), nil
	}
	text := file.Text
	if file.Seq != 0 {
		if text, err = f.Text(ctx, *file); err != nil {
			return "", err
		}
	}
	lines := strings.Split(text, "\n")
	from, to := 1, len(lines)
	if len(c.ViewRange) == 2 {
		from = max(1, c.ViewRange[0])
		if to = c.ViewRange[1]; to == -1 {
			to = len(lines)
		}
		if to = min(to, len(lines)); from > to {
			return "", refuse("Error: Invalid `view_range` parameter: %v. It should be within the range of lines of the file: [1, %d]", c.ViewRange, len(lines))
		}
	} else if len(c.ViewRange) != 0 {
		return "", refuse("Error: Invalid `view_range` parameter: %v. It needs the first and the last line.", c.ViewRange)
	}
	shown := "Here's the content of " + c.Path + " with line numbers:\n" + numbered(lines[from-1:to], from)
	if file.Seq == 0 {
		hash := sha256.Sum256([]byte(text))
		shown = frame.Wrap(hex.EncodeToString(hash[:8]), f.AsOf, shown)
	}
	return shown, nil
}

// numbered puts a number of six columns and a tab before each line.
func numbered(lines []string, first int) string {
	var out strings.Builder
	for i, line := range lines {
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "%6d\t%s", first+i, line)
	}
	return out.String()
}

// depth is how many levels a list shows.
const depth = 2

// list shows the files and folders in a folder, two levels deep. Sizes of folders are those of all files in them.
func (f *Folder) list(shown, at string) string {
	sizes := map[string]int{} // by the path as seen from the folder; folders end in a slash
	total := 0
	for i := range f.Files {
		file := &f.Files[i]
		if at != "" && !project.Below(file.Path, at) {
			continue
		}
		parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(file.Path, at), "/"), "/")
		if slices.ContainsFunc(parts, func(part string) bool { return part[0] == '.' }) {
			continue
		}
		total += file.Size
		for n := range min(depth, len(parts)-1) {
			sizes[strings.Join(parts[:n+1], "/")+"/"] += file.Size
		}
		if len(parts) <= depth {
			sizes[strings.Join(parts, "/")] += file.Size
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Here're the files and directories up to %d levels deep in %s, excluding hidden items:\n%s\t%s", depth, shown, size(total), shown)
	for _, path := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintf(&out, "\n%s\t%s/%s", size(sizes[path]), shown, path)
	}
	return out.String()
}

// size shows bytes as people read them: 512B, 1.5K.
func size(n int) string {
	if n < 1<<10 {
		return fmt.Sprintf("%dB", n)
	}
	if n%(1<<10) == 0 {
		return fmt.Sprintf("%dK", n>>10)
	}
	return fmt.Sprintf("%.1fK", float64(n)/(1<<10))
}
