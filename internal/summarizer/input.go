package summarizer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// input reads the text that a summary is written from, and the ids of the child summaries.
func (r *Reactor) input(ctx context.Context, id events.ConversationID, c summary.Conversation, plan summary.Plan) (in summary.Input, children []string, err error) {
	if err := r.awaitGraph(ctx, r.Log.PartitionOf(id.Tenant, id.ID), c.LastSeq); err != nil {
		return in, nil, err
	}
	err = r.graph(ctx, func(g graph.Reader) error {
		if plan.Level == 1 {
			return r.covered(ctx, g, id, plan, &in)
		}
		list, err := childrenOf(ctx, g, id, plan)
		for _, s := range list {
			children = append(children, s.SummaryID)
		}
		consolidated(list, &in)
		return err
	})
	return in, children, err
}

// childrenOf reads the newest revision of each child summary, oldest child first.
func childrenOf(ctx context.Context, g graph.Reader, id events.ConversationID, plan summary.Plan) (list []graph.Summary, err error) {
	ids := make([]string, len(plan.Children))
	for i, child := range plan.Children {
		ids[i] = child.ID
	}
	found, err := g.SummariesByID(ctx, id, ids, graph.Latest)
	if err != nil {
		return nil, err
	}
	for _, child := range ids {
		s, ok := found[child]
		if !ok {
			return nil, fmt.Errorf("the read model graph has no summary %s", child)
		}
		for s.SupersededSeq != 0 {
			next, err := g.Summaries(ctx, id, graph.SummaryQuery{From: s.SupersededSeq, Before: s.SupersededSeq + 1, Superseded: true, Limit: 1})
			if err != nil {
				return nil, err
			}
			if len(next) == 0 {
				break
			}
			s = next[0]
		}
		list = append(list, s)
	}
	return list, nil
}

// consolidated turns child summaries into the input of their parent.
func consolidated(list []graph.Summary, in *summary.Input) {
	var named, called tally
	for _, s := range list {
		in.Children = append(in.Children, summary.Draft{Conversation: s.Conversation, Actions: s.Actions, Findings: s.Findings, Topics: s.Topics})
		for _, file := range slices.Backward(s.Files) {
			named.add(file)
		}
		for _, tool := range s.Tools {
			called.add(tool)
		}
	}
	in.Files, in.Tools = named.newest(), called.most()
}

// readPage is the page size when a transcript is read.
const readPage = 500

// covered reads the range of a summary of level 1.
func (r *Reactor) covered(ctx context.Context, g graph.Reader, id events.ConversationID, plan summary.Plan, in *summary.Input) error {
	conversation, err := g.Conversation(ctx, id, graph.Latest)
	if err != nil {
		return err
	}
	var named, called tally
	calls := map[string]files.Call{}
	for from := plan.First; ; {
		rows, err := g.Transcript(ctx, id, graph.TranscriptQuery{From: from, Before: plan.Last + 1, Limit: readPage, OldestFirst: true})
		if err != nil {
			return err
		}
		for _, row := range rows {
			from = row.Position().Seq + 1
			switch {
			case row.Message != nil:
				in.Entries = append(in.Entries, entryOf(row.Message))
			case row.Call != nil:
				call := row.Call
				in.Entries = append(in.Entries, summary.Entry{Seq: call.Seq, Turn: call.Turn, Kind: summary.KindCall, Name: call.ToolName, Text: summary.Cut(call.Arguments.Text, summary.MaxResult)})
				called.add(call.ToolName)
				calls[call.ToolCallID] = files.Call{Tool: call.ToolName, Arguments: []byte(call.Arguments.Text), Cwd: conversation.Cwd}
			default:
				result := row.Result
				failed := result.Success != nil && !*result.Success
				call := calls[result.ToolCallID]
				in.Entries = append(in.Entries, summary.Entry{Seq: result.Seq, Turn: result.Turn, Kind: summary.KindResult, Name: call.Tool, Text: summary.Cut(result.Result.Text, summary.MaxResult), Failed: failed})
				if !failed {
					r.touched(call, &named)
				}
			}
		}
		if len(rows) < readPage {
			break
		}
	}
	in.Files, in.Tools = named.newest(), called.most()
	return nil
}

// touched records the files that a successful call read or wrote.
func (r *Reactor) touched(call files.Call, named *tally) {
	if call.Tool == "" {
		return
	}
	for _, access := range slices.Backward(r.Files.FromCall(call)) {
		if access.Kind == files.KindRead || access.Kind == files.KindWrite {
			named.add(access.Path)
		}
	}
}

func entryOf(m *graph.Message) summary.Entry {
	kind := summary.KindSystem
	switch m.Role {
	case "user":
		kind = summary.KindUser
	case "assistant":
		kind = summary.KindAssistant
	}
	return summary.Entry{Seq: m.Seq, Turn: m.Turn, Kind: kind, Name: m.Speaker, Text: summary.Cut(m.Content.Text, summary.MaxMessage)}
}

// maxListed limits how many files or tools a summary names.
const maxListed = 50

// tally counts names and remembers their order.
type tally struct {
	names []string
	count map[string]int
	last  map[string]int
	n     int
}

func (t *tally) add(name string) {
	if t.count == nil {
		t.count, t.last = map[string]int{}, map[string]int{}
	}
	if t.count[name] == 0 {
		t.names = append(t.names, name)
	}
	t.n++
	t.count[name]++
	t.last[name] = t.n
}

// newest lists the names, the last added first.
func (t *tally) newest() []string {
	slices.SortFunc(t.names, func(a, b string) int { return cmp.Compare(t.last[b], t.last[a]) })
	return t.names[:min(len(t.names), maxListed)]
}

// most lists the names, the most frequent first, then alphabetically.
func (t *tally) most() []string {
	slices.SortFunc(t.names, func(a, b string) int { return cmp.Or(cmp.Compare(t.count[b], t.count[a]), cmp.Compare(a, b)) })
	return t.names[:min(len(t.names), maxListed)]
}
