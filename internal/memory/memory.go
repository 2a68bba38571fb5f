// Package memory carries out the commands of the memory tool of Anthropic's API (memory_20250818) on the files of a
// project's memory. It decides how a command is answered and which event it makes; it stores nothing.
//
// A [Folder] has the written files, whose texts are in events, and files that mneme makes of what it has recorded. The
// latter are in the folder /memories/recorded and can only be read.
//
// Answers and errors are those that the tool's documentation demands, because models are trained on them.
package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/pkg/project"
)

// Paths as the tool knows them.
const (
	Root     = "/memories"
	recorded = "recorded"
	// Recorded is the folder of the files that mneme makes.
	Recorded = Root + "/" + recorded
)

// Names of the commands.
const (
	View       = "view"
	Create     = "create"
	StrReplace = "str_replace"
	Insert     = "insert"
	Delete     = "delete"
	Rename     = "rename"
)

// Command is a command as a model gives it: the input of the tool.
type Command struct {
	Command    string
	Path       string
	ViewRange  []int // of view
	FileText   string
	OldStr     string
	NewStr     string
	InsertLine int
	InsertText string
	OldPath    string
	NewPath    string
}

// File is a file of a memory.
type File struct {
	Path string // below the root
	Text string // of a recorded one
	Seq  uint64 // of the event that has the text; 0 for a recorded one
	Size int    // in bytes
}

// Folder is a memory at some moment.
type Folder struct {
	Files []File // sorted by path
	// Text reads the text of a written file.
	Text func(context.Context, File) (string, error)
	AsOf uint64 // the sequence as of which the recorded files were made
}

// NewFolder returns the folder of these written and recorded files.
func NewFolder(written []project.MemoryFile, made []File, asOf uint64, text func(context.Context, File) (string, error)) *Folder {
	f := &Folder{Text: text, AsOf: asOf}
	for _, w := range written {
		if !project.Below(w.Path, recorded) { // published by a program that does not know that the path is taken
			f.Files = append(f.Files, File{Path: w.Path, Seq: w.Seq, Size: w.Bytes})
		}
	}
	for _, m := range made {
		m.Path, m.Size = recorded+"/"+m.Path, len(m.Text)
		f.Files = append(f.Files, m)
	}
	slices.SortFunc(f.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return f
}

// Refused is an answer for the model that says why a command changed nothing.
type Refused string

func (r Refused) Error() string { return string(r) }

func refuse(format string, args ...any) error { return Refused(fmt.Sprintf(format, args...)) }

// Run carries out a command. It returns the answer for the model, and the change to store before the answer is given,
// nil for a command that only reads. The error is a [Refused], or one of [Folder.Text].
func (f *Folder) Run(ctx context.Context, c Command) (answer string, change *events.MemoryChanged, err error) {
	switch c.Command {
	case View:
		answer, err = f.view(ctx, c)
	case Create:
		answer, change, err = f.create(c)
	case StrReplace:
		answer, change, err = f.replace(ctx, c)
	case Insert:
		answer, change, err = f.insert(ctx, c)
	case Delete:
		answer, change, err = f.remove(c)
	case Rename:
		answer, change, err = f.rename(c)
	default:
		err = refuse("Error: Unknown command %s. Known commands are view, create, str_replace, insert, delete and rename.", c.Command)
	}
	return answer, change, err
}

// below returns the part of a path below the root, "" for the root itself.
func below(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, Root)
	rest = strings.TrimSuffix(rest, "/")
	if !ok || rest != "" && rest[0] != '/' {
		return "", refuse("Error: The path %s is not below %s", path, Root)
	}
	if rest == "" {
		return "", nil
	}
	rest = rest[1:]
	if err := (&events.MemoryChanged{Path: rest}).Validate(); err != nil {
		return "", refuse("Error: The path %s is not allowed: it needs components separated by single slashes, none of them . or .., without backslashes, percent signs and control characters, and at most %d bytes", path, events.MaxMemoryPathBytes)
	}
	return rest, nil
}

// find returns the file at a path below the root, nil if there is none.
func (f *Folder) find(path string) *File {
	i, ok := slices.BinarySearchFunc(f.Files, path, func(file File, path string) int { return strings.Compare(file.Path, path) })
	if !ok {
		return nil
	}
	return &f.Files[i]
}

// isFolder reports whether files are below a path.
func (f *Folder) isFolder(path string) bool {
	return path == "" || slices.ContainsFunc(f.Files, func(file File) bool { return file.Path != path && project.Below(file.Path, path) })
}

// writable returns a path below the root if commands may change what it names.
func writable(path string) (string, error) {
	at, err := below(path)
	if err != nil {
		return "", err
	}
	if project.Below(at, recorded) {
		return "", refuse("Error: %s is read-only: it shows what was recorded. Write elsewhere below %s.", path, Root)
	}
	return at, nil
}

// editable returns the file that a command may edit, and its text.
func (f *Folder) editable(ctx context.Context, path string) (at, text string, err error) {
	if at, err = writable(path); err != nil {
		return "", "", err
	}
	file := f.find(at)
	if file == nil { // a folder is answered in the same way
		return "", "", refuse("Error: The path %s does not exist. Please provide a valid path.", path)
	}
	text, err = f.Text(ctx, *file)
	return at, text, err
}

// written returns the event that sets a file's text. The caller has removed frames of recalled context from what was
// added, because they would be recorded as new text.
func written(path, at, text string) (*events.MemoryChanged, error) {
	if len(text) > events.MaxMemoryFileBytes {
		return nil, refuse("Error: File %s would have %d bytes, and the limit is %d: split it by topic.", path, len(text), events.MaxMemoryFileBytes)
	}
	return &events.MemoryChanged{Path: at, Content: &text}, nil
}

func unframed(text string) string {
	text, _ = frame.Strip(strings.ToValidUTF8(text, "\uFFFD"))
	return text
}

// free refuses a path at which no new file is possible.
func (f *Folder) free(at string) error {
	for i, c := range at {
		if c == '/' && f.find(at[:i]) != nil {
			return refuse("Error: %s/%s is a file, not a directory", Root, at[:i])
		}
	}
	return nil
}

func (f *Folder) create(c Command) (string, *events.MemoryChanged, error) {
	at, err := writable(c.Path)
	if err != nil {
		return "", nil, err
	}
	if f.find(at) != nil || f.isFolder(at) {
		return "", nil, refuse("Error: File %s already exists", c.Path)
	}
	if err := f.free(at); err != nil {
		return "", nil, err
	}
	if f.written() >= project.MaxMemoryFiles {
		return "", nil, refuse("Error: There are %d files already, which is the limit: delete or merge some.", project.MaxMemoryFiles)
	}
	change, err := written(c.Path, at, unframed(c.FileText))
	return "File created successfully at: " + c.Path, change, err
}

// written counts the files that are not recorded.
func (f *Folder) written() (n int) {
	for i := range f.Files {
		if f.Files[i].Seq != 0 {
			n++
		}
	}
	return n
}

// maxOccurrences is of how many places a refusal names the lines.
const maxOccurrences = 20

func (f *Folder) replace(ctx context.Context, c Command) (string, *events.MemoryChanged, error) {
	at, text, err := f.editable(ctx, c.Path)
	if err != nil {
		return "", nil, err
	}
	var lines []string // of the first occurrences
	first, count := 0, 0
	for from, line := 0, 0; c.OldStr != ""; from++ {
		i := strings.Index(text[from:], c.OldStr)
		if i < 0 {
			break
		}
		line += strings.Count(text[max(0, from-1):from+i], "\n")
		from += i
		if count == 0 {
			first = line
		}
		if count++; count <= maxOccurrences {
			lines = append(lines, fmt.Sprint(line+1))
		}
	}
	switch {
	case count == 0:
		return "", nil, refuse("No replacement was performed, old_str `%s` did not appear verbatim in %s.", c.OldStr, c.Path)
	case count > 1:
		if count > maxOccurrences {
			lines = append(lines, fmt.Sprintf("… (%d occurrences)", count))
		}
		return "", nil, refuse("No replacement was performed. Multiple occurrences of old_str `%s` in lines: %s. Please ensure it is unique", c.OldStr, strings.Join(lines, ", "))
	}
	text = strings.Replace(text, c.OldStr, unframed(c.NewStr), 1)
	change, err := written(c.Path, at, text)
	all := strings.Split(text, "\n")
	from, to := max(0, first-2), min(len(all), first+3)
	return "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" + numbered(all[from:to], from+1), change, err
}

func (f *Folder) insert(ctx context.Context, c Command) (string, *events.MemoryChanged, error) {
	at, text, err := f.editable(ctx, c.Path)
	if err != nil {
		return "", nil, err
	}
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" { // there is no line after the last line end
		lines = lines[:len(lines)-1]
	}
	if c.InsertLine < 0 || c.InsertLine > len(lines) {
		return "", nil, refuse("Error: Invalid `insert_line` parameter: %d. It should be within the range of lines of the file: [0, %d]", c.InsertLine, len(lines))
	}
	lines = slices.Insert(lines, c.InsertLine, strings.TrimSuffix(unframed(c.InsertText), "\n"))
	change, err := written(c.Path, at, strings.Join(lines, "\n")+"\n")
	return fmt.Sprintf("The file %s has been edited.", c.Path), change, err
}

func (f *Folder) remove(c Command) (string, *events.MemoryChanged, error) {
	at, err := writable(c.Path)
	switch {
	case err != nil:
		return "", nil, err
	case at == "":
		return "", nil, refuse("Error: Cannot delete the %s directory itself", Root)
	case f.find(at) == nil && !f.isFolder(at):
		return "", nil, refuse("Error: The path %s does not exist", c.Path)
	}
	return "Successfully deleted " + c.Path, &events.MemoryChanged{Path: at}, nil
}

func (f *Folder) rename(c Command) (string, *events.MemoryChanged, error) {
	from, err := writable(c.OldPath)
	if err != nil {
		return "", nil, err
	}
	to, err := writable(c.NewPath)
	if err != nil {
		return "", nil, err
	}
	switch {
	case from == "" || to == "":
		return "", nil, refuse("Error: Cannot rename the %s directory itself", Root)
	case f.find(from) == nil && !f.isFolder(from):
		return "", nil, refuse("Error: The path %s does not exist", c.OldPath)
	case f.find(to) != nil || f.isFolder(to):
		return "", nil, refuse("Error: The destination %s already exists", c.NewPath)
	case project.Below(to, from):
		return "", nil, refuse("Error: Cannot move %s into itself", c.OldPath)
	}
	if err := f.free(to); err != nil {
		return "", nil, err
	}
	for i := range f.Files {
		if path := f.Files[i].Path; project.Below(path, from) && len(to)+len(path)-len(from) > events.MaxMemoryPathBytes {
			return "", nil, refuse("Error: The path of %s/%s would have more than %d bytes", Root, path, events.MaxMemoryPathBytes)
		}
	}
	return fmt.Sprintf("Successfully renamed %s to %s", c.OldPath, c.NewPath), &events.MemoryChanged{Path: from, MovedTo: to}, nil
}
