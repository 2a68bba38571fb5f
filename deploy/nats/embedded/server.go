package embedded

import (
	"cmp"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

const (
	// storeHeadroom is how much the server may store in addition to the stream, for
	// buckets and staged batches.
	storeHeadroom int64 = 1 << 30

	// maxControlLine suffices for the longest line a mneme client sends: a
	// publish to a subject of 3,464 bytes (tenant, conversation and kind at
	// their limits of 128, 512 and 512 bytes, each byte escaped as three), a
	// reply inbox of about 60 and two sizes. It is the server's default, and the
	// client library's parser has room for no more.
	maxControlLine = 4096

	// maxPending limits how many bytes the server buffers for a slow reader. Above it the
	// server cuts the connection, and every consumer on it starts over. There is room for
	// 16 consumers with PullByteLimit: 8 of them over the largest events took 0.9 s and no
	// cut; with the default of 64 MiB they took up to 14 s and 6 cuts.
	maxPending = 16 * natsdeploy.PullByteLimit

	// maxMemoryStore limits the buckets in memory. The server's default is three quarters
	// of the machine's memory.
	maxMemoryStore = 256 << 20

	maxDuplicateWindow = 10 * time.Minute
)

// ServerSettings holds what differs between servers.
type ServerSettings struct {
	StoreDir string // the server creates a directory "jetstream" in it
	Host     string // default 127.0.0.1
	Port     int    // default [natsdeploy.DefaultPort]; -1 for a free one
	MaxStore int64  // bytes on disk; default [natsdeploy.DefaultMaxBytes] and 1 GiB for the rest
}

// ServerOptions returns the server settings that mneme relies on, for an embedded or
// separate server. Everything else is the server's default.
func ServerOptions(s ServerSettings) *server.Options {
	s.Host = cmp.Or(s.Host, "127.0.0.1")
	s.Port = cmp.Or(s.Port, natsdeploy.DefaultPort)
	s.MaxStore = cmp.Or(s.MaxStore, natsdeploy.DefaultMaxBytes+storeHeadroom)
	return &server.Options{
		Host:           s.Host,
		Port:           s.Port,
		MaxPayload:     natsdeploy.MaxMessageBytes,
		MaxControlLine: maxControlLine,
		MaxPending:     maxPending,

		JetStream:          true,
		StoreDir:           s.StoreDir,
		JetStreamMaxStore:  s.MaxStore,
		JetStreamMaxMemory: maxMemoryStore,
		JetStreamLimits:    server.JSLimitOpts{Duplicates: maxDuplicateWindow},

		// Each acknowledged event is on disk. SyncInterval only affects idle files; the
		// server's own parser sets this value for "always".
		SyncAlways:   true,
		SyncInterval: 2 * time.Minute,
	}
}
