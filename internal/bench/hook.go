package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/harness"
)

// HookOptions are the options of [RunHook].
type HookOptions struct {
	Program Program
	Hook    string   // the program that agents run; "" does not time it
	Events  []string // transcripts to import, of one project
}

// Hook is the result of [RunHook].
type Hook struct {
	Machine  Machine     `json:"machine"`
	Store    Store       `json:"store"`
	Project  string      `json:"project"`
	Sessions int         `json:"sessions"` // of the project
	Asked    int         `json:"asked"`    // sessions with prompts that were measured
	All      HookFigures `json:"all"`
	Earlier  HookFigures `json:"earlier"` // the first half of the measured sessions
	Later    HookFigures `json:"later"`   // the others
	Answer   Latencies   `json:"answer"`
	// Process is how long the program that agents run takes, from its start to its end, nil if it is not installed.
	Process *Latencies `json:"process,omitempty"`
}

// HookFigures say what a hook did at the prompts of some sessions. The shares from Touching on are of the
// prompts at which it spoke.
type HookFigures struct {
	Prompts int     `json:"prompts"`
	Spoke   int     `json:"spoke"`
	Share   float64 `json:"spoke_share"` // of the prompts
	Chars   float64 `json:"chars"`       // shown, on average
	Named   float64 `json:"named"`       // files, on average

	Touching float64 `json:"touching"`     // whose turn touches a file at all: no other can be a hit
	Hits     float64 `json:"hits"`         // whose turn touches a file that the shown text names
	News     float64 `json:"new_hits"`     // with a file that neither the prompt names nor the session had touched
	ByNewest float64 `json:"floor_newest"` // hits if as many files are shown of the session that touched a file last
	ByRandom float64 `json:"floor_random"` // hits if as many files are shown of a random earlier session
}

// RunHook publishes the sessions of one project to the program in an empty directory, all events in the order of their
// times. For each prompt of each session but the first five it sends a hook's event as of the moment before the prompt,
// so that nothing later and nothing of the asking session can be shown. If the hook speaks, it is a hit if the turn
// reads or changes a file that the shown text names, by its path in the repository or the end of that path. A turn that
// touches no file is a miss. If two sessions hold a prompt with the same time, as a session and its continuation do, it
// counts for the first. The floors show as many files, the last touched ones, of the session that touched a file last,
// and of one drawn from all earlier sessions. At the end RunHook times the program that agents run.
//
// Sessions of agents without hooks are only shown to others. Without prompts it returns [ErrNoEvents].
func RunHook(ctx context.Context, o HookOptions, say Say) (out Hook, err error) {
	out.Machine = thisMachine()
	name, aliases, sessions, err := ofOneProject(ctx, o.Events)
	if err != nil {
		return out, err
	}
	out.Project, out.Sessions = name, len(sessions)
	var h history
	out.Store, err = o.Program.loaded(ctx, Embeddings{Kind: "builtin"}, "off", func(server *program) error {
		return publishing(ctx, server, name, aliases, func(log *eventlog.Log) error {
			h, err = publishMerged(ctx, log, sessions)
			return err
		})
	}, func(server *program) error {
		reads := newAPI(server.http, tenant, 1)
		if _, err := reads.awaitApplied(ctx); err != nil {
			return err
		}
		if err := out.ask(ctx, reads, sessions, &h, say); err != nil {
			return err
		}
		out.Process, err = o.run(ctx, server, sessions, &h, say)
		return err
	})
	return out, err
}

// hookRuns is how many processes of the hook are timed.
const hookRuns = 200

// run times the program that agents run, one after the other, at prompts spread over all sessions of agents with hooks.
// It shows what is known now, not as of the prompt.
func (o HookOptions) run(ctx context.Context, server *program, sessions []begun, h *history, say Say) (*Latencies, error) {
	if o.Hook == "" {
		return nil, nil
	}
	state, err := os.MkdirTemp("", "mneme-bench-hook-") // for events that a slow server has not taken
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(state) }()
	type call struct {
		agent string
		event []byte
	}
	var calls []call
	for i := range sessions {
		agent, session := hook.Of(sessions[i].id)
		if agent == nil {
			continue
		}
		for _, p := range h.prompts[i] {
			event, err := json.Marshal(hookEvent(agent.PromptEvent(), session, sessions[i].place.Folder, p.text))
			if err != nil {
				return nil, err
			}
			calls = append(calls, call{agent.Name, event})
		}
	}
	var took []time.Duration
	for n, c := range spread(calls, hookRuns) {
		say("running the hook, %d", n+1)
		cmd := exec.CommandContext(ctx, o.Hook, "--url", server.http, "--tenant", tenant, c.agent)
		cmd.Env = append(o.Program.environment(), "XDG_STATE_HOME="+state, "MNEME_HOOK=")
		cmd.Stdin = bytes.NewReader(c.event)
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return nil, errors.Join(ctx.Err(), fmt.Errorf("%s: %w", o.Hook, err))
		}
		took = append(took, time.Since(began))
	}
	return new(latencies(took)), nil
}

// history is what recorded sessions did, by their place in the list of sessions.
type history struct {
	touches [][]touch
	prompts [][]prompted
	byBase  map[string][]string // all files, by the last parts of their paths
}

// touch is a call that reads or changes a file.
type touch struct {
	seq  uint64
	file string // relative to the repository
}

// prompted is a prompt.
type prompted struct {
	seq, next uint64 // of the prompt, and of the session's next one
	text      string
}

// publishMerged publishes the events of all sessions in the order in which they happened. The clock of a session never
// goes back: its own order is right, its times may not be.
func publishMerged(ctx context.Context, log *eventlog.Log, sessions []begun) (h history, err error) {
	type at struct {
		session int
		clock   time.Time
		event   events.Event
	}
	var merged []at
	for i := range sessions {
		clock := sessions[i].began
		for _, e := range sessions[i].events {
			if e.Time.After(clock) {
				clock = e.Time
			}
			merged = append(merged, at{i, clock, e})
		}
		sessions[i].events = nil
	}
	slices.SortStableFunc(merged, func(a, b at) int { return a.clock.Compare(b.clock) })
	list := make([]events.Event, len(merged))
	for k := range merged {
		list[k] = merged[k].event
	}
	acks, err := log.PublishAll(ctx, tenant, list)
	if err != nil {
		return h, err
	}
	h = history{make([][]touch, len(sessions)), make([][]prompted, len(sessions)), map[string][]string{}}
	table := files.DefaultTable()
	type said struct{ time, text string }
	seen := map[said]bool{}
	for k, m := range merged {
		recorded, err := events.Record(m.event)
		if err != nil || acks[k].Duplicate {
			continue
		}
		switch p := recorded.Payload.(type) {
		case *events.MessageCreated:
			copied := said{m.event.Time.String(), p.Content}
			if !harness.Asks(p.Role, p.Origin, p.Content) || seen[copied] {
				continue
			}
			seen[copied] = true
			h.asked(m.session, acks[k].Seq, p.Content)
		case *events.ToolCalled:
			for _, name := range sessions[m.session].touched(table, p) {
				h.touched(m.session, acks[k].Seq, name)
			}
		}
	}
	return h, nil
}

func (h *history) asked(session int, seq uint64, text string) {
	list := h.prompts[session]
	if n := len(list); n > 0 {
		list[n-1].next = seq
	}
	h.prompts[session] = append(list, prompted{seq, ^uint64(0), text})
}

func (h *history) touched(session int, seq uint64, file string) {
	h.touches[session] = append(h.touches[session], touch{seq, file})
	if base := path.Base(file); !slices.Contains(h.byBase[base], file) {
		h.byBase[base] = append(h.byBase[base], file)
	}
}

// ask measures the prompts of the sessions, which are in the order of their first events.
func (out *Hook) ask(ctx context.Context, reads *api, sessions []begun, h *history, say Say) error {
	var measured []int
	for i := startAfter; i < len(sessions); i++ {
		if agent, _ := hook.Of(sessions[i].id); agent != nil && len(h.prompts[i]) > 0 {
			measured = append(measured, i)
		}
	}
	if out.Asked = len(measured); out.Asked == 0 {
		return errors.Join(ErrNoEvents, errors.New("no session after the first five is of an agent with hooks and has a prompt"))
	}
	random := rand.New(rand.NewPCG(1, 1))
	var took []time.Duration
	for n, i := range measured {
		say("session %d of %d", n+1, len(measured))
		half := &out.Earlier
		if n >= (len(measured)+1)/2 {
			half = &out.Later
		}
		for _, p := range h.prompts[i] {
			began := time.Now()
			shown, err := reads.hook(ctx, &sessions[i], p)
			if err != nil {
				return err
			}
			took = append(took, time.Since(began))
			half.add(h, i, p, shown, random)
		}
	}
	out.All = out.Earlier
	out.All.sum(&out.Later)
	for _, f := range []*HookFigures{&out.All, &out.Earlier, &out.Later} {
		f.mean()
	}
	out.Answer = latencies(took)
	return nil
}

// hookEvent is what an agent sends to its hook at a prompt.
func hookEvent(name, session, folder, prompt string) map[string]string {
	return map[string]string{"hook_event_name": name, "session_id": session, "cwd": folder, "prompt": prompt}
}

// hook returns the answer to the hook of a session at a prompt, "" for nothing.
func (a *api) hook(ctx context.Context, s *begun, p prompted) (string, error) {
	agent, session := hook.Of(s.id)
	raw, err := a.send(ctx, http.MethodPost, "/v1/hooks/"+agent.Name, url.Values{"as_of": {strconv.FormatUint(p.seq-1, 10)}}, hookEvent(agent.PromptEvent(), session, s.place.Folder, p.text), http.StatusOK)
	if err != nil || len(raw) == 0 {
		return "", err
	}
	var answer struct {
		Specific struct {
			Text string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	err = json.Unmarshal(raw, &answer)
	return answer.Specific.Text, err
}

// add counts a prompt of a session.
func (f *HookFigures) add(h *history, session int, p prompted, shown string, random *rand.Rand) {
	f.Prompts++
	if shown == "" {
		return
	}
	f.Spoke++
	f.Chars += float64(utf8.RuneCountInString(shown))
	words, named := h.namedIn(shown)
	f.Named += float64(words)
	touched, before := map[string]bool{}, map[string]bool{}
	for _, t := range h.touches[session] {
		switch {
		case t.seq < p.seq:
			before[t.file] = true
		case t.seq < p.next:
			touched[t.file] = true
		}
	}
	count := func(sum *float64, is bool) {
		if is {
			*sum++
		}
	}
	_, byPrompt := h.namedIn(p.text)
	count(&f.Touching, len(touched) > 0)
	count(&f.Hits, slices.ContainsFunc(named, func(file string) bool { return touched[file] }))
	count(&f.News, slices.ContainsFunc(named, func(file string) bool {
		return touched[file] && !before[file] && !slices.Contains(byPrompt, file)
	}))
	earlier := h.earlier(session, p.seq)
	if len(earlier) == 0 {
		return
	}
	hits := func(of int) bool {
		return slices.ContainsFunc(h.last(of, p.seq, words), func(file string) bool { return touched[file] })
	}
	count(&f.ByNewest, hits(earlier[0]))
	count(&f.ByRandom, hits(earlier[random.IntN(len(earlier))]))
}

// means returns the figures that hold sums until [HookFigures.mean] divides them.
func (f *HookFigures) means() []*float64 {
	return []*float64{&f.Chars, &f.Named, &f.Touching, &f.Hits, &f.News, &f.ByNewest, &f.ByRandom}
}

// sum adds the sums of others.
func (f *HookFigures) sum(others *HookFigures) {
	f.Prompts += others.Prompts
	f.Spoke += others.Spoke
	for i, more := range others.means() {
		*f.means()[i] += *more
	}
}

// mean divides each sum by the number of its summands.
func (f *HookFigures) mean() {
	f.Share = float64(f.Spoke) / float64(max(1, f.Prompts))
	for _, sum := range f.means() {
		*sum /= float64(max(1, f.Spoke))
	}
}

// namedIn returns how many words of a text name files, and those files: by the whole path in the repository, by the end
// of it, or by an absolute path.
func (h *history) namedIn(text string) (words int, named []string) {
	seen := map[string]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n,;:()[]{}<>\"'`*|=", r) }) {
		word = strings.TrimRight(strings.TrimPrefix(word, "./"), ".…!?")
		if seen[word] || word == "" {
			continue
		}
		seen[word] = true
		found := false
		for _, file := range h.byBase[path.Base(word)] {
			if file == word || strings.HasSuffix(file, "/"+word) || path.IsAbs(word) && strings.HasSuffix(word, "/"+file) {
				found, named = true, append(named, file)
			}
		}
		if found {
			words++
		}
	}
	return words, named
}

// earlier returns the other sessions that touched a file before a sequence, the last to do so first.
func (h *history) earlier(session int, seq uint64) (list []int) {
	last := make([]uint64, len(h.touches))
	for i, touches := range h.touches {
		for _, t := range touches {
			if t.seq < seq && i != session {
				last[i] = t.seq
			}
		}
		if last[i] > 0 {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(last[b], last[a]) })
	return list
}

// last returns the files that a session touched last before a sequence, at most n.
func (h *history) last(session int, seq uint64, n int) (list []string) {
	for _, t := range slices.Backward(h.touches[session]) {
		if len(list) == n {
			break
		}
		if t.seq < seq && !slices.Contains(list, t.file) {
			list = append(list, t.file)
		}
	}
	return list
}
