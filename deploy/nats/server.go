package natsdeploy

import (
	_ "embed"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerConf is a configuration for your own nats-server. It is equivalent to
// [ServerOptions] with its defaults and store_dir "/data"; a test compares the two
// field by field.
//
//go:embed server.conf
var ServerConf string

const (
	// DefaultPort is NATS's default port.
	DefaultPort = 4222

	// storeHeadroom is what the server may store beyond the stream, for buckets
	// and batches that are being staged.
	storeHeadroom int64 = 1 << 30

	// maxControlLine suffices for the longest line a mneme client sends: a
	// publish to a subject of 3,464 bytes (tenant, conversation and kind at
	// their limits of 128, 512 and 512 bytes, each byte escaped as three), a
	// reply inbox of about 60 and two sizes. It is the server's default, and the
	// client library's parser has room for no more.
	maxControlLine = 4096

	// PullByteLimit is how many bytes a consumer lets the server send ahead, in
	// addition to its limit of n events:
	//
	//	jetstream.PullMaxMessagesWithBytesLimit(n, natsdeploy.PullByteLimit)
	//
	// Without it 500 of the largest events, 4 GB, could be in flight. Do not use
	// jetstream.PullMaxBytes instead: it requests the rest of its limit, and stalls
	// (more than 60 s were seen) when that is less than the next event.
	PullByteLimit = 16 << 20

	// maxPending is how many bytes the server buffers for a slow reader; beyond it the
	// server cuts the connection, and every consumer on it starts again. It is room for
	// 16 consumers with PullByteLimit. Reading the largest events, 8 consumers took
	// 0.9 s without a cut; with the default of 64 MiB they took up to 14 s with 6 cuts.
	maxPending = 16 * PullByteLimit

	// maxMemoryStore is for the buckets kept in memory. The server's default is
	// three quarters of the machine's.
	maxMemoryStore = 256 << 20

	maxDuplicateWindow = 10 * time.Minute
)

// ServerSettings holds what differs between servers.
type ServerSettings struct {
	StoreDir string // the server makes a directory "jetstream" in it
	Host     string // default 127.0.0.1
	Port     int    // default [DefaultPort]; -1 for a free one
	MaxStore int64  // bytes on disk; default [DefaultMaxBytes] plus 1 GiB
}

// ServerOptions returns the server settings that mneme relies on, for an embedded or
// separate server. Everything else is the server's default.
func ServerOptions(s ServerSettings) *server.Options {
	if s.Host == "" {
		s.Host = "127.0.0.1"
	}
	if s.Port == 0 {
		s.Port = DefaultPort
	}
	if s.MaxStore == 0 {
		s.MaxStore = DefaultMaxBytes + storeHeadroom
	}
	return &server.Options{
		Host:           s.Host,
		Port:           s.Port,
		MaxPayload:     MaxMessageBytes,
		MaxControlLine: maxControlLine,
		MaxPending:     maxPending,

		JetStream:          true,
		StoreDir:           s.StoreDir,
		JetStreamMaxStore:  s.MaxStore,
		JetStreamMaxMemory: maxMemoryStore,
		JetStreamLimits:    server.JSLimitOpts{Duplicates: maxDuplicateWindow},

		// Each acknowledged event is on disk. SyncInterval is the value that the
		// server's own parser sets with "always"; it is for idle files.
		SyncAlways:   true,
		SyncInterval: 2 * time.Minute,
	}
}
