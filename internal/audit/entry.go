// Package audit writes and reads the audit log: who changed something, and who read across conversations. Its entries
// are in a stream of their own, see docs/adr/0027-audit-log.md.
package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os/user"
	"strings"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// Outcome says how an action ended.
type Outcome string

// The outcomes.
const (
	Begun   Outcome = "begun"   // a change that is about to take effect; another entry with the same id says how it ended
	Done    Outcome = "done"    // it was answered as asked
	Refused Outcome = "refused" // the rights do not allow it
	Failed  Outcome = "failed"  // anything else
)

// OutcomeOf returns the outcome of a request by the status of its answer.
func OutcomeOf(status int) Outcome {
	switch {
	case status == 401 || status == 403:
		return Refused
	case status >= 200 && status < 400:
		return Done
	}
	return Failed
}

// The ways in which actions are requested.
const (
	ViaHTTP    = "http"
	ViaMCP     = "mcp"
	ViaCommand = "cli"
	ViaServer  = "server" // mneme by itself
)

// Entry says who did what. It holds nothing that was recorded, asked or answered.
type Entry struct {
	Time    time.Time `json:"time"`
	Tenant  string    `json:"tenant,omitempty"`  // empty: not about one tenant
	Subject string    `json:"subject,omitempty"` // token:ID, oidc:SUBJECT or os:USER; empty if the server asks for no tokens
	Role    string    `json:"role,omitempty"`    // of the token
	Via     string    `json:"via"`
	Action  string    `json:"action"`           // the id of an operation, the name of a tool, or a command
	Target  string    `json:"target,omitempty"` // such as "conversation:ID"; for a project only a hash, see [Project]
	Outcome Outcome   `json:"outcome"`
	Status  int       `json:"status,omitempty"`  // of HTTP
	Request string    `json:"request,omitempty"` // the same for all entries of a request: the id of its trace, if it has one
	Count   int       `json:"count,omitempty"`   // how often it was repeated since the entry before; absent for once
}

// Project returns the name of a project in a target. The real name is often a path on somebody's machine, and must not
// outlive an erasure of the project.
func Project(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "project:" + hex.EncodeToString(sum[:6])
}

// osUser returns who runs a command, as reported by the operating system.
func osUser() string {
	u, err := user.Current()
	if err != nil {
		return "os:unknown"
	}
	return "os:" + u.Username
}

// ByCommand returns the entry of a command that works without the API. The command itself says who runs it.
func ByCommand(action string) Entry {
	return Entry{Time: time.Now().UTC(), Subject: osUser(), Via: ViaCommand, Action: action, Request: NewRequest()}
}

// NewRequest returns a new id for the entries of a request.
func NewRequest() string { return strings.ToLower(rand.Text()[:16]) }

// everyTenant is the token of subjects of entries that are not about one tenant. No tenant has it: in an escaped name
// two hexadecimal digits follow a percent sign.
const everyTenant = "%all"

// tenantToken returns the token of a tenant in subjects.
func tenantToken(tenant string) string {
	if tenant == "" {
		return everyTenant
	}
	return events.Escape(tenant)
}

func (e *Entry) subject() string {
	return natsdeploy.AuditSubject(tenantToken(e.Tenant), events.Escape(e.Action))
}
