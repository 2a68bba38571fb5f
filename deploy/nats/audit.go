package natsdeploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// AuditStream is the name of the stream that says who did what. It is not the log of agents: no
// projection reads it, and nothing is rebuilt from it.
const AuditStream = "AGENT_AUDIT"

// auditPrefix begins the subjects of entries: mneme-audit.TENANT.ACTION.
const auditPrefix = "mneme-audit."

// AuditSubject returns the subject of entries about a tenant, escaped as in subjects of events, and an action.
func AuditSubject(tenant, action string) string { return auditPrefix + tenant + "." + action }

// The actions of commands that change something without the API.
const (
	AuditTokensCreate = "tokens-create"
	AuditTokensRevoke = "tokens-revoke"
	AuditRestore      = "restore"
	AuditPartitions   = "partitions"
)

const (
	// DefaultAuditAge is how long entries are kept if nothing else is configured.
	DefaultAuditAge = 365 * 24 * time.Hour

	// maxAuditBytes is room for more than half a million entries.
	maxAuditBytes = 256 << 20

	// maxAuditEntries bounds the entries of one tenant and action, so that frequent entries of one kind displace no
	// others.
	maxAuditEntries = 50_000

	// maxAuditEntry bounds one entry.
	maxAuditEntry = 8 << 10
)

// auditConfig is the definition of the audit log. Entries end by age; nobody can delete or change single ones.
func auditConfig(replicas int, age time.Duration) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              AuditStream,
		Description:       "who did what",
		Subjects:          []string{AuditSubject("*", "*")},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxAge:            age,
		MaxBytes:          maxAuditBytes,
		MaxMsgsPerSubject: maxAuditEntries,
		MaxMsgSize:        maxAuditEntry,
		Storage:           jetstream.FileStorage,
		Replicas:          replicas,
		DenyDelete:        true,
		DenyPurge:         true,
	}
}

// ApplyAudit makes sure that the audit log exists, with as many replicas as the log, and returns how long it keeps
// entries. age only applies to a new audit log; 0 means [DefaultAuditAge]. It can be called at any time, by any number
// of programs at once.
//
// It returns [ErrNoStream], and [ErrNoSpace] if the server's store limit has no room for it.
func ApplyAudit(ctx context.Context, js jetstream.JetStream, age time.Duration) (jetstream.Stream, time.Duration, error) {
	age = cmp.Or(age, DefaultAuditAge)
	stream, err := js.Stream(ctx, AuditStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		var info Info
		if info, err = Inspect(ctx, js); err != nil {
			return nil, 0, err
		}
		stream, err = js.CreateStream(ctx, auditConfig(info.Replicas, age))
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another program has just made it, with another age
			stream, err = js.Stream(ctx, AuditStream)
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == codeStorageExceeded {
		return nil, 0, fmt.Errorf("%w: the server has no room for the audit log, %d bytes: raise max_file_store of NATS", ErrNoSpace, maxAuditBytes)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("stream %s: %w", AuditStream, err)
	}
	return stream, stream.CachedInfo().Config.MaxAge, nil
}
