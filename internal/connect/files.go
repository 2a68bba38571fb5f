package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/gofrs/flock"

	"mneme.dev/mneme/internal/writefile"
)

// backupSuffix is added to the name of a file that is saved before the first change.
const backupSuffix = ".mneme-backup"

// maxFile is the size, in bytes, of the largest settings file that is edited.
const maxFile = 16 << 20

// format edits the text of a settings file.
type format interface {
	// read returns our commands that a file names, and at how many events the agent runs the hook.
	read(raw []byte) (Commands, int, error)
	// write returns the file with these of our commands and no others. If it has them already, it is unchanged.
	write(raw []byte, want Commands) ([]byte, error)
}

// target is a file that connects an agent.
type target struct {
	path string
	format
	former bool // another file has taken its place: connecting takes our commands out of it
}

// Options say what to connect.
type Options struct {
	Agent      string   // one of [Names]
	ProjectDir string   // for Claude Code: only in this project; "" means all
	Flags      []string // of the hook and the MCP server, such as --url
	Mneme      string   // path of the program mneme
	Hook       string   // path of mneme-hook, from [FindHook]
	DryRun     bool     // write nothing
	// Made is the file that remembers which folders connecting made, so that disconnecting removes those that are empty. ""
	// remembers nothing.
	Made string
}

// Change is what happened to a file, or would happen.
type Change struct {
	Path    string `json:"path"`
	Action  string `json:"action" doc:"created, changed, restored, removed or unchanged"`
	Backup  string `json:"backup,omitempty" doc:"where the file was saved"`
	Diff    string `json:"diff,omitempty" doc:"with --dry-run"`
	before  state
	after   []byte
	restore bool // after is the backup, which is no longer needed
	edited  bool // it is saved before it is removed
	own     bool // the file holds nothing but what connect, or an older version of it, wrote, so there is nothing to save
	fresh   bool // the file has nothing of ours yet, so what an earlier connecting saved is out of date
}

// What happens to a file.
const (
	Created   = "created"
	Changed   = "changed"
	Restored  = "restored" // it is byte for byte as before it was connected
	Removed   = "removed"  // connecting had created it
	Unchanged = "unchanged"
)

// state is a file as it was read.
type state struct {
	raw   []byte
	there bool
	mode  fs.FileMode
}

// FindHook returns the absolute path of mneme-hook: beside the program mneme, or beside what that is a link to, else in
// PATH.
func FindHook(mneme string) (string, error) {
	folders := []string{filepath.Dir(mneme)}
	if resolved, err := filepath.EvalSymlinks(mneme); err == nil {
		folders = append(folders, filepath.Dir(resolved))
	}
	for _, folder := range folders {
		if path, err := exec.LookPath(filepath.Join(folder, hookProgram)); err == nil { // with .exe on Windows
			if path, err = filepath.Abs(path); err == nil {
				return Lasting(path, hookProgram), nil
			}
		}
	}
	path, err := exec.LookPath(hookProgram)
	if err != nil {
		return "", errNoHook
	}
	return filepath.Abs(path)
}

// Lasting returns the absolute path of the first of the names, as a shell finds them, that leads to a program; without
// one, the path of the program. Package managers keep the link in PATH when they update a program, but remove the file
// that it leads to.
func Lasting(program string, names ...string) string {
	file, err := os.Stat(program)
	if err != nil {
		return program
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		path, err = filepath.Abs(path)
		if err != nil {
			continue
		}
		if found, err := os.Stat(path); err == nil && os.SameFile(found, file) {
			return path
		}
	}
	return program
}

// Connect has an agent run the hook, and gives it the MCP server if its settings hold servers. A second call changes no
// byte. If one of the files can't be edited, none is written.
func Connect(ctx context.Context, o Options) ([]Change, error) {
	a, err := find(o.Agent)
	if err != nil {
		return nil, err
	}
	want := Commands{
		Hook: append([]string{o.Hook, a.name}, o.Flags...),
		MCP:  append([]string{o.Mneme, "mcp"}, o.Flags...),
	}
	return run(ctx, a, o, func(t target) (Change, error) { return t.connect(want) })
}

// Disconnect takes out what [Connect] put in. An agent that is not connected stays as it is.
func Disconnect(ctx context.Context, o Options) ([]Change, error) {
	a, err := find(o.Agent)
	if err != nil {
		return nil, err
	}
	list, err := run(ctx, a, o, target.disconnect)
	if err == nil && !o.DryRun {
		err = o.removeFolders()
	}
	return list, err
}

// errMoved says that a file was written while it was being edited.
var errMoved = errors.New("another program is writing it: try again")

// run plans the changes of an agent's files, and makes them while it holds the lock of the first one's folder.
func run(ctx context.Context, a *agent, o Options, plan func(target) (Change, error)) ([]Change, error) {
	targets, err := a.targets(o.ProjectDir)
	if err != nil {
		return nil, err
	}
	planAll := func() (list []Change, write bool, err error) {
		for _, t := range targets {
			c, err := plan(t)
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", t.path, err)
			}
			c.Path = t.path
			list, write = append(list, c), write || c.Action != Unchanged
		}
		return list, write, nil
	}
	list, write, err := planAll()
	if err != nil || !write {
		return list, err
	}
	if o.DryRun {
		for i := range list {
			list[i].Diff = list[i].diff()
		}
		return list, nil
	}
	for _, t := range targets {
		if err := o.makeFolder(filepath.Dir(t.path)); err != nil {
			return nil, err
		}
	}
	unlock, err := lock(ctx, filepath.Dir(targets[0].path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	made := map[string]Change{}
	for try := 0; ; try++ {
		if list, _, err = planAll(); err != nil { // another mneme connect may have come first
			return nil, err
		}
		if err = makeAll(list, made); errors.Is(err, errMoved) && try < 2 {
			continue
		}
		for i, c := range list {
			if earlier, ok := made[c.Path]; ok {
				list[i] = earlier
			}
		}
		return list, err
	}
}

// makeAll makes the changes one after the other, and notes in made those that it has made, by their paths. If it is
// known that one can't be made, it makes none.
func makeAll(list []Change, made map[string]Change) error {
	for i := range list {
		if err := list[i].allowed(); err != nil {
			return fmt.Errorf("%s: %w", list[i].Path, err)
		}
	}
	for i := range list {
		c := &list[i]
		if err := c.make(); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
		if c.Action != Unchanged {
			made[c.Path] = *c
		}
	}
	return nil
}

// lockWithin is how long to wait for another mneme connect.
const lockWithin = 10 * time.Second

// lock locks a folder against other processes that connect agents.
func lock(ctx context.Context, folder string) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	l := flock.New(folder, flock.SetFlag(os.O_RDONLY))
	switch _, err := l.TryLockContext(ctx, 20*time.Millisecond); {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s is locked by another mneme connect: try again when it has ended", folder)
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", folder, err)
	}
	return func() { _ = l.Unlock() }, nil
}

// load reads a file; it is not an error if the file does not exist.
func load(path string) (state, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state{}, nil
	case err != nil:
		return state{}, err
	case !info.Mode().IsRegular():
		return state{}, errors.New("it is not a regular file")
	case info.Size() > maxFile:
		return state{}, fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	raw, err := os.ReadFile(path)
	return state{raw, true, info.Mode().Perm()}, err
}

// connect plans to write the commands into a file.
func (t target) connect(want Commands) (Change, error) {
	if t.former {
		return t.disconnect()
	}
	before, err := load(t.path)
	if err != nil {
		return Change{}, err
	}
	after, err := t.write(before.raw, want)
	if err != nil {
		return Change{}, err
	}
	c := Change{Action: Changed, before: before, after: after}
	switch {
	case !before.there:
		c.Action = Created
	case bytes.Equal(before.raw, after):
		c.Action = Unchanged
	default:
		has, _, err := t.read(before.raw)
		if err != nil {
			return Change{}, err
		}
		c.fresh = has.Hook == nil && has.MCP == nil
		_, plugin := t.format.(pluginFile)
		c.own = plugin || !c.fresh && t.isOurs(before.raw, has)
	}
	return c, nil
}

// isOurs reports whether a file holds nothing but our commands: it is what we would write, or nothing is left without
// them, as an older version may have written fewer events.
func (t target) isOurs(raw []byte, has Commands) bool {
	alone, err := t.write(nil, has)
	if err == nil && bytes.Equal(alone, raw) {
		return true
	}
	rest, err := t.write(raw, Commands{})
	return err == nil && isEmpty(rest)
}

// isEmpty reports whether a settings file says nothing.
func isEmpty(raw []byte) bool {
	rest := string(bytes.TrimSpace(raw))
	return rest == "" || rest == "{}"
}

// disconnect plans to take our commands out of a file.
func (t target) disconnect() (Change, error) {
	before, err := load(t.path)
	if err != nil || !before.there {
		return Change{Action: Unchanged}, err
	}
	has, _, err := t.read(before.raw)
	if err != nil {
		return Change{}, err
	}
	after, err := t.write(before.raw, Commands{})
	if err != nil || bytes.Equal(before.raw, after) {
		return Change{Action: Unchanged}, err
	}
	saved, err := load(t.path + backupSuffix)
	if err != nil {
		return Change{}, fmt.Errorf("the saved file %s: %w", t.path+backupSuffix, err)
	}
	if old, _, err := t.read(saved.raw); saved.there && (err != nil || old.Hook != nil || old.MCP != nil) {
		saved = state{} // it was saved when the file was connected already
	}
	c := Change{Action: Changed, before: before, after: after}
	if again, err := t.write(saved.raw, has); err == nil && bytes.Equal(again, before.raw) {
		if c.Action, c.after = Removed, nil; saved.there {
			c.Action, c.after, c.restore = Restored, saved.raw, true
		}
	} else if len(after) == 0 || !saved.there && isEmpty(after) { // a file of ours that somebody, or a later version, has edited
		c.Action, c.after, c.edited = Removed, nil, true
	}
	return c, nil
}

// diff shows a change as a unified diff.
func (c *Change) diff() string {
	if c.Action == Unchanged {
		return ""
	}
	from, to := c.Path, c.Path
	if !c.before.there {
		from = os.DevNull
	}
	if c.Action == Removed {
		to = os.DevNull
	}
	return udiff.Unified(from, to, string(c.before.raw), string(c.after))
}

// allowed reports an error if the file must not be changed.
func (c *Change) allowed() error {
	if c.Action != Unchanged && c.before.there && c.before.mode&0o200 == 0 {
		return errors.New("it is read-only: make it writable, or add by hand what --dry-run shows")
	}
	return nil
}

// make makes a change, which must be allowed.
func (c *Change) make() error {
	if c.Action == Unchanged {
		return nil
	}
	if c.Action == Changed && !c.own || c.edited {
		if err := c.save(); err != nil {
			return err
		}
	}
	if now, err := load(c.Path); err != nil || now.there != c.before.there || !bytes.Equal(now.raw, c.before.raw) {
		return errors.Join(errMoved, err)
	}
	if c.Action == Removed {
		path, err := writefile.Follow(c.Path)
		if err != nil {
			return err
		}
		return os.Remove(path)
	}
	if err := writefile.Write(c.Path, bytes.NewReader(c.after)); err != nil {
		return err
	}
	if c.restore {
		return os.Remove(c.Path + backupSuffix)
	}
	return nil
}

// save saves the file, unless an earlier change since it was connected has.
func (c *Change) save() error {
	path := c.Path + backupSuffix
	switch info, err := os.Lstat(path); {
	case err == nil && info.Mode().Type() == fs.ModeSymlink:
		// We made no link. A repository may hold one, to have a file of its own choice overwritten with what its settings say.
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("save it first: %w", err)
		}
	case err == nil && !c.fresh:
		c.Backup = path
		return nil
	}
	if err := writefile.Write(path, bytes.NewReader(c.before.raw)); err != nil {
		return fmt.Errorf("save it first: %w", err)
	}
	c.Backup = path
	return os.Chmod(path, c.before.mode)
}
