package otlp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/internal/frame"
)

// Bounds of what is remembered. What was forgotten gets the same ids when it comes again, so the log drops it. Only
// where a client left out old messages is it recorded twice.
const (
	maxSessions = 2_000
	maxLinks    = 200_000 // of all sessions, 41 bytes each
	maxOfOne    = 20_000  // of one session
	maxThreads  = 50      // of one session
	maxCalls    = 1_000   // of one session, remembered until a restart
)

// hash is the end of a chain of hashes over messages.
type hash [16]byte

func (h hash) id() string { return "px:" + hex.EncodeToString(h[:]) }

// link is one message of a history.
type link struct {
	chain hash    // over it and all before it
	own   [8]byte // hash of this message alone
	said  bool    // it is a message in the log, not just results of tools
	event hash    // the chain under which it was recorded; differs from chain if the client had left out older messages then
}

// thread is a history as it was last sent.
type thread struct {
	conversation string
	inherited    int // of the links, those of the conversation that this one branched from
	links        []link
}

// session is what is remembered of one session. It is never modified: a plan modifies a copy.
type session struct {
	tenant, key string
	nameless    bool // its client names no session
	transcript  bool // its messages come from the agent's transcript
	started     bool
	threads     []*thread // most recently used last
	used        time.Time

	calls    map[string]string // the id in the log of the last call under each id
	answered map[string]bool   // by the id in the log
	open     []toolCall        // without a result, under their ids in the log
}

// conversation returns the id of the session's conversation.
func (s *session) conversation() string { return conversationPrefix + s.key }

// conversationPrefix begins the names of conversations.
const conversationPrefix = "otel:"

func (s *session) clone() *session {
	c := *s
	c.threads = slices.Clone(s.threads)
	c.calls, c.answered, c.open = maps.Clone(s.calls), maps.Clone(s.answered), slices.Clone(s.open)
	if len(c.calls) > maxCalls || c.calls == nil {
		c.calls = map[string]string{}
	}
	if len(c.answered) > maxCalls || c.answered == nil {
		c.answered = map[string]bool{}
	}
	return &c
}

// ends yields the ends of all histories of a nameless session: it is found by them.
func (s *session) ends() iter.Seq[hash] {
	return func(yield func(hash) bool) {
		for _, t := range s.threads {
			for _, l := range t.links {
				if !s.nameless || !yield(l.chain) {
					return
				}
			}
		}
	}
}

func (s *session) links() int {
	n := 0
	for _, t := range s.threads {
		n += len(t.links)
	}
	return n
}

// root begins the chains of a session. All clients that name no session share one root: for them only the history shows
// which conversation continues.
func (s *session) root() hash {
	if s.nameless {
		return rootOf(s.tenant, "")
	}
	return rootOf(s.tenant, s.key)
}

func rootOf(tenant, key string) hash {
	h := sha256.New()
	for _, part := range []string{tenant, key, "v1"} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hash(h.Sum(nil)[:16])
}

// chained returns the links of a list of messages.
func chained(root hash, list []message) []link {
	links := make([]link, len(list))
	for i := range list {
		own := sha256.Sum256([]byte(canonical(&list[i])))
		end := sha256.Sum256(slices.Concat(root[:], own[:]))
		root = hash(end[:16])
		links[i] = link{chain: root, own: [8]byte(own[:8]), event: root, said: list[i].speaks()}
	}
	return links
}

// canonical returns the part of a message that stays the same when a client sends it again. Clients drop reasoning,
// join texts, clear old results of tools and write arguments in another way, and what mneme has shown comes and goes.
func canonical(m *message) string {
	var b strings.Builder
	part := func(s string) {
		b.WriteString(strconv.Itoa(len(s)) + ":" + s)
	}
	part(m.role)
	for _, c := range m.calls {
		part("call")
		part(cmp.Or(c.id, c.name+sorted(c.arguments)))
	}
	for _, r := range m.results {
		part("result")
		part(cmp.Or(r.call, r.name+string(r.result)))
	}
	if len(m.calls) == 0 {
		text, _ := frame.Strip(strings.Join(m.texts, "\n"))
		part(strings.Join(strings.Fields(text), " "))
	}
	return b.String()
}

// sorted returns JSON with sorted members and without white space.
func sorted(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return string(encode(v))
}

// place says which of a call's messages are new, and where they belong.
type place struct {
	to        *thread // a copy to which the new messages are added
	from      int     // the first new message of those after the summary
	summary   int     // number of new messages before the known ones: a compaction's
	branch    bool    // to is a new conversation
	parent    string  // where a branch left it
	parentAt  hash
	replaces  *thread // nil adds a thread
	compacted bool    // the first new message is the summary of a compaction
}

// find compares a history with the threads of the session.
//
//	it continues at the end of a thread            the rest is new
//	it leaves a thread earlier                     an edit, a rewind, another answer: a branch from there
//	it begins differently, then reaches a thread's end  what came before is a compaction's summary, or older messages are left out
//	nothing of it is known                         all is new
func (s *session) find(links []link, compacted bool) place {
	var best *thread
	common := -1
	for _, t := range s.threads {
		if n := t.common(links); n >= common {
			best, common = t, n
		}
	}
	switch {
	case common > 0 && (common == len(links) || common == len(best.links)):
		to := *best
		to.links = slices.Clip(best.links)
		return place{to: &to, from: common, replaces: best}
	case common > 0:
		to := &thread{conversation: s.conversation() + "/" + hex.EncodeToString(links[common].chain[:6]), inherited: common, links: slices.Clone(best.links[:common])}
		p := place{to: to, from: common, branch: true}
		for n := common; n > 0 && p.parent == ""; n-- {
			if best.links[n-1].said {
				p.parent, p.parentAt = s.owner(best, n), best.links[n-1].event
			}
		}
		return p
	}
	for _, t := range slices.Backward(s.threads) {
		if from, at, ok := t.goesOn(links); ok {
			to := &thread{conversation: t.conversation, inherited: t.inherited, links: slices.Clone(links[:from])}
			run := 0
			for ; from+run < len(links) && at+run < len(t.links); run++ {
				known := links[from+run]
				known.event = t.links[at+run].event
				to.links = append(to.links, known)
			}
			p := place{to: to, summary: from, from: from + run, compacted: from > 0}
			if from == 0 {
				p.replaces = t
			}
			return p
		}
	}
	return place{to: &thread{conversation: s.conversation()}, compacted: compacted && len(s.threads) > 0}
}

// common returns how many links a history shares with the beginning of the thread. Each link includes all before it, so
// a binary search works.
func (t *thread) common(links []link) int {
	low, high := 0, min(len(t.links), len(links))
	for low < high {
		mid := (low + high + 1) / 2
		if t.links[mid-1].chain == links[mid-1].chain {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// goesOn finds a history with another beginning that reaches the end of the thread, or ends inside it. from is where the
// known messages begin in the history, and at in the thread: as early as possible. A single message does not count: people
// repeat themselves.
func (t *thread) goesOn(links []link) (from, at int, ok bool) {
	from = len(links)
	for before, n := range shared(t.links, links) { // to the end of the thread
		if n >= 2 && before-n <= from {
			from, at, ok = before-n, len(t.links)-n, true
		}
	}
	for before, n := range shared(links, t.links) { // to the end of the history
		if start := len(links) - n; n >= 2 && (start < from || start == from && before-n < at) {
			from, at, ok = start, before-n, true
		}
	}
	return from, at, ok
}

// shared returns, for each place in a list, how many messages before it are also the last ones of another list. It takes
// linear time, by the Z algorithm backwards: a client may repeat one message thousands of times.
func shared(ending, list []link) []int {
	all := make([][8]byte, 0, len(ending)+len(list))
	for _, l := range slices.Backward(ending) {
		all = append(all, l.own)
	}
	for _, l := range slices.Backward(list) {
		all = append(all, l.own)
	}
	same := make([]int, len(all)) // from a place on, how many are the same as from the beginning on
	for i, left, right := 1, 0, 0; i < len(all); i++ {
		if i < right {
			same[i] = min(right-i, same[i-left])
		}
		for i+same[i] < len(all) && all[same[i]] == all[i+same[i]] {
			same[i]++
		}
		if i+same[i] > right {
			left, right = i, i+same[i]
		}
	}
	counts := make([]int, len(list)+1)
	for before := 1; before <= len(list); before++ {
		counts[before] = min(same[len(all)-before], len(ending))
	}
	return counts
}

// owner returns the conversation that recorded the n-th link of a thread.
func (s *session) owner(t *thread, n int) string {
	if n > t.inherited {
		return t.conversation
	}
	for _, other := range s.threads {
		if other != t && n > other.inherited && n <= len(other.links) && other.links[n-1].chain == t.links[n-1].chain {
			return other.conversation
		}
	}
	return s.conversation()
}

// keep remembers a thread.
func (s *session) keep(p place) {
	if p.replaces != nil {
		s.threads = slices.DeleteFunc(s.threads, func(t *thread) bool { return t == p.replaces })
	}
	s.threads = append(s.threads, p.to)
	for len(s.threads) > maxThreads || len(s.threads) > 1 && s.links() > maxOfOne {
		s.threads = slices.Delete(s.threads, 0, 1)
	}
	if s.links() > maxOfOne {
		s.threads = nil
	}
}
