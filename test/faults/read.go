package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/window"
)

// How many readers ask each API, and how long each rests: a multiple of the time for the answer,
// because otherwise readers would use all processors and nothing could catch up.
const (
	readersEach = 3
	minRest     = 20 * time.Millisecond
	restsAsTook = 10
)

// reader asks an API continually and checks whether the answers can be right.
type reader struct {
	api    *api
	book   *book
	tally  *tally
	report func(violation string)

	mu        sync.Mutex
	marks     map[string]int // message counts seen
	unsettled int            // running rebuilds
	unsettles int            // all rebuilds so far
}

// forget drops the counts seen, because the read model is now an earlier one.
func (r *reader) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.marks)
}

// unsettle records that another generation may begin to serve, which can be slightly behind; the
// returned function records the end of that. Counts seen during that time are not compared with
// earlier or later ones.
func (r *reader) unsettle() (settled func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsettled++
	r.unsettles++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unsettled--
		clear(r.marks)
	}
}

// compare returns a function that takes a message count read since then, notes it, and returns the
// count seen before.
func (r *reader) compare(id string) (seen func(messages int) (mark int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mark, settled, before := r.marks[id], r.unsettled == 0, r.unsettles
	return func(messages int) int {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !settled || r.unsettles != before {
			return 0
		}
		r.marks[id] = max(r.marks[id], messages)
		return mark
	}
}

// run reads until ctx ends.
func (r *reader) run(ctx context.Context) {
	var all sync.WaitGroup
	for range readersEach {
		all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if c := r.book.any(); c != nil {
					r.read(ctx, c)
				}
				select {
				case <-time.After(max(minRest, restsAsTook*time.Since(began))):
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
}

// question is one request about a conversation.
type question struct {
	conversation *conversation
	acked        int    // events that the answer must have, 0 if it need not have any
	atLeast      uint64 // all of them are in the log up to this sequence
	seen         func(messages int) (mark int)
}

// read asks one question.
func (r *reader) read(ctx context.Context, c *conversation) {
	q := question{conversation: c, seen: r.compare(c.id)}
	acked, seq, deleted := c.position()
	if deleted {
		return
	}
	if rand.IntN(3) > 0 { // read your own write
		q.acked, q.atLeast = acked, seq
	}
	calm, began := r.api.calm(), time.Now()
	what, wrong, err := r.ask(ctx, q)
	if ctx.Err() != nil {
		return
	}
	if _, _, deleted := c.position(); deleted {
		return
	}
	var answer *answerError
	switch {
	case err == nil:
		r.tally.add("read: 200", 1)
	case errors.As(err, &answer):
		r.tally.add(fmt.Sprint("read: ", answer.status), 1)
		switch answer.status {
		case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		case http.StatusNotFound:
			if q.acked > 0 {
				wrong = fmt.Sprintf("is not found, although at_least=%d and %d events are acknowledged", q.atLeast, q.acked)
			}
		default:
			wrong = "answers " + err.Error()
		}
	default:
		r.tally.add("read: no connection", 1)
		if calm() {
			wrong = fmt.Sprintf("does not answer, after %s: %v", time.Since(began).Round(time.Millisecond), err)
		}
	}
	if wrong != "" {
		r.report(fmt.Sprintf("%s: %s of %s (at_least=%d) %s", r.api.name, what, c.id, q.atLeast, wrong))
	}
}

// ask sends a question of some kind. wrong describes an error in the answer.
func (r *reader) ask(ctx context.Context, q question) (what, wrong string, err error) {
	query := url.Values{}
	if q.atLeast > 0 {
		query.Set("at_least", strconv.FormatUint(q.atLeast, 10))
		query.Set("wait_ms", "3000")
	}
	id := q.conversation.id
	switch rand.IntN(6) {
	case 0:
		var found httpapi.Conversation
		if err = r.api.get(ctx, conversationPath(id, ""), query, &found); err == nil {
			wrong = q.counts(found)
		}
		return "the conversation", wrong, err
	case 1:
		var page struct{ Messages []httpapi.Message }
		query.Set("limit", "30")
		if err = r.api.get(ctx, conversationPath(id, "/messages"), query, &page); err == nil {
			wrong = q.messages(page.Messages)
		}
		return "the messages", wrong, err
	case 2:
		var made window.Context
		query.Set("max_chars", "20000")
		if err = r.api.get(ctx, conversationPath(id, "/context"), query, &made); err == nil {
			wrong = q.context(made)
		}
		return "the context", wrong, err
	case 3:
		var list struct{ Files []httpapi.File }
		err = r.api.get(ctx, conversationPath(id, "/files"), query, &list)
		return "the files", "", err
	case 4:
		var page struct{ Summaries []httpapi.Summary }
		query.Set("limit", "1000")
		query.Set("order", "oldest")
		if err = r.api.get(ctx, conversationPath(id, "/summaries"), query, &page); err == nil {
			wrong = summarised(page.Summaries)
		}
		return "the summaries", wrong, err
	default:
		var page struct{ Conversations []httpapi.Conversation }
		query.Set("limit", "50")
		err = r.api.get(ctx, "/v1/conversations", query, &page)
		if err == nil && r.api.name == apiSQLite { // a list from Neo4j may show one in the middle of a commit
			wrong = listed(page.Conversations)
		}
		return "the list", wrong, err
	}
}

// counts checks a conversation's counts.
func (q question) counts(found httpapi.Conversation) string {
	least, most := q.conversation.counted[q.acked], len(q.conversation.messages)
	switch n, mark := found.MessageCount, q.seen(found.MessageCount); {
	case n < mark:
		return fmt.Sprintf("has %d messages, it had %d", n, mark)
	case n < least || n > most:
		return fmt.Sprintf("has %d messages, not %d to %d", n, least, most)
	}
	return ""
}

// messages checks the newest messages of a conversation: an unbroken run of the published ones, at
// least up to the last acknowledged one.
func (q question) messages(page []httpapi.Message) string {
	published, least := q.conversation.messages, q.conversation.counted[q.acked]
	if len(page) == 0 {
		if least > 0 {
			return fmt.Sprintf("are 0, not %d", least)
		}
		return ""
	}
	newest := len(published)
	for i, m := range page {
		n := slices.Index(published, m.EventID)
		switch {
		case n < 0:
			return fmt.Sprintf("have %s, which was never published", m.EventID)
		case i > 0 && n != newest-1:
			return fmt.Sprintf("have %s after %s", published[newest], m.EventID)
		case i == 0 && n < least-1:
			return fmt.Sprintf("end with number %d, but must reach at least %d", n+1, least)
		}
		newest = n
	}
	return ""
}

// context checks a context: each section has only published events, in order and each once (code,
// which is ordered by file, may differ), and no call lacks its acknowledged result. A call is listed
// with the message that it names, so it may be newer than the next message.
func (q question) context(made window.Context) string {
	for _, section := range made.Sections {
		last, message, leftOut, told := -1, -1, false, uint64(0)
		shown := map[int]bool{}
		for _, item := range section.Items {
			if s := item.Summary; s != nil {
				if s.FirstSeq <= told {
					return fmt.Sprintf("has sequence %d twice", s.FirstSeq)
				}
				told = s.LastSeq
				continue
			}
			if leftOut = item.Kind == window.KindLeftOut; item.EventID == "" {
				continue
			}
			n, known := q.conversation.at[item.EventID]
			switch {
			case !known:
				return fmt.Sprintf("has %s, which was never published", item.EventID)
			case item.Kind == window.KindCode: // by file, and possibly several pieces from one event
				continue
			case shown[n]:
				return fmt.Sprintf("has %s twice", item.EventID)
			case n < message:
				return fmt.Sprintf("has %s before %s", q.conversation.events[message].ID, item.EventID)
			}
			if item.Kind != window.KindToolCall && item.Kind != window.KindToolResult {
				message = n
			}
			last, shown[n] = max(last, n), true
			result, returned := q.conversation.results[item.EventID]
			if item.Kind == window.KindToolCall && item.Result == nil && returned && result < q.acked {
				return fmt.Sprintf("has the call %s without its result, which is acknowledged", item.EventID)
			}
		}
		if section.Name == window.SectionTurns && last < q.acked-1 && !leftOut { // something left out is marked
			if missing := q.conversation.events.shownAfter(last, q.acked); missing != "" {
				return fmt.Sprintf("ends before %s, which is acknowledged", missing)
			}
		}
	}
	return ""
}

// summarised checks the summaries of a conversation, oldest first: those of a level follow each
// other.
func summarised(page []httpapi.Summary) string {
	next := map[int]uint64{}
	for _, s := range page {
		if want, known := next[s.Level]; known && s.FirstSeq != want {
			return fmt.Sprintf("have %s of level %d after sequence %d", s.SummaryID, s.Level, want-1)
		}
		if next[s.Level] = s.LastSeq + 1; s.FirstSeq > s.LastSeq || s.LastSeq >= s.Seq {
			return fmt.Sprintf("have %s, which covers sequences that are not before it", s.SummaryID)
		}
	}
	return ""
}

// listed checks a list of conversations.
func listed(page []httpapi.Conversation) string {
	seen := map[string]bool{}
	for i, c := range page {
		switch {
		case seen[c.ID]:
			return "has " + c.ID + " twice"
		case i > 0 && c.LastSeq > page[i-1].LastSeq:
			return "has " + c.ID + " after one with older events"
		}
		seen[c.ID] = true
	}
	return ""
}

// shownAfter returns the id of a message or call between two events, "" if there is none. Other
// events are not shown on their own.
func (s session) shownAfter(last, acked int) string {
	for _, e := range s[last+1 : acked] {
		if e.Type == events.TypeMessageCreated || e.Type == events.TypeToolCalled {
			return e.ID
		}
	}
	return ""
}
