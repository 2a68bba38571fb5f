package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// mendChecksum rewrites the checksum of the stream's configuration if the configuration may be newer. The server
// replaces the configuration first and then the checksum. After a kill in between, it would leave the stream out when
// it starts, although nothing is damaged. A configuration that is incomplete, or older than its checksum, is left as it
// is. If both have the same time, which a file system may measure in steps of some milliseconds, the configuration may
// belong to the next change.
func mendChecksum(streamDir string) error {
	config, _, ok := readConfig(streamDir)
	if !ok {
		return nil // the server's own error says more
	}
	key := sha256.Sum256([]byte(filepath.Base(streamDir)))
	hash, err := highwayhash.New64(key[:])
	if err != nil {
		return err
	}
	_, _ = hash.Write(config)
	want := hex.EncodeToString(hash.Sum(nil))
	path := filepath.Join(streamDir, server.JetStreamMetaFileSum)
	have, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || string(have) == want {
		return err
	}
	if len(have) > 0 {
		if older, err := isOlder(filepath.Join(streamDir, server.JetStreamMetaFile), path); err != nil || older {
			return err
		}
	}
	return os.WriteFile(path, []byte(want), 0o600)
}

// readConfig reads the configuration of the log, as text and decoded; ok is false if there is no complete one.
func readConfig(streamDir string) (text []byte, config server.FileStreamInfo, ok bool) {
	text, err := os.ReadFile(filepath.Join(streamDir, server.JetStreamMetaFile))
	if err != nil || json.Unmarshal(text, &config) != nil {
		return nil, config, false
	}
	return text, config, config.Name == natsdeploy.Stream
}

// isOlder reports whether a file was written before another one.
func isOlder(file, than string) (bool, error) {
	a, err := os.Stat(file)
	if err != nil {
		return false, err
	}
	b, err := os.Stat(than)
	if err != nil {
		return false, err
	}
	return a.ModTime().Before(b.ModTime()), nil
}
