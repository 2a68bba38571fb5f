package capture

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Folder is a folder of an agent's transcripts.
type Folder struct{ Agent, Path string }

// maxFollowed is how many files of a folder are followed, the newest ones. There are marks for more, or
// else a file would be forgotten and read again after each walk.
const maxFollowed = maxMarks / 2

// pace is how often the receiver looks at files and folders.
type pace struct {
	looks  []time.Duration // at a file, after a doorbell or an import
	walk   time.Duration   // through a folder whose changes the system reports
	poll   time.Duration   // through any other
	notify bool            // whether to ask the system for reports
}

// usual is the pace outside of tests. On macOS and the BSDs it polls, because kqueue would keep every file of a
// watched folder open.
var usual = pace{looks: looks, walk: time.Minute, poll: 5 * time.Second, notify: runtime.GOOS == "linux" || runtime.GOOS == "windows"}

// idle is the shortest pause after a walk through a folder, in multiples of the walk's duration.
const idle = 20

// Followed is a folder that is followed.
type Followed struct {
	Agent      string `json:"agent"`
	Folder     string `json:"folder"`
	Files      int    `json:"files"`                // transcripts in it, at the last walk
	Unreadable int    `json:"unreadable,omitempty"` // files and folders that this walk could not look at
	Polled     bool   `json:"polled,omitempty"`     // it is walked every few seconds, because the system does not report all changes
}

// follower finds what changes in followed folders.
type follower struct {
	*Receiver
	pace    pace
	watch   *fsnotify.Watcher // nil if there is none
	folders []*following
	asked   time.Time       // when Follow was last called
	saved   time.Time       // when the marks were last written
	told    map[string]bool // logged read failures, so that each is logged once
}

// following is a folder and what the last walk found.
type following struct {
	folder  Folder
	state   Followed
	real    string    // its path without links; "" if it does not exist
	due     time.Time // when the next walk is
	begun   bool      // it was walked before
	limited bool      // a warning said that it has too many files
	deaf    bool      // a warning said that the system does not report all changes
}

// follow follows folders until Close.
func (r *Receiver) follow(p pace) {
	f := &follower{Receiver: r, pace: p, told: map[string]bool{}}
	var events chan fsnotify.Event
	var errs chan error
	if p.notify {
		var err error
		if f.watch, err = fsnotify.NewWatcher(); err != nil {
			r.Logger.Info("the system does not report changed transcripts; checking them every few seconds", "error", err)
		} else {
			events, errs = f.watch.Events, f.watch.Errors
			defer func() { _ = f.watch.Close() }()
		}
	}
	tick := time.NewTicker(p.poll)
	defer tick.Stop()
	f.step()
	for {
		select {
		case <-r.ctx.Done():
			return
		case e := <-events:
			f.changed(e)
		case err := <-errs: // events were lost
			r.Logger.Debug("changes of transcripts were missed; looking at all", "error", err)
			for _, at := range f.folders {
				at.due = time.Time{}
			}
		case <-r.unknown:
			f.asked = time.Time{}
			f.step()
		case <-tick.C:
			f.step()
		}
	}
}

// step walks through the folders that are due.
func (f *follower) step() {
	if time.Since(f.asked) >= f.pace.walk {
		f.ask()
	}
	for _, at := range f.folders {
		if f.ctx.Err() == nil && !time.Now().Before(at.due) {
			f.walk(at)
		}
	}
	f.report()
	if time.Since(f.saved) >= f.pace.walk && f.save() { // what a killed process did not write is only read again
		f.saved = time.Now()
	}
}

// ask asks which folders are to be followed.
func (f *follower) ask() {
	wanted := f.Follow()
	f.asked = time.Now()
	f.folders = slices.DeleteFunc(f.folders, func(at *following) bool {
		if slices.Contains(wanted, at.folder) {
			return false
		}
		f.leave(at)
		return true
	})
	for _, folder := range wanted {
		if !slices.ContainsFunc(f.folders, func(at *following) bool { return at.folder == folder }) {
			f.folders = append(f.folders, &following{folder: folder})
		}
	}
}

// leave stops following a folder.
func (f *follower) leave(at *following) {
	f.consider(at.folder, nil, true)
	if f.watch == nil || at.real == "" {
		return
	}
	for _, path := range f.watch.WatchList() {
		if within(at.real, path) {
			_ = f.watch.Remove(path) // it may have gone
		}
	}
}

func within(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
}

// walk looks at all files of a folder.
func (f *follower) walk(at *following) {
	began := time.Now()
	at.state = Followed{Agent: at.folder.Agent, Folder: at.folder.Path, Polled: f.watch == nil}
	var err error
	if at.real, err = filepath.EvalSymlinks(at.folder.Path); err != nil { // the agent makes it with its first session
		at.real, at.due = "", began.Add(f.pace.poll)
		f.unread(at, at.folder.Path, err)
		return
	}
	list := f.list(at, at.real)
	if f.ctx.Err() != nil {
		return
	}
	at.state.Files = len(list)
	if len(list) > maxFollowed {
		slices.SortFunc(list, older)
		list = list[len(list)-maxFollowed:]
		if !at.limited {
			at.limited = true
			f.Logger.Warn("a folder has more transcripts than are followed: import the oldest with mneme import", "agent", at.folder.Agent, "folder", at.folder.Path, "files", at.state.Files, "followed", maxFollowed)
		}
	}
	stale := f.consider(at.folder, list, true)
	f.forgetGone(at, list)
	if !at.begun {
		at.begun = true
		f.Logger.Info("following the transcripts of an agent", "agent", at.folder.Agent, "folder", at.folder.Path, "files", at.state.Files, "to_read", stale)
	}
	interval := f.pace.walk
	if at.state.Polled {
		interval = f.pace.poll
	}
	now := time.Now()
	at.due = now.Add(max(interval, idle*now.Sub(began)))
}

// list finds the transcripts below a folder, and asks the system to report changes in it from now on. It does not
// follow links, which agents do not make, so it can't walk in circles.
func (f *follower) list(at *following, folder string) (list []found) {
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case f.ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			f.unread(at, path, err)
			return nil
		case d.IsDir() && !agents[at.folder.Agent].mayEnter(at.real, path):
			return fs.SkipDir
		case d.IsDir():
			f.listen(at, path) // before it is read, so that no file is missed
			return nil
		case !d.Type().IsRegular() || !isTranscript(at.folder.Agent, path):
			return nil
		}
		info, err := d.Info()
		if err != nil {
			f.unread(at, path, err)
			return nil
		}
		info = stateOf(path, info)
		list = append(list, found{at.folder, path, info.Size(), info.ModTime()})
		return nil
	})
	return list
}

// listen asks the system to report changes in a folder. If that fails, the root of the folder is polled.
func (f *follower) listen(at *following, folder string) {
	if f.watch == nil {
		return
	}
	err := f.watch.Add(folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // then reading it fails as well
		return
	}
	if at.state.Polled = true; !at.deaf {
		at.deaf = true
		f.Logger.Warn("the system does not report all changes, so transcripts are checked every few seconds; on Linux, raise fs.inotify.max_user_watches", "agent", at.folder.Agent, "folder", folder, "error", err)
	}
}

// unread counts and logs a file or folder that can't be looked at, unless it does not exist.
func (f *follower) unread(at *following, path string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	at.state.Unreadable++
	if f.told[path] || len(f.told) >= maxNamed {
		return
	}
	f.told[path] = true
	f.Logger.Warn("cannot look for changed transcripts", "agent", at.folder.Agent, "path", path, "error", err)
}

// changed handles a change that the system reports.
func (f *follower) changed(e fsnotify.Event) {
	gone := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	if !gone && !e.Has(fsnotify.Create) && !e.Has(fsnotify.Write) {
		return
	}
	i := slices.IndexFunc(f.folders, func(at *following) bool { return at.real != "" && within(at.real, e.Name) })
	if i < 0 {
		return
	}
	at := f.folders[i]
	if gone {
		if e.Name == at.real {
			at.due = time.Time{}
		}
		return
	}
	name := changedFile(e.Name)
	if !e.Has(fsnotify.Create) && !isTranscript(at.folder.Agent, name) {
		return
	}
	info, err := os.Lstat(name)
	switch {
	case err != nil: // it has gone
	case info.IsDir():
		f.consider(at.folder, f.list(at, name), false)
	case info.Mode().IsRegular() && isTranscript(at.folder.Agent, name):
		f.mu.Lock()
		_ = f.queue(key{at.folder.Agent, name}, "") // if too many wait, the next walk finds it
		f.mu.Unlock()
	}
}

// forgetGone removes the marks of files that no longer exist.
func (f *follower) forgetGone(at *following, list []found) {
	there := make(map[string]bool, len(list))
	for _, file := range list {
		there[file.path] = true
	}
	f.mu.Lock()
	var gone []key
	for k := range f.marks {
		if k.agent == at.folder.Agent && within(at.real, k.path) && !there[k.path] {
			gone = append(gone, k)
		}
	}
	f.mu.Unlock()
	gone = slices.DeleteFunc(gone, func(k key) bool {
		_, err := os.Lstat(k.path)
		return !errors.Is(err, fs.ErrNotExist)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range gone {
		delete(f.marks, k)
		f.dirty = true
	}
}

// report puts the folders into the status.
func (f *follower) report() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed = nil
	for _, at := range f.folders {
		f.followed = append(f.followed, at.state)
	}
}
