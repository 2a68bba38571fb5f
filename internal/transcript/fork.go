package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// A fork begins with copies of the lines of the session from which it was made, and of those of which that one is a fork. They
// become events of these sessions, the same as their own recordings give: so the log has them once, whichever recording
// is read first, and even if there is no other one any more. The fork is a conversation that branches off behind them.

// origin is a line of a session. Claude Code and Qwen Code write it into the copies of the line.
type origin struct {
	Session string `json:"sessionId"`
	UUID    string `json:"messageUuid"`
}

// originOf reads of which line a line says that it is a copy.
func originOf(raw json.RawMessage) (from origin, ok bool) {
	if given(raw) == nil || json.Unmarshal(raw, &from) != nil || from.UUID == "" || !sessionName.MatchString(from.Session) {
		return origin{}, false
	}
	return from, true
}

// origins finds the line of which the copy in a fork of a fork is a copy in the end, because it names only the one in that fork.
type origins struct {
	folder string                       // of the recordings, "" if it is not known
	copies map[string]map[string]origin // by session, and by the id of the line that is a copy
}

// maxForks is how often a line may have been copied from fork to fork.
const maxForks = 16

func originsBeside(name string) origins {
	o := origins{copies: map[string]map[string]origin{}}
	if conversationOf(name) != "" {
		o.folder = filepath.Dir(name)
	}
	return o
}

func (o *origins) first(from origin) origin {
	for range maxForks {
		earlier, copied := o.of(from.Session)[from.UUID]
		if !copied {
			break
		}
		from = earlier
	}
	return from
}

// of returns the copies with which the recording of a session begins, none if it is not there.
func (o *origins) of(session string) map[string]origin {
	copies, known := o.copies[session]
	if known || o.folder == "" {
		return copies
	}
	copies = map[string]origin{}
	o.copies[session] = copies
	readSession(o.folder, session, func(raw []byte) (done bool) {
		var l struct {
			Type   string          `json:"type"`
			UUID   string          `json:"uuid"`
			Forked json.RawMessage `json:"forkedFrom"`
		}
		if json.Unmarshal(raw, &l) != nil || l.UUID == "" {
			return false
		}
		from, copied := originOf(l.Forked)
		if copied {
			copies[l.UUID] = from
			return false
		}
		return l.Type == "user" || l.Type == "assistant" // the session's own begin
	})
	return copies
}

// readSession calls take with the lines of a session's recording in a folder, without those that cannot be read, until it is
// done. It reports whether there is a recording.
func readSession(folder, session string, take func(raw []byte) (done bool)) bool {
	path := filepath.Join(folder, session+".jsonl")
	if info, err := os.Stat(path); folder == "" || err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	in := newLines(context.Background(), file)
	defer in.close()
	for {
		raw, _, err := in.next()
		switch {
		case errors.As(err, new(*LineError)):
		case err != nil || take(raw):
			return true
		}
	}
}
