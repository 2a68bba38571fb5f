package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/rebuild"
)

// RebuildCmd rebuilds read models.
type RebuildCmd struct {
	Projection string `arg:"" enum:"${projections}, all" help:"${projections} or all."`
	Wait       bool   `help:"Return when it is done; --no-wait returns at once." default:"true" negatable:""`
	Force      bool   `help:"Rebuild even if the log has lost events that the read models hold."`
	Cancel     bool   `help:"Cancel the running rebuild and remove its generation."`
}

func (*RebuildCmd) Help() string {
	return `Applies the log to a new generation while the old one serves; reads and new events continue. Once the new generation has caught up it serves, and two minutes later the old one is removed. Skipped events of class error are tried again. A rebuild helps if a projection is halted because another version built its read model, or if mneme verify finds a difference.

The rebuild is refused if the log has lost events of a conversation that the read models still hold: restore the log, or write the events back with mneme repair log. With --force it proceeds without them, and the old generation stays until mneme repair log resolves the loss.

If mneme is restarted, the rebuild resumes, and this command keeps waiting, for up to 15 minutes without a server. Interrupting the command does not stop the rebuild. The exit code is 1 if the rebuild failed or was canceled, or the server did not come back.

Examples:

    mneme rebuild graph
    mneme rebuild all --no-wait
    mneme rebuild graph --cancel`
}

// rebuildList is an answer of the API.
type rebuildList struct {
	Rebuilds []httpapi.Rebuild `json:"rebuilds"`
}

func (c *RebuildCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	var list rebuildList
	if c.Cancel {
		raw, err := api.raw(ctx, http.MethodDelete, "/v1/rebuilds/"+c.Projection, nil, "", nil)
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if err != nil {
			return err
		}
	} else if err := api.ask(ctx, "/v1/rebuilds", map[string]any{"projection": c.Projection, "force": c.Force}, &list); err != nil {
		return err
	}
	if len(list.Rebuilds) == 0 {
		return errors.New("the server reports no rebuild: mneme status shows the running ones")
	}
	if c.Wait {
		if err := c.await(ctx, api, t, &list); err != nil {
			return err
		}
	}
	if err := c.print(g, t, list); err != nil {
		return err
	}
	return c.verdict(list)
}

// pollRebuilds is how often a waiting command polls the progress.
const pollRebuilds = 300 * time.Millisecond

// standsStill is how long there may be no progress before a waiting command says so.
const standsStill = 10 * time.Second

// await polls until all rebuilds have ended. If the server is down, it keeps waiting.
func (c *RebuildCmd) await(ctx context.Context, api *client, t *terminal, list *rebuildList) error {
	bar := t.counter("rebuilding " + c.Projection)
	defer func() { _ = bar.Finish() }()
	far := howFar{}
	var away, told time.Time // when the server went down, and when that was last printed
	var before uint64
	moved, said := time.Now(), false
	for {
		pending := slices.ContainsFunc(list.Rebuilds, func(r httpapi.Rebuild) bool {
			return r.State == string(rebuild.Building) || r.State == string(rebuild.Canceled) && c.Cancel
		})
		applied, total := far.add(list.Rebuilds)
		if !pending {
			return nil
		}
		if applied != before {
			before, moved = applied, time.Now()
		}
		if !said && away.IsZero() && time.Since(moved) > standsStill {
			said = true
			_ = bar.Clear()
			t.say("no progress for %s: mneme status shows whether ingestor, file-tracker and summarizer, or mneme up, run on this store, and their errors", standsStill)
		}
		if total > 0 && !c.Cancel {
			bar.ChangeMax64(int64(total))
			_ = bar.Set64(int64(min(applied, total-1))) // the last step is the switch
		}
		select {
		case <-time.After(pollRebuilds):
		case <-ctx.Done():
			_ = bar.Clear()
			return fmt.Errorf("interrupted: the rebuild continues; mneme rebuild %s --cancel ends it", c.Projection)
		}
		var now rebuildList
		err := api.get(ctx, "/v1/rebuilds", nil, &now)
		if _, ok := errors.AsType[*awayError](err); ok {
			now := time.Now()
			if away.IsZero() {
				away = now
			}
			gone := now.Sub(away).Round(time.Second)
			if now.Sub(away) >= api.patience.away {
				_ = bar.Clear()
				return fmt.Errorf("gave up after the server was down for %s: the rebuild resumes when it is back, and mneme status shows its progress: %w", gone, err)
			}
			if now.Sub(told) >= api.patience.remind {
				_ = bar.Clear()
				t.say("waiting for the server, down for %s; the rebuild resumes when it is back: %v", gone, err)
				told = now
			}
			continue
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			away, told = time.Time{}, time.Time{}
			for i := range list.Rebuilds {
				follow(&list.Rebuilds[i], now.Rebuilds)
			}
		}
	}
}

// howFar holds the totals of rebuilds, by projection. One that has ended reports none any more; without its total, the sum
// would shrink while the others go on.
type howFar map[string]uint64

// add returns how much of all rebuilds is done.
func (h howFar) add(list []httpapi.Rebuild) (applied, total uint64) {
	for _, r := range list {
		h[r.Projection] = max(h[r.Projection], r.Total)
		if r.State == string(rebuild.Building) {
			applied += r.Applied
		} else {
			applied += h[r.Projection]
		}
		total += h[r.Projection]
	}
	return applied, total
}

// follow updates a rebuild from the list. If it is no longer listed, it was canceled and
// removed; if another one is listed instead, it had ended before that one began.
func follow(r *httpapi.Rebuild, now []httpapi.Rebuild) {
	i := slices.IndexFunc(now, func(one httpapi.Rebuild) bool { return one.Projection == r.Projection })
	switch {
	case i >= 0 && now[i].Generation == r.Generation && now[i].AskedAt.Equal(r.AskedAt):
		*r = now[i]
	case i >= 0 && now[i].From >= r.Generation:
		r.State = string(rebuild.Serving)
	case i >= 0 && now[i].State == string(rebuild.Unreadable):
		r.State, r.Error = string(rebuild.Failed), now[i].Error
	default:
		r.State = removed
	}
}

// removed is the state of a canceled rebuild whose generation was removed.
const removed = "removed"

func (c *RebuildCmd) print(g *Globals, t *terminal, list rebuildList) error {
	if g.JSON {
		return t.json(list)
	}
	for _, r := range list.Rebuilds {
		text := ""
		switch r.State {
		case string(rebuild.Serving):
			text = fmt.Sprintf("rebuilt, generation %d serves", r.Generation)
		case string(rebuild.Failed):
			text = fmt.Sprintf("failed, generation %d keeps serving: %s", r.From, r.Error)
		case string(rebuild.Canceled):
			text = fmt.Sprintf("canceled, generation %d keeps serving", r.From)
		case removed:
			text = fmt.Sprintf("canceled and removed, generation %d keeps serving", r.From)
		default:
			text = fmt.Sprintf("generation %d is being built, at sequence %s of %s", r.Generation, t.number(int64(r.Applied)), t.number(int64(r.Total)))
		}
		if err := t.text(r.Projection + ": " + text + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// For errRebuildFailed and errCanceled the details were already printed.
var (
	errRebuildFailed = errors.New("the rebuild failed")
	errCanceled      = errors.New("the rebuild was canceled")
	errTooLate       = errors.New("the rebuild was done before it could be canceled")
)

// verdict returns the error of the rebuilds, nil if all succeeded.
func (c *RebuildCmd) verdict(list rebuildList) error {
	for _, r := range list.Rebuilds {
		switch canceled := r.State == string(rebuild.Canceled) || r.State == removed; {
		case r.State == string(rebuild.Failed):
			return errRebuildFailed
		case canceled && !c.Cancel:
			return errCanceled
		case c.Cancel && r.State == string(rebuild.Serving):
			return errTooLate
		}
	}
	return nil
}
