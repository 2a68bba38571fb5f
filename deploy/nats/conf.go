package natsdeploy

import _ "embed"

// ServerConf is a configuration for a nats-server of one's own. It says the same
// as embedded.ServerOptions with its defaults and store_dir "/data"; a test compares
// the two field by field.
//
//go:embed server.conf
var ServerConf string

const (
	// DefaultPort is NATS's own.
	DefaultPort = 4222

	// PullByteLimit is what a consumer lets the server send ahead, besides its
	// own limit of n events:
	//
	//	jetstream.PullMaxMessagesWithBytesLimit(n, natsdeploy.PullByteLimit)
	//
	// Without it 500 of the largest events, 4 GB, are on their way at once. Do not
	// use jetstream.PullMaxBytes for it: it asks for what is left of its limit,
	// and stalls (seen: longer than 60 s) when that is less than the next event.
	PullByteLimit = 16 << 20
)
