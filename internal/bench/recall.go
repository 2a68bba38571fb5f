package bench

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RecallOptions are the options of [RunRecall].
type RecallOptions struct {
	Program    Program
	Events     []string // transcripts to import
	Questions  string   // JSON lines, gzipped if the name ends in .gz, see [Question]
	Embeddings Embeddings
	Strategy   string    // of the contexts
	MaxChars   int       // budget of the contexts
	Progress   io.Writer // receives the progress of the import
}

// Question is one line of a file of questions.
type Question struct {
	Conversation string   `json:"conversation_id"`
	Question     string   `json:"question"`
	Category     string   `json:"category"`
	Evidence     []string `json:"evidence"` // message_ids; a question without any is skipped

	Conversations []string `json:"evidence_conversations"` // for [RunFind]: the conversation it is about
}

// Recall is the result of [RunRecall].
type Recall struct {
	Machine    Machine                  `json:"machine"`
	Store      Store                    `json:"store"`
	Embedding  string                   `json:"embedding_model"` // "" without
	Left       int                      `json:"left_out"`        // questions without evidence, or about an unknown conversation
	Strategy   string                   `json:"strategy"`
	MaxChars   int                      `json:"max_chars"`
	All        RecallFigures            `json:"all"`
	Categories map[string]RecallFigures `json:"categories"`
	Query      Latencies                `json:"query"`   // of a search
	Context    Latencies                `json:"context"` // of a context
}

// RecallFigures are means over questions. Recall@K is the share of a question's evidence among the
// first K messages, NDCG the normalized discounted gain. AnyIn and AllIn are the shares of
// questions for which a context shows some or all of the evidence.
type RecallFigures struct {
	Questions int     `json:"questions"`
	At1       float64 `json:"recall@1"`
	At5       float64 `json:"recall@5"`
	At10      float64 `json:"recall@10"`
	At25      float64 `json:"recall@25"`
	At50      float64 `json:"recall@50"`
	NDCG      float64 `json:"ndcg@10"`
	AnyIn     float64 `json:"any_in_context"`
	AllIn     float64 `json:"all_in_context"`
}

// RunRecall imports transcripts into the program in an empty directory, and asks it each question
// twice over HTTP: as a search in the conversation, and as the query of a context. Without events
// it returns [ErrNoEvents].
func RunRecall(ctx context.Context, o RecallOptions, say Say) (out Recall, err error) {
	out.Machine, out.Strategy, out.MaxChars, out.Categories = thisMachine(), o.Strategy, o.MaxChars, map[string]RecallFigures{}
	questions, err := readQuestions(o.Questions)
	if err != nil {
		return out, err
	}
	out.Store, err = o.Program.imported(ctx, o.Events, o.Embeddings, "extractive", o.Progress, func(server *program) error {
		return out.ask(ctx, newAPI(server.http, tenant, 1), questions, o, say)
	})
	return out, err
}

// ask asks all questions.
func (out *Recall) ask(ctx context.Context, reads *api, questions []Question, o RecallOptions, say Say) error {
	all, err := reads.conversations(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, c := range all {
		known[c.ID] = true
	}
	sums := map[string]*RecallFigures{}
	var searched, built []time.Duration
	for i, q := range questions {
		if i%50 == 0 {
			say("question %d of %d", i, len(questions))
		}
		q.Evidence = slices.Compact(slices.Sorted(slices.Values(q.Evidence)))
		if len(q.Evidence) == 0 || !known[q.Conversation] {
			out.Left++
			continue
		}
		found, took, model, err := reads.search(ctx, q)
		if err != nil {
			return err
		}
		searched, out.Embedding = append(searched, took), model
		shown, took, err := reads.shownFor(ctx, q, o.Strategy, o.MaxChars)
		if err != nil {
			return err
		}
		built = append(built, took)
		if sums[q.Category] == nil {
			sums[q.Category] = &RecallFigures{}
		}
		sums[q.Category].add(q.Evidence, found, shown)
		out.All.add(q.Evidence, found, shown)
	}
	if out.All.Questions == 0 {
		return fmt.Errorf("%s: no question has evidence in a conversation that was imported", o.Questions)
	}
	for _, category := range slices.Sorted(maps.Keys(sums)) {
		out.Categories[category] = sums[category].mean()
	}
	out.All = out.All.mean()
	out.Query, out.Context = latencies(searched), latencies(built)
	return nil
}

// readQuestions reads a file of questions.
func readQuestions(path string) (list []Question, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		var q Question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		list = append(list, q)
	}
	return list, lines.Err()
}

// search asks a question as a search, and returns the message_ids found.
func (a *api) search(ctx context.Context, q Question) (ids []string, took time.Duration, model string, err error) {
	began := time.Now()
	raw, err := a.get(ctx, conversationPath(q.Conversation, "/search"), url.Values{"query": {q.Question}, "limit": {"50"}, "syntax": {"plain"}})
	took = time.Since(began)
	var found struct {
		Messages []struct {
			ID string `json:"message_id"`
		}
		Model string `json:"embedding_model"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &found)
	}
	for _, m := range found.Messages {
		ids = append(ids, m.ID)
	}
	return ids, took, found.Model, err
}

// shownFor asks a question as the query of a context, and returns the message_ids that it shows of
// the conversation.
func (a *api) shownFor(ctx context.Context, q Question, strategy string, maxChars int) (shown map[string]bool, took time.Duration, err error) {
	began := time.Now()
	raw, err := a.get(ctx, conversationPath(q.Conversation, "/context"), url.Values{"query": {q.Question}, "strategy": {strategy}, "max_chars": {strconv.Itoa(maxChars)}})
	took = time.Since(began)
	var c struct {
		Sections []struct {
			Items []struct {
				ID string `json:"message_id"`
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	shown = map[string]bool{}
	for _, s := range c.Sections {
		for _, it := range s.Items {
			shown[it.ID] = true
		}
	}
	return shown, took, err
}

// add counts a question: how much of its evidence was found, best first, and how much a context
// showed.
func (f *RecallFigures) add(evidence, found []string, shown map[string]bool) {
	var dcg, ideal float64
	each := 1 / float64(len(evidence))
	for i, id := range found {
		if !slices.Contains(evidence, id) {
			continue
		}
		for k, sum := range map[int]*float64{1: &f.At1, 5: &f.At5, 10: &f.At10, 25: &f.At25, 50: &f.At50} {
			if i < k {
				*sum += each
			}
		}
		if i < 10 {
			dcg += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(10, len(evidence)) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	f.NDCG += dcg / ideal
	n := 0
	for _, id := range evidence {
		if shown[id] {
			n++
		}
	}
	if n > 0 {
		f.AnyIn++
	}
	if n == len(evidence) {
		f.AllIn++
	}
	f.Questions++
}

// mean divides sums by the number of questions.
func (f *RecallFigures) mean() RecallFigures {
	n := float64(f.Questions)
	return RecallFigures{f.Questions, f.At1 / n, f.At5 / n, f.At10 / n, f.At25 / n, f.At50 / n, f.NDCG / n, f.AnyIn / n, f.AllIn / n}
}
