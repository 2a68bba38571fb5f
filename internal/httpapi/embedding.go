package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
)

// EmbeddedMessage has the stored vectors of a message.
type EmbeddedMessage struct {
	Seq        uint64            `json:"seq"`
	MessageID  string            `json:"message_id"`
	Model      string            `json:"model,omitempty" doc:"absent if searches rank by words alone"`
	Dimensions int               `json:"dimensions"`
	Passages   []EmbeddedPassage `json:"passages" doc:"the pieces of its content that are ranked; none if it has no text"`
}

// EmbeddedPassage is a piece of a message with its vector.
type EmbeddedPassage struct {
	Start  int   `json:"start" doc:"in bytes of the content"`
	End    int   `json:"end"`
	Terms  int   `json:"terms" doc:"number of different words that count"`
	Vector []int `json:"vector,omitempty" doc:"a multiple of the model's vector, each number from -127 to 127; absent if there is none"`
}

func (a *api) registerEmbedding(h huma.API) {
	op := operation("show-embedding", http.MethodGet, "/v1/conversations/{id}/messages/{message_id}/embedding", "Show the embedding of a message", "messages", 404, 422, 503, 504)
	op.Description = "The vectors by which searches compare the meaning of the message: one for each passage, as they are stored."
	serve(a, h, op, a.embedding)
}

func (a *api) embedding(ctx context.Context, in *messageInput) (*output[EmbeddedMessage], error) {
	v, err := a.view(ctx, in.id(), in.WaitParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	m, err := in.read(ctx, v.Graph())
	if err != nil {
		return nil, err
	}
	e, err := v.Embedded(ctx, m.Seq)
	if err != nil {
		return nil, err
	}
	return &output[EmbeddedMessage]{Body: showEmbedded(&m, e)}, nil
}

func showEmbedded(m *graph.Message, e view.Embedded) EmbeddedMessage {
	shown := EmbeddedMessage{Seq: m.Seq, MessageID: m.MessageID, Model: e.Model, Passages: []EmbeddedPassage{}}
	for i, p := range e.Passages {
		passage := EmbeddedPassage{Start: p.Start, End: p.End, Terms: len(p.Counts)}
		if i < len(e.Vectors) && e.Vectors[i] != nil {
			passage.Vector = each(e.Vectors[i], func(n int8) int { return int(n) })
			shown.Dimensions = len(passage.Vector)
		}
		shown.Passages = append(shown.Passages, passage)
	}
	return shown
}
