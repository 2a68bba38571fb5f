package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/pkg/health"
)

// Finding is something odd about a conversation.
type Finding struct {
	Rule     string   `json:"rule" enum:"loop,failing,rereads,long_turn,unanswered" doc:"loop: the same call had the same result again and again, with nothing new between; failing: the same call failed again, with nothing new between; rereads: the same part of a file was read again and again, with no write between; long_turn: a turn of very many steps; unanswered: the conversation ends with a request without an answer"`
	Count    int      `json:"count" doc:"of calls (loop, failing), of reads of what was read before (rereads), of steps (long_turn), of requests (unanswered)"`
	Tool     string   `json:"tool,omitempty"`
	Subject  string   `json:"subject" doc:"the call's arguments or its command, the file, or the beginning of the user message; at most 200 characters on one line"`
	Turn     int      `json:"turn" doc:"of the first event"`
	FirstSeq uint64   `json:"first_seq"`
	LastSeq  uint64   `json:"last_seq"`
	Seqs     []uint64 `json:"seqs" doc:"sequences of the first 20 events that it is based on: tool calls or messages; for a long turn, its first and last step"`
}

// Health is what is odd about a conversation.
type Health struct {
	ConversationID string    `json:"conversation_id"`
	Findings       []Finding `json:"findings" doc:"in log order, at most the first 1,000"`
	Found          int       `json:"found" doc:"how many findings there are"`
	Rows           int       `json:"rows" doc:"how many messages, calls and results were examined, at most 50,000"`
	Complete       bool      `json:"complete" doc:"all rows from the beginning, or from the sequence asked for, were examined"`
	NextFrom       uint64    `json:"next_from,omitempty" doc:"where to continue, if the conversation is longer; absent if it is not"`
}

type healthInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	From uint64 `query:"from" doc:"examine only events from this sequence on"`
}

func (a *api) registerHealth(h huma.API) {
	op := operation("show-health", http.MethodGet, "/v1/conversations/{id}/health", "Say what went wrong in a conversation", "conversations", 404, 422, 503, 504)
	op.Description = "Applies a few rules to its messages, calls and results, and says which events each finding is based on."
	serve(a, h, op, a.health)
}

func (a *api) health(ctx context.Context, in *healthInput) (*output[Health], error) {
	g, err := a.graph(ctx, in.id(), in.WaitParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	r, err := health.Check(ctx, g, in.id(), in.From, in.seq())
	if err != nil {
		return nil, err
	}
	return &output[Health]{Body: Health{
		ConversationID: in.ID, Found: r.Found, Rows: r.Rows, Complete: r.Next == 0, NextFrom: r.Next,
		Findings: each(r.Findings, func(f health.Finding) Finding {
			return Finding{Rule: string(f.Rule), Count: f.Count, Tool: f.Tool, Subject: f.Subject, Turn: f.Turn, FirstSeq: f.FirstSeq, LastSeq: f.LastSeq, Seqs: f.Seqs}
		}),
	}}, nil
}
