// Package logstate keeps what a process knows about a log in a file, and loads it only if it is still about the same log.
package logstate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"mneme.dev/mneme/internal/writefile"
	"mneme.dev/mneme/pkg/eventlog"
)

// Log is a log that something is known about.
type Log interface {
	State(ctx context.Context) (eventlog.State, error)
	Created() time.Time
}

// About says which log a state is about. The type of a state embeds it.
type About struct {
	// Another creation time is another log, and a log that ends before Seq came back from an older backup.
	Log time.Time `json:"log"`
	Seq uint64    `json:"seq"` // the highest that the state knows of
}

func (a *About) about() *About { return a }

// State is a pointer to a struct that embeds [About].
type State interface{ about() *About }

// Load reads a state. If there is no file, the state stays as it is. After any other error, what it holds is
// not valid.
func Load(ctx context.Context, path string, log Log, into State) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return err
	}
	state, err := log.State(ctx)
	switch about := into.about(); {
	case err != nil:
		return err
	case !about.Log.Equal(log.Created()):
		return errors.New("it is about another log")
	case state.Head < about.Seq:
		return fmt.Errorf("it is about a log with %d events, and this one has %d", about.Seq, state.Head)
	}
	return nil
}

// Save writes a state completely or not at all.
func Save(path string, state State) error {
	raw, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return writefile.Write(path, bytes.NewReader(raw))
}
