package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/intake"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/projection"
)

// tenant of all events.
const tenant = "default"

// agents are the recordings of working agents, by file name.
var agents = []string{"claude_code", "codex", "gemini_cli", "openhands", "pi", "swe_agent"}

// session is a recorded conversation.
type session []events.Event

// sessions reads a folder: the recordings of agents if it has them, else all of it.
func sessions(ctx context.Context, dir string) ([]session, error) {
	var paths []string
	for _, agent := range agents {
		found, err := filepath.Glob(filepath.Join(dir, "events", agent+".jsonl*"))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		paths = []string{dir}
	}
	files, err := transcript.Find(paths)
	if err != nil {
		return nil, err
	}
	var list []session
	for _, file := range files {
		some, err := readSessions(ctx, file)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no recorded conversations below %s", dir)
	}
	return list, nil
}

func readSessions(ctx context.Context, file transcript.File) (list []session, err error) {
	in, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	at, cleaner := map[string]int{}, &intake.Cleaner{} // the server would change results of mneme's own tools
	err = transcript.Read(ctx, in, file.Path, transcript.Auto, func(item transcript.Item) error {
		if item.Err != nil { // recordings are not clean
			return nil
		}
		i, known := at[item.Event.Subject]
		if !known {
			i = len(list)
			at[item.Event.Subject] = i
			list = append(list, nil)
		}
		e, _, err := cleaner.Clean(item.Event)
		list[i] = append(list[i], e)
		return err
	})
	for i := range list {
		list[i] = list[i].clean()
	}
	return slices.DeleteFunc(list, func(s session) bool { return len(s) == 0 }), err
}

// clean leaves out events that a read model would refuse or drop: those with an identity or a
// payload id that occurred before.
func (s session) clean() session {
	seen := map[events.Digest]bool{}
	return slices.DeleteFunc(s, func(e events.Event) bool {
		r, err := events.Record(e)
		if err != nil {
			return true
		}
		keys := []events.Digest{e.Identity(tenant)}
		if key := r.Payload.Key(); key != "" {
			keys = append(keys, projection.PayloadKey(events.ConversationID{Tenant: tenant, ID: e.Subject}, key))
		}
		for _, key := range keys {
			if seen[key] {
				return true
			}
		}
		for _, key := range keys {
			seen[key] = true
		}
		return false
	})
}

// A session used for making others has at least this many events, and this many characters in a
// message if it is lengthened: enough for summaries of two levels.
const (
	minEvents  = 80
	minMessage = 1_000
)

// lengthen repeats a short session, with new ids and longer messages, until it has enough events.
func lengthen(s session) (long session, err error) {
	for round := 0; len(long) < minEvents; round++ {
		again, err := s.copy(s[0].Subject, strconv.Itoa(round)+"-", 0, func(p events.Payload) {
			if m, ok := p.(*events.MessageCreated); ok {
				m.Content = lengthenText(m.Content, round)
			}
		})
		if err != nil {
			return nil, err
		}
		long = append(long, again...)
	}
	return long, nil
}

// lengthenText adds sentences, all different.
func lengthenText(text string, round int) string {
	for n := 0; len(text) < minMessage; n++ {
		text += fmt.Sprintf("\nIn round %d the measurement %d of host-%d was compared with that of host-%d, and shard %d had to be moved.", round, n, n*7%10, round*3%10, (n+round)*13%50)
	}
	return text
}

// load makes conversations from sessions: each is a copy of a session with new ids.
type load struct {
	seed     uint64
	sessions []session
}

func newLoad(seed uint64, list []session) (*load, error) {
	long := make([]session, 0, len(list))
	for _, s := range list {
		if len(s) < minEvents {
			var err error
			if s, err = lengthen(s); err != nil {
				return nil, err
			}
		}
		long = append(long, s)
	}
	return &load{seed: seed, sessions: long}, nil
}

// random draws the random values of a conversation: the same for the same seed.
func (l *load) random(n int) *rand.Rand { return rand.New(rand.NewPCG(l.seed, uint64(n))) }

// conversation makes the events of the nth conversation, in order. Every other one begins without a
// title, so that the summarizers give it one.
func (l *load) conversation(n int) (session, error) {
	rnd := l.random(n)
	s := l.sessions[rnd.IntN(len(l.sessions))]
	prefix := "r" + strconv.Itoa(n) + "-"
	return s.copy(prefix+s[0].Subject, prefix, time.Duration(rnd.IntN(300*24))*time.Hour, func(p events.Payload) {
		if started, ok := p.(*events.ConversationStarted); ok && n%2 == 0 {
			started.Title = ""
		}
	})
}

// copy copies a session with other ids, later times and changed payloads.
func (s session) copy(conversation, prefix string, later time.Duration, change func(events.Payload)) (session, error) {
	list := make(session, len(s))
	for i, e := range s {
		r, err := events.Record(e)
		if err != nil {
			return nil, err
		}
		switch p := r.Payload.(type) {
		case *events.MessageCreated:
			p.MessageID = prefix + p.MessageID
		case *events.ToolCalled:
			p.ToolCallID = prefix + p.ToolCallID
			if p.MessageID != "" {
				p.MessageID = prefix + p.MessageID
			}
		case *events.ToolReturned:
			p.ToolCallID = prefix + p.ToolCallID
		}
		change(r.Payload)
		if list[i], err = events.New(conversation, e.Source, prefix+e.ID, r.Payload); err != nil {
			return nil, err
		}
		if !e.Time.IsZero() {
			list[i].Time = e.Time.Add(later)
		}
	}
	return list, nil
}
