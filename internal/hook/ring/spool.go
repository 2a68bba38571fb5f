package ring

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of the spool.
const (
	maxSpool   = 256 << 10       // bytes; what comes then is dropped
	maxLine    = 32 << 10        // bytes; events beyond that are dropped
	maxResent  = 64              // events sent again with one event; the rest waits
	staleAfter = 2 * time.Minute // a process that took the spool over has ended by then
)

// Spool is a small file of events that did not reach the server, one JSON object a line. Several hooks may use it at
// once: each line is appended with one write, and a hook that sends the lines takes the file over by renaming it. The
// empty Spool keeps nothing.
type Spool string

// spooled is a line of the spool.
type spooled struct {
	Agent string `json:"agent"`
	Event Event  `json:"event"`
}

// UserSpool returns this user's spool for a server and a tenant: what waits for one must not reach another. It is
// hooks.jsonl for the server of this machine, else hooks-HASH.jsonl, in the folder $XDG_STATE_HOME/mneme or
// ~/.local/state/mneme. It is empty if there is no home directory.
func UserSpool(url, tenant string) Spool {
	folder, name := spools(), "hooks.jsonl"
	if folder == "" {
		return ""
	}
	if url = strings.TrimRight(url, "/"); url != DefaultURL || tenant != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(url + "\x00" + tenant))
		name = "hooks-" + strconv.FormatUint(h.Sum64(), 16) + ".jsonl"
	}
	return Spool(filepath.Join(folder, name))
}

// UserSpools returns the spools of this user that hold events.
func UserSpools() (list []Spool) {
	folder := spools()
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		name, _ := strings.CutSuffix(e.Name(), sending)
		if s := Spool(filepath.Join(folder, name)); strings.HasPrefix(name, "hooks") && strings.HasSuffix(name, ".jsonl") && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func spools() string {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "mneme")
}

// Waiting returns how many events are in the spool.
func (s Spool) Waiting() (n int, err error) {
	if s == "" {
		return 0, nil
	}
	for _, path := range []string{string(s), s.sending()} {
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		n += bytes.Count(raw, []byte("\n"))
	}
	return n, nil
}

// sending ends the name of the file for the hook that sends.
const sending = ".sending"

func (s Spool) sending() string { return string(s) + sending }

// add appends events. What does not fit is dropped: the server looks at all transcripts now and then anyway.
func (s Spool) add(list ...spooled) {
	if s == "" || len(list) == 0 || os.MkdirAll(filepath.Dir(string(s)), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(string(s), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	size := info.Size()
	cut := lastIsCut(f, size)
	for _, e := range list {
		line, err := json.Marshal(e)
		if err != nil || len(line) >= maxLine || size+int64(len(line)) >= maxSpool {
			continue
		}
		if line = append(line, '\n'); cut {
			line, cut = append([]byte{'\n'}, line...), false
		}
		if _, err := f.Write(line); err != nil {
			return
		}
		size += int64(len(line))
	}
}

// lastIsCut reports whether the last line of a file was cut, as on a full disk.
func lastIsCut(f *os.File, size int64) bool {
	last := make([]byte, 1)
	if size == 0 {
		return false
	}
	_, err := f.ReadAt(last, size-1)
	return err == nil && last[0] != '\n'
}

// take empties the spool and returns its events, the newest of each transcript. done removes the file
// that they were in, except for what a hook that had opened it before has added since.
func (s Spool) take() (list []spooled, done func()) {
	done = func() {}
	if s == "" {
		return nil, done
	}
	mine, now := s.sending(), time.Now()
	if info, err := os.Stat(mine); err == nil {
		if now.Sub(info.ModTime()).Abs() < staleAfter { // another hook sends; one far in the future was killed before the clock was set back
			return nil, done
		}
	} else if _, err := os.Stat(string(s)); err != nil {
		return nil, done
	} else if os.Chtimes(string(s), now, now) != nil || os.Link(string(s), mine) != nil { // the link fails if another hook was faster
		return nil, done
	} else if os.Remove(string(s)) != nil {
		return nil, done
	}
	_ = os.Chtimes(mine, now, now)
	raw, err := os.ReadFile(mine)
	if err != nil {
		return nil, done
	}
	return parse(raw), func() {
		if all, err := os.ReadFile(mine); err == nil && len(all) > len(raw) {
			s.add(parse(all[len(raw):])...)
		}
		_ = os.Remove(mine)
	}
}

// parse returns the events in some lines, the newest of each transcript.
func parse(raw []byte) (list []spooled) {
	at := map[spooled]int{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, maxLine+1)
	for lines.Scan() {
		var e spooled
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Agent == "" || e.Event.Session == "" {
			continue
		}
		key := spooled{Agent: e.Agent, Event: Event{Session: e.Event.Session, Transcript: e.Event.Transcript, SubagentTranscript: e.Event.SubagentTranscript}}
		if i, known := at[key]; known {
			list[i] = e
			continue
		}
		at[key] = len(list)
		list = append(list, e)
	}
	return list
}
