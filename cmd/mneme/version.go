package main

import (
	"context"
	"time"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/version"
)

// VersionCmd shows versions.
type VersionCmd struct {
	Local bool `help:"Do not ask the server."`
}

func (*VersionCmd) Help() string {
	return `mneme --version does the same.

Example:

    mneme version --json`
}

// serverVersionWithin is how long the server may take to report its version.
const serverVersionWithin = 3 * time.Second

// versions is the output of version --json. Server is null if no server answers.
type versions struct {
	version.Info
	Server *version.Info `json:"server"`
	Error  string        `json:"error,omitempty"` // why there is no server
}

// Run prints them. A server that is down is not a failure.
func (c *VersionCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	v := versions{Info: version.Get()}
	if !c.Local {
		api, err := g.client()
		if err != nil {
			return err
		}
		var status httpapi.Status
		ctx, cancel := context.WithTimeout(ctx, serverVersionWithin)
		defer cancel()
		if err := api.get(ctx, "/v1/status", nil, &status); err != nil {
			v.Error = err.Error()
		} else {
			v.Server = &status.Version
		}
	}
	if g.JSON {
		return t.json(v)
	}
	server := v.Error
	if v.Server != nil {
		server = v.Server.String()
	}
	return t.card("mneme", v.Info.String(), "server", server)
}
