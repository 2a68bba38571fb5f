package natsdeploy

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// TokenBucket is the name of the bucket that holds the hashes of access tokens.
const TokenBucket = "AGENT_TOKENS"

// maxTokenBytes is room for tens of thousands of tokens.
const maxTokenBytes = 32 << 20

// tokenConfig is the definition of the bucket for access tokens. It is stored on disk: if
// it is lost, every token has to be made again.
func tokenConfig(replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:      TokenBucket,
		Description: "hashes of access tokens, what each grants, and its last use",
		History:     1,
		MaxBytes:    maxTokenBytes,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
	}
}

// ApplyTokens makes sure that the bucket for access tokens exists, with as many replicas as
// the stream. It can be called at any time, by any number of programs at once.
//
// It returns [ErrNoStream].
func ApplyTokens(ctx context.Context, js jetstream.JetStream) (jetstream.KeyValue, error) {
	return applyBucket(ctx, js, TokenBucket, tokenConfig)
}
