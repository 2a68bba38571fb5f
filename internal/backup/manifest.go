package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// Files of a backup. The NATS command gives the first two the same names.
const (
	configFile   = "backup.json"
	snapshotFile = "stream.arc.s2"
	manifestFile = "manifest.json"
)

// partialSuffix ends the name of the directory of a backup that is being made.
const partialSuffix = ".partial"

// format changes when older programs could misread a backup.
const format = 1

// blockSize is how much of the snapshot one hash covers: damage is located this exactly.
const blockSize = 8 << 20

// Manifest says what a backup holds.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of the program that made it
	Time    time.Time `json:"time"`    // when the snapshot began
	Stream  string    `json:"stream"`
	First   uint64    `json:"first_seq"` // sequence of the oldest event; 0 without events
	Last    uint64    `json:"last_seq"`  // last sequence of the log, whether or not its event is still there
	Events  uint64    `json:"events"`    // fewer than the sequences if events were erased
	Bytes   int64     `json:"bytes"`     // size of the snapshot
	// Content is the SHA-256 of all events: sequence, time, subject, headers and body of each. Two
	// backups of the same log up to the same sequence have the same one.
	Content string `json:"content_sha256"`
	// Identities is the SHA-256 of sequences and message ids only.
	Identities string   `json:"identities_sha256"`
	Config     string   `json:"config_sha256"` // of backup.json
	Blocks     []string `json:"blocks"`        // SHA-256 of every 8 MiB of the snapshot
}

// ErrNotABackup: the directory is not a complete backup of a log.
var ErrNotABackup = errors.New("not a backup of a log")

// DamagedError says where a backup differs from what was written.
type DamagedError struct {
	File   string
	Offset int64  // the damage is at this byte of the file or in the 8 MiB after it
	After  uint64 // the last sequence that was read without an error
	Reason string
}

func (e *DamagedError) Error() string {
	if filepath.Base(e.File) != snapshotFile {
		return fmt.Sprintf("the backup is damaged: %s %s; use another backup", e.File, e.Reason)
	}
	return fmt.Sprintf("the backup is damaged: %s %s at or after byte %d, after sequence %d; use another backup", e.File, e.Reason, e.Offset, e.After)
}

// readManifest reads the manifest and checks everything that needs no reading of the snapshot.
func readManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, manifestFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fmt.Errorf("%w: %s is missing; was the backup interrupted?", ErrNotABackup, path)
	}
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, &DamagedError{File: path, Reason: "is not valid JSON: " + err.Error()}
	}
	if m.Format != format {
		return m, fmt.Errorf("%w: %s has format %d, this program reads %d; use mneme %s", ErrNotABackup, path, m.Format, format, m.Version)
	}
	if m.Stream != natsdeploy.Stream {
		return m, fmt.Errorf("%w: it holds the stream %q, not %s", ErrNotABackup, m.Stream, natsdeploy.Stream)
	}
	return m, nil
}

// writeDurably writes a file and syncs it.
func writeDurably(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
