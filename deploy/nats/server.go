package natsdeploy

import (
	_ "embed"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerConf is a configuration for a nats-server of one's own. It says the same
// as [ServerOptions] with its defaults and store_dir "/data"; a test compares
// the two field by field.
//
//go:embed server.conf
var ServerConf string

const (
	// DefaultPort is NATS's own.
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

	// PullMaxBytes is what a consumer should ask for at once (the option of that
	// name in the client), instead of a number of events: it is more than the
	// largest event, and 500 of those, the client's default, are 4 GB.
	PullMaxBytes = 16 << 20

	// maxPending is what the server holds for a connection that reads slower
	// than it is written to; beyond it cuts the connection, and all consumers on
	// it begin again. Room for 16 consumers' worth of PullMaxBytes; with the
	// default of 64 MiB eight large events were enough.
	maxPending = 16 * PullMaxBytes

	// maxMemoryStore is for the buckets kept in memory. The server's default is
	// three quarters of the machine's.
	maxMemoryStore = 256 << 20

	maxDuplicateWindow = 10 * time.Minute
)

// ServerSettings are what differs between servers.
type ServerSettings struct {
	StoreDir string // the server makes a directory "jetstream" in it
	Host     string // default 127.0.0.1
	Port     int    // default [DefaultPort]; -1 for a free one
	MaxStore int64  // bytes on disk; default [DefaultMaxBytes] and 1 GiB for the rest
}

// ServerOptions are the settings of a server that mneme relies on, embedded or
// not. What is not set here is the server's default.
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

		// Each acknowledged event is on the disk. SyncInterval is what the
		// server's own parser sets beside "always"; it is for idle files.
		SyncAlways:   true,
		SyncInterval: 2 * time.Minute,
	}
}
