package natsdeploy

import _ "embed"

// ServerConf is a configuration for your own nats-server. It says the same
// as embedded.ServerOptions with its defaults and store_dir "/data"; a test compares
// the two field by field.
//
//go:embed server.conf
var ServerConf string

const (
	// DefaultPort is the usual port of NATS.
	DefaultPort = 4222

	// PullByteLimit limits the bytes that the server may send ahead to a consumer, in
	// addition to the consumer's limit of n events:
	//
	//	jetstream.PullMaxMessagesWithBytesLimit(n, natsdeploy.PullByteLimit)
	//
	// Without it the server sends up to 500 of the largest events at once, 4 GB. Do not
	// use jetstream.PullMaxBytes for this: it requests only the rest of its limit, and
	// stalls (seen: longer than 60 s) if the next event is larger than that.
	PullByteLimit = 16 << 20
)
