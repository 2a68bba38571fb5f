package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/analysis"
)

// Analysis is what a model answered about a conversation.
type Analysis struct {
	Seq        uint64                     `json:"seq" doc:"sequence of the event that holds the answer"`
	EventID    string                     `json:"event_id"`
	Source     string                     `json:"source" doc:"who asked"`
	Time       string                     `json:"time,omitempty" doc:"RFC 3339"`
	Task       string                     `json:"task" doc:"what the model was asked; session: what the conversation was about, what it found and what it left to do"`
	Answer     map[string]json.RawMessage `json:"answer"`
	Turns      int                        `json:"turns" doc:"turns that the conversation had then"`
	Chars      int                        `json:"chars" doc:"characters that it had then, as summaries count them"`
	Model      string                     `json:"model"`
	PromptHash string                     `json:"prompt_hash" doc:"the same for the same task in the same form"`
}

type analysesInput struct {
	ConversationParam
	WaitParams
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"maximum number of answers"`
	Cursor string `query:"cursor" doc:"next_cursor of the previous page"`
}

// Analyses are answers about a conversation, and how large it is now.
type Analyses struct {
	Turns      int        `json:"turns" doc:"turns that the conversation has"`
	Chars      int        `json:"chars" doc:"characters that it has, as summaries count them: an answer with the same numbers is about the whole of it"`
	Analyses   []Analysis `json:"analyses" doc:"oldest first"`
	NextCursor string     `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
}

// Each calls yield for every answer, and sets size to how large the conversation is. It returns the cursor of the next page.
func (p *Analyses) Each(size *analysis.Size, yield func(*analysis.Answer)) (next string) {
	*size = analysis.Size{Turns: p.Turns, Chars: p.Chars}
	for _, s := range p.Analyses {
		yield(&analysis.Answer{Seq: s.Seq, Answer: s.Answer, Model: s.Model, PromptHash: s.PromptHash, Size: analysis.Size{Turns: s.Turns, Chars: s.Chars}})
	}
	return p.NextCursor
}

func (a *api) registerAnalyses(h huma.API) {
	list := operation("list-analyses", http.MethodGet, "/v1/conversations/{id}/analyses", "List what models answered about a conversation", "summaries", 404, 422, 503, 504)
	list.Description = "The answers of mneme analyze, and of the summarizer when a conversation was finished, read from the log."
	serve(a, h, list, a.analyses)
}

// kindInsight is the kind of the events that hold the answers.
var kindInsight = events.Kind(events.TypeInsightWritten)

func (a *api) analyses(ctx context.Context, in *analysesInput) (*output[Analyses], error) {
	s := scopeOf("list-analyses", in.Tenant, in.ID)
	from, err := s.start(in.Cursor)
	if err != nil {
		return nil, err
	}
	pins := a.pins(ctx)
	if _, err := pins.Open(ctx, in.id(), in.at(AsOfParam{})); err != nil { // for a conversation that is unknown or deleted
		return nil, err
	}
	sums, _, err := pins.Summaries(ctx)
	if err != nil {
		return nil, err
	}
	c, err := sums.Conversation(ctx, in.id())
	if err != nil {
		return nil, err
	}
	out := &output[Analyses]{Body: Analyses{Turns: c.Turn, Chars: c.Chars, Analyses: []Analysis{}}}
	out.Body.NextCursor, err = a.eachOfKind(ctx, in.id(), kindInsight, s, from, in.Limit, func(r *events.Recorded, seq uint64) {
		p, ok := r.Payload.(*events.InsightWritten)
		if !ok {
			return
		}
		shown := Analysis{seq, r.ID, r.Source, "", p.Task, p.Answer, p.Turns, p.Chars, p.Model, p.PromptHash}
		if !r.Time.IsZero() {
			shown.Time = r.Time.UTC().Format(time.RFC3339Nano)
		}
		out.Body.Analyses = append(out.Body.Analyses, shown)
	})
	return out, err
}
