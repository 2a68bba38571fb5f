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
	// Without it 500 of the largest events, 4 GB, are on their way at once. Do not
	// use jetstream.PullMaxBytes for it: it asks for what is left of its limit,
	// and stalls (seen: longer than 60 s) when that is less than the next event.
	PullByteLimit = 16 << 20
)
