package otlp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
)

// told is a receiver's memory without a log. It keeps what its plans add.
type told struct {
	*memory
	t      require.TestingT
	events []events.Event
}

func remembering(t require.TestingT) *told { return &told{memory: newMemory(), t: t} }

// send plans a model call in a session, and returns the events that it adds.
func (m *told) send(key string, c modelCall) []events.Event {
	p := newPlan("default", m.memory)
	s := p.change(p.session(key, false))
	p.call(s, &entry{attributes: attributes{}, begin: time.Unix(1, 0), end: time.Unix(2, 0)}, &c)
	return m.kept(p)
}

func (m *told) kept(p *plan) []events.Event {
	m.remember(p)
	var list []events.Event
	for _, item := range p.items {
		require.Nil(m.t, item.Err)
		list = append(list, item.Event)
	}
	m.events = append(m.events, list...)
	return list
}

func user(text string) message      { return message{role: "user", texts: []string{text}} }
func assistant(text string) message { return message{role: "assistant", texts: []string{text}} }
func calling(id string) message {
	return message{role: "assistant", calls: []toolCall{{id: id, name: "look", arguments: json.RawMessage(`{"at": "` + id + `"}`)}}}
}

func resulting(id, text string) message {
	return message{role: "user", results: []toolResult{{call: id, result: encode(text)}}}
}

// shown returns events in short: the kind, the conversation and what they hold.
func shown(list []events.Event) []string {
	var out []string
	for _, e := range list {
		r, err := events.Record(e)
		if err != nil {
			panic(err)
		}
		text := ""
		switch p := r.Payload.(type) {
		case *events.ConversationStarted:
			text = "started"
			if p.BranchedFrom != nil {
				text += " from " + p.BranchedFrom.ConversationID
			}
		case *events.MessageCreated:
			text = strings.TrimSpace(p.Role + " " + p.Content + " " + p.Origin)
		case *events.ToolCalled:
			text = "call " + p.ToolCallID
		case *events.ToolReturned:
			text = "result " + p.ToolCallID + " " + p.Result.Text()
		}
		out = append(out, text)
	}
	return out
}

func TestOnlyWhatIsNewInAResentHistoryIsAdded(t *testing.T) {
	m := remembering(t)
	one := []message{user("Which units?")}
	require.Equal(t, []string{"started", "user Which units?", "assistant", "call c1"}, shown(m.send("s", modelCall{input: one, output: []message{calling("c1")}})))
	two := append(one, calling("c1"), resulting("c1", "metric"))
	added := m.send("s", modelCall{input: two, output: []message{assistant("Metric.")}})
	require.Equal(t, []string{`result c1 metric`, "assistant Metric."}, shown(added))
	require.Empty(t, m.send("s", modelCall{input: two, output: []message{assistant("Metric.")}}), "sent again")
	require.Empty(t, m.send("s", modelCall{input: one, output: []message{calling("c1")}}), "late")
}

func TestAHistoryIsKnownHoweverItsClientWritesItAgain(t *testing.T) {
	m := remembering(t)
	m.send("s", modelCall{input: []message{user("Look.")}, output: []message{
		{role: "assistant", texts: []string{"I look.", "There."}, thought: []string{"hm"}, calls: []toolCall{{id: "c", name: "look", arguments: json.RawMessage(`{"a":1,"b":2}`)}}},
	}})
	again := []message{
		user("Look.  <mneme-context id=\"c1\" seq=\"1\">recalled</mneme-context>"),
		{role: "assistant", texts: []string{"I look.\nThere."}, calls: []toolCall{{id: "c", name: "look", arguments: json.RawMessage(`{"b": 2, "a": 1}`)}}},
		{role: "user", results: []toolResult{{call: "c", result: encode("[cleared]")}}},
	}
	require.Equal(t, []string{"result c [cleared]", "assistant Done."}, shown(m.send("s", modelCall{input: again, output: []message{assistant("Done.")}})))
}

func TestAHistoryThatLeavesTheKnownOneIsABranch(t *testing.T) {
	m := remembering(t)
	m.send("s", modelCall{input: []message{user("A"), assistant("B"), user("C")}, output: []message{assistant("D")}})
	edited := []message{user("A"), assistant("B"), user("C, but shorter")}
	added := m.send("s", modelCall{input: edited, output: []message{assistant("E")}})
	require.Equal(t, []string{"started from otel:s", "user C, but shorter", "assistant E"}, shown(added))
	branch := added[0].Subject
	require.True(t, strings.HasPrefix(branch, "otel:s/"))
	require.Empty(t, m.send("s", modelCall{input: edited, output: []message{assistant("E")}}))
	more := m.send("s", modelCall{input: append(edited, assistant("E"), user("F")), output: []message{assistant("G")}})
	require.Equal(t, []string{"user F", "assistant G"}, shown(more))
	require.Equal(t, branch, more[0].Subject, "the branch goes on")
	back := m.send("s", modelCall{input: []message{user("A"), assistant("B"), user("C"), assistant("D"), user("H")}, output: []message{assistant("I")}})
	require.Equal(t, []string{"user H", "assistant I"}, shown(back))
	require.Equal(t, "otel:s", back[0].Subject, "so does the first one")
}

func TestAfterACompactionOnlyTheSummaryAndWhatFollowsAreNew(t *testing.T) {
	m := remembering(t)
	old := []message{user("A"), assistant("B"), user("C"), calling("c1"), resulting("c1", "R")}
	m.send("s", modelCall{input: old, output: []message{assistant("D")}})
	compacted := []message{user("So far: A, B."), user("C"), calling("c1"), resulting("c1", "R"), assistant("D"), user("E")}
	require.Equal(t, []string{"user So far: A, B. compaction", "user E", "assistant F"}, shown(m.send("s", modelCall{input: compacted, output: []message{assistant("F")}})))
	require.Equal(t, []string{"user G", "assistant H"}, shown(m.send("s", modelCall{input: append(compacted, assistant("F"), user("G")), output: []message{assistant("H")}})))
}

func TestAClientMayLeaveOutTheOldestMessages(t *testing.T) {
	m := remembering(t)
	var whole []message
	for i := range 10 {
		whole = append(whole, user(fmt.Sprint("question ", i)))
		answer := assistant(fmt.Sprint("answer ", i))
		window := whole[max(0, len(whole)-5):]
		added := m.send("s", modelCall{input: slices.Clone(window), output: []message{answer}})
		require.Contains(t, shown(added), fmt.Sprint("user question ", i))
		require.Contains(t, shown(added), fmt.Sprint("assistant answer ", i))
		require.LessOrEqual(t, len(added), 3)
		whole = append(whole, answer)
	}
	require.Len(t, m.events, 21)
}

func TestQuestionsWithoutAHistoryAreOneConversation(t *testing.T) {
	m := remembering(t)
	for i := range 3 {
		added := m.send("s", modelCall{input: []message{user(fmt.Sprint("question ", i))}, output: []message{assistant("Yes.")}})
		require.Equal(t, "otel:s", added[0].Subject)
	}
	require.Len(t, m.events, 7)
}

func TestARepeatedIDOfACallIsAnotherCall(t *testing.T) {
	m := remembering(t)
	history := []message{user("A"), calling("call_0"), resulting("call_0", "first"), user("B")}
	m.send("s", modelCall{input: history, output: []message{calling("call_0")}})
	added := m.send("s", modelCall{input: append(history, calling("call_0"), resulting("call_0", "second")), output: []message{assistant("C")}})
	require.Equal(t, []string{"result call_0:2 second", "assistant C"}, shown(added))
}

func TestTheRunOfAToolIsTheResultOfItsCall(t *testing.T) {
	m := remembering(t)
	m.send("s", modelCall{input: []message{user("A")}, output: []message{calling("c1")}})
	for _, id := range []string{"c1", ""} { // without an id, the tool's name identifies the call
		p := newPlan("default", m.memory)
		p.run(p.change(p.session("s", false)), &entry{attributes: attributes{}, span: "ab"}, &toolRun{id: id, name: "look", result: encode("R")})
		if id == "c1" {
			require.Equal(t, []string{"result c1 R"}, shown(m.kept(p)))
		} else {
			require.Equal(t, []string{"call span:ab", "result span:ab R"}, shown(m.kept(p)), "no call is open")
		}
	}
	added := m.send("s", modelCall{input: []message{user("A"), calling("c1"), resulting("c1", "R, shortened")}, output: []message{assistant("B")}})
	require.Equal(t, []string{"assistant B"}, shown(added), "the history tells the result again")
}

// conversation draws messages with texts, calls and their results, in an order that APIs allow.
func conversation(t *rapid.T) []message {
	var list []message
	calls := 0
	for range rapid.IntRange(1, 12).Draw(t, "turns") {
		list = append(list, user(rapid.SampledFrom([]string{"yes", "go on", "A", "B"}).Draw(t, "user")))
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			id := fmt.Sprint("c", calls)
			calls++
			list = append(list, calling(id), resulting(id, "R"))
		}
		list = append(list, assistant(rapid.SampledFrom([]string{"ok", "done", "C"}).Draw(t, "assistant")))
	}
	return list
}

func TestEachMessageOfAGrowingHistoryIsAddedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := conversation(t)
		m := remembering(t)
		ids := map[string]bool{}
		messages, sent := 0, 0
		for i := range list {
			if list[i].speaks() {
				messages++
			}
			if list[i].role != "assistant" || rapid.Bool().Draw(t, "sampled") && i < len(list)-1 {
				continue
			}
			c := modelCall{input: slices.Clone(list[:i]), output: slices.Clone(list[i : i+1])}
			for again := range 2 {
				added := m.send("s", c)
				if again == 1 && len(added) > 0 {
					t.Fatalf("sent again, it added %v", shown(added))
				}
			}
			sent = messages
		}
		count := 0
		for _, e := range m.events {
			if ids[e.ID] {
				t.Fatalf("%s came twice", e.ID)
			}
			ids[e.ID] = true
			if e.Type == events.TypeMessageCreated {
				count++
			}
			if e.Subject != "otel:s" {
				t.Fatalf("an event in %s", e.Subject)
			}
		}
		if count != sent {
			t.Fatalf("%d messages became %d: %v", sent, count, shown(m.events))
		}
	})
}

func TestTheSameHistoryHasTheSameIDsInEveryProcess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := conversation(t)
		n := rapid.IntRange(1, len(list)).Draw(t, "n")
		grown, whole := remembering(t), remembering(t)
		grown.send("s", modelCall{input: slices.Clone(list[:n])})
		grown.send("s", modelCall{input: slices.Clone(list)})
		whole.send("s", modelCall{input: slices.Clone(list)})
		require.Equal(t, len(whole.events), len(grown.events))
		for i := range whole.events {
			require.Equal(t, whole.events[i].ID, grown.events[i].ID)
			require.Equal(t, string(whole.events[i].Data), string(grown.events[i].Data))
		}
	})
}

// Requests of several tenants are planned at the same time, and share the bounds of what is remembered.
func TestASessionThatIsForgottenWhileItsRequestIsPublishedIsKept(t *testing.T) {
	m := remembering(t)
	history := []message{user("A"), assistant("B"), user("C")}
	m.send("mine", modelCall{input: history[:1], output: history[1:2]})
	p := newPlan("default", m.memory)
	mine := p.change(p.session("mine", false))
	p.call(mine, &entry{attributes: attributes{}}, &modelCall{input: history, output: []message{assistant("D")}})
	for i := range maxSessions + 1 {
		other := newPlan("other", m.memory)
		other.change(other.session(fmt.Sprint("s", i), false))
		m.remember(other)
	}
	require.Nil(t, m.session("default", "mine"))
	require.Equal(t, []string{"user C", "assistant D"}, shown(m.kept(p)))
	require.Equal(t, 4, m.session("default", "mine").links())
	require.Empty(t, m.send("mine", modelCall{input: history, output: []message{assistant("D")}}), "sent again")
}

func TestOnlyTheLastTenantsHaveACleaner(t *testing.T) {
	t.Parallel()
	r := &Receiver{cleaners: newCleaners()}
	busy := r.cleaner("busy")
	for i := range 3 * maxCleaners {
		r.cleaner(fmt.Sprint("t", i))
		require.Same(t, busy, r.cleaner("busy"))
	}
	require.Equal(t, maxCleaners, r.cleaners.Len())
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	m := remembering(t)
	for i := range maxSessions + 10 {
		m.send(fmt.Sprint("s", i), modelCall{input: []message{user("A")}})
	}
	require.Len(t, m.sessions, maxSessions)
	for i := range maxThreads + 10 {
		m.send("many", modelCall{input: []message{user(fmt.Sprint(i))}})
	}
	require.Len(t, m.sessions[[2]string{"default", "many"}].threads, maxThreads)
	long := make([]message, maxOfOne+1)
	for i := range long {
		long[i] = user(fmt.Sprint(i))
	}
	m.send("long", modelCall{input: long})
	require.Zero(t, m.sessions[[2]string{"default", "long"}].links())
}

// spelled returns the links of a history, one message for each letter.
func spelled(text string) []link {
	var list []message
	for _, letter := range text {
		list = append(list, user(string(letter)))
	}
	return chained(hash{}, list)
}

func TestAHistoryGoesOnAtTheEarliestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringMatching(`[ab]{0,12}c?`)
		known := thread{links: spelled(letters.Draw(t, "known"))}
		links := spelled(letters.Draw(t, "sent"))
		from, at, ok := known.goesOn(links)
		for f := range links {
			for a := range known.links {
				n := 0
				for f+n < len(links) && a+n < len(known.links) && links[f+n].own == known.links[a+n].own {
					n++
				}
				if n >= 2 && (f+n == len(links) || a+n == len(known.links)) {
					require.True(t, ok)
					require.Equal(t, [2]int{f, a}, [2]int{from, at})
					return
				}
			}
		}
		require.False(t, ok)
	})
}

func TestAMessageRepeatedThousandsOfTimesIsComparedOnce(t *testing.T) {
	again := strings.Repeat("a", maxOfOne-2)
	known := thread{links: spelled("b" + again + "c")}
	_, _, ok := known.goesOn(spelled("d" + again + "e")) // comparing each with each would take an hour
	require.False(t, ok)
}
