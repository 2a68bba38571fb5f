package summarizer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// resummarize writes a new revision of each summary that a request selects, lower levels
// first. It keeps the old summary where the new one would again be written without the
// model.
func (r *Reactor) resummarize(ctx context.Context, c summary.Conversation, profile Profile, q Request, a *Answer) error {
	if q.Fallbacks && profile.Model == nil {
		return fmt.Errorf("cannot rewrite summaries that a model did not write: %w", ErrNoModel)
	}
	if err := r.awaitGraph(ctx, r.Log.PartitionOf(c.ID.Tenant, c.ID.ID), c.LastSeq); err != nil {
		return err
	}
	asOf := c.LastSeq // leaves out the revisions that this loop writes
	for level := 1; level <= len(c.Ledger.Levels); level++ {
		if q.Level != 0 && q.Level != level {
			continue
		}
		for from := uint64(1); ; {
			var list []graph.Summary
			err := r.graph(ctx, func(g graph.Reader) (err error) {
				list, err = g.Summaries(ctx, c.ID, graph.SummaryQuery{Level: level, AsOf: asOf, From: from, Limit: scanPage, OldestFirst: true})
				return err
			})
			if err != nil {
				return err
			}
			for _, s := range list {
				from = s.Seq + 1
				if q.Fallbacks && s.FallbackReason == "" {
					continue
				}
				if err := r.revise(ctx, &c, profile, s, a); err != nil {
					return err
				}
			}
			if len(list) < scanPage {
				break
			}
		}
	}
	return nil
}

// revise writes a new revision of one summary and advances the conversation's last sequence
// to it, so that a later summary of the next level reads the graph with the revision.
func (r *Reactor) revise(ctx context.Context, c *summary.Conversation, profile Profile, old graph.Summary, a *Answer) error {
	newest, err := r.newest(ctx, c.ID, kindSummary)
	if err != nil {
		return err
	}
	plan := summary.Plan{Level: old.Level, First: old.FirstSeq, Last: old.LastSeq, FirstTurn: old.FirstTurn, LastTurn: old.LastTurn, Chars: old.CharsIn}
	for _, child := range old.Children {
		plan.Children = append(plan.Children, summary.Range{ID: child})
	}
	w, err := r.write(ctx, c.ID, *c, plan, profile)
	if err != nil {
		return err
	}
	if w.FallbackReason != "" {
		a.Kept++
		return nil
	}
	w.Children = old.Children // a revision consolidates the same children
	revision := revisionOf(old.SummaryID) + 1
	e, err := w.Revision(c.ID.ID, plan, revision, old.SummaryID)
	if err != nil {
		return err
	}
	seq, err := r.publish(ctx, c.ID, e, kindSummary, newest)
	if errors.Is(err, eventlog.ErrConflict) {
		return fmt.Errorf("summary %s is not rewritten, because the conversation was deleted or got another summary in the meantime; try again: %w", old.SummaryID, err)
	}
	if err != nil {
		return err
	}
	c.LastSeq = max(c.LastSeq, seq)
	r.count(func(f *Figures) { f.Written++ })
	a.Written = append(a.Written, summary.ID(plan.Level, plan.First, plan.Last, revision))
	return nil
}

var revised = regexp.MustCompile(`-r([0-9]{1,9})$`)

// revisionOf returns the revision number in a summary's id, 1 if it has none.
func revisionOf(id string) int {
	if m := revised.FindStringSubmatch(id); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return 1
}
