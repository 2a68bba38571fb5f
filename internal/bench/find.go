package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Find is the result of [RunFind].
type Find struct {
	Machine       Machine   `json:"machine"`
	Store         Store     `json:"store"`
	Embedding     string    `json:"embedding_model"` // "" without
	Conversations int       `json:"conversations"`   // conversations imported
	Untitled      int       `json:"untitled"`        // conversations whose title was removed
	Questions     int       `json:"questions"`
	Left          int       `json:"left_out"` // questions about a conversation that was not imported
	Hit1          float64   `json:"hit@1"`
	Hit5          float64   `json:"hit@5"`
	MRR           float64   `json:"mrr"`
	Query         Latencies `json:"query"`
}

// found is how many conversations answer a question.
const found = 50

// RunFind imports transcripts into the program in an empty directory, removes the conversations'
// titles, and searches all conversations for each question to find the one it is about. Questions
// are mostly former titles of conversations, so titles must not be findable. Without events it
// returns [ErrNoEvents].
func RunFind(ctx context.Context, o RecallOptions, say Say) (out Find, err error) {
	out.Machine = thisMachine()
	questions, err := readQuestions(o.Questions)
	if err != nil {
		return out, err
	}
	// No summarizer, because it would write new titles.
	out.Store, err = o.Program.imported(ctx, o.Events, o.Embeddings, "off", o.Progress, func(server *program) error {
		return out.ask(ctx, newAPI(server.http, tenant, 1), questions, o, say)
	})
	return out, err
}

func (out *Find) ask(ctx context.Context, a *api, questions []Question, o RecallOptions, say Say) error {
	all, err := a.conversations(ctx)
	if err != nil {
		return err
	}
	out.Conversations = len(all)
	known := map[string]bool{}
	var last uint64
	for _, c := range all {
		known[c.ID] = true
		if c.Title == "" {
			continue
		}
		if last, err = a.untitle(ctx, c.ID); err != nil {
			return err
		}
		out.Untitled++
	}
	var took []time.Duration
	for i, q := range questions {
		if i%20 == 0 {
			say("question %d of %d", i, len(questions))
		}
		about := slices.DeleteFunc(slices.Clone(q.Conversations), func(id string) bool { return !known[id] })
		if len(about) == 0 {
			out.Left++
			continue
		}
		query := url.Values{"query": {q.Question}, "limit": {strconv.Itoa(found)}, "messages": {"1"}}
		if last > 0 { // only once, because then everything is in memory
			query.Set("at_least", strconv.FormatUint(last, 10))
			last = 0
		}
		began := time.Now()
		raw, err := a.get(ctx, "/v1/search", query)
		if err != nil {
			return err
		}
		took = append(took, time.Since(began))
		var answer struct {
			Conversations []listed
			Model         string `json:"embedding_model"`
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return err
		}
		out.Embedding = answer.Model
		out.Questions++
		rank := slices.IndexFunc(answer.Conversations, func(c listed) bool { return slices.Contains(about, c.ID) }) + 1
		if rank == 0 {
			continue
		}
		if rank == 1 {
			out.Hit1++
		}
		if rank <= 5 {
			out.Hit5++
		}
		out.MRR += 1 / float64(rank)
	}
	if out.Questions == 0 {
		return fmt.Errorf("%s: no question is about a conversation that was imported", o.Questions)
	}
	n := float64(out.Questions)
	out.Hit1, out.Hit5, out.MRR, out.Query = out.Hit1/n, out.Hit5/n, out.MRR/n, latencies(took)
	return nil
}

// untitle removes a conversation's title, and returns the sequence of the event.
func (a *api) untitle(ctx context.Context, id string) (seq uint64, err error) {
	body, err := a.send(ctx, http.MethodPatch, conversationPath(id, ""), url.Values{}, map[string]string{"title": ""}, http.StatusOK)
	var written struct{ Seq uint64 }
	if err == nil {
		err = json.Unmarshal(body, &written)
	}
	return written.Seq, err
}
