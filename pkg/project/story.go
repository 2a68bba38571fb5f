package project

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	json "github.com/go-json-experiment/json/v1"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Insight is what a model said about the whole conversation.
type Insight struct {
	Topic    string   `json:"x"`
	Findings []string `json:"f,omitempty"`
	Items    []string `json:"i,omitempty"` // things to do
	Chars    int      `json:"n,omitempty"` // of the conversation when the model read it
	Turns    int      `json:"t,omitempty"`
	Seq      uint64   `json:"s,omitempty"`
	Key      string   `json:"k,omitempty"` // of the event that wrote it
}

// How much a digest keeps of an insight. Texts are in characters.
const (
	maxTopic = 160
	maxItems = 6
	maxItem  = 160
)

// Chapter is a chapter of a project's story. It is the digest of a conversation of its own.
type Chapter struct {
	Project  string        `json:"p"`
	Names    []string      `json:"n"`
	Level    int           `json:"l"`
	Told     []events.Told `json:"c"`
	Children []string      `json:"h,omitempty"` // conversations of the chapters that it consolidates
	Began    string        `json:"b,omitempty"`
	Ended    string        `json:"e,omitempty"`
	Text     string        `json:"x"`
	Actions  string        `json:"a,omitempty"`
	Findings []string      `json:"f,omitempty"`
	Topics   []string      `json:"t,omitempty"`
	Seq      uint64        `json:"s,omitempty"`
}

// Draft returns the text of a chapter as a summary's.
func (c *Chapter) Draft() summary.Draft {
	return summary.Draft{Conversation: c.Text, Actions: c.Actions, Findings: c.Findings, Topics: c.Topics}
}

func (r reducer) insight(_ *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.InsightWritten)
	if p.Task != summary.TaskSession {
		return nil
	}
	i := &Insight{Chars: p.Chars, Turns: p.Turns}
	var texts []string
	_ = json.Unmarshal(p.Answer["main_topic"], &i.Topic) // members with another form are left out
	i.Topic = plain.Clip(plain.Flat(i.Topic), maxTopic)
	if json.Unmarshal(p.Answer["key_findings"], &texts) == nil {
		i.Findings = lines(texts, maxFindings, maxLesson)
	}
	texts = nil
	if json.Unmarshal(p.Answer["action_items"], &texts) == nil {
		i.Items = lines(texts, maxItems, maxItem)
	}
	return &Change{Insight: i}
}

// lines puts up to most texts on one line each, clipped, and leaves out empty ones.
func lines(texts []string, most, length int) (list []string) {
	for _, text := range texts {
		if text = plain.Clip(plain.Flat(text), length); text != "" && len(list) < most {
			list = append(list, text)
		}
	}
	return list
}

func (r reducer) chapter(d *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.StoryWritten)
	if !strings.HasPrefix(e.Conversation().ID, events.StoryPrefix) || d.Chapter != nil {
		return nil // nobody would find it there; the first chapter stays
	}
	c := &Chapter{
		Project: Name(p.Project), Level: p.Level, Told: p.Told, Children: p.Children, Began: plain.Speaker(p.Began), Ended: plain.Speaker(p.Ended),
		Text: plain.Clip(strings.TrimSpace(plain.Text(p.Conversation)), summary.MaxText), Actions: plain.Clip(plain.Flat(p.Actions), maxSummary),
		Findings: lines(p.Findings, maxFindings, maxLesson), Topics: lines(p.Topics, maxFindings, maxItem),
	}
	for _, name := range p.Names {
		c.Names = append(c.Names, Name(name))
	}
	return &Change{Chapter: c}
}

// chapterMembers are the entries of a chapter: in the list of its project, and for each conversation that it covers.
func chapterMembers(s *State, c *Chapter, seq uint64) (list []projection.Of[State, Member]) {
	// Which chapters it consolidates, so that a reader knows the frontier without reading every chapter.
	words := strconv.Itoa(c.Level) + " " + strings.Join(c.Children, " ")
	list = append(list, projection.RowOf(s, Member{Kind: KindStory, Name: c.Project, Seq: seq, Conversation: s.ID, Words: strings.TrimSpace(words)}))
	known := map[string]bool{}
	for _, t := range c.Told {
		if !known[t.ID] {
			known[t.ID] = true
			list = append(list, projection.RowOf(s, Member{Kind: KindTold, Name: t.ID, Seq: seq, Conversation: s.ID}))
		}
	}
	return list
}

// ChapterID returns the id of a chapter's conversation. It depends on what the chapter covers, and on how often the
// chapter was deleted before, so writing the same chapter again gives an event with the same identity.
func ChapterID(project string, level int, told []events.Told, children []string, deleted int) string {
	parts := []string{project, strconv.Itoa(level), strconv.Itoa(deleted)}
	for _, t := range told {
		parts = append(parts, t.ID, strconv.Itoa(t.Chars))
	}
	sum := events.DigestOf(append(parts, children...)...)
	return events.StoryPrefix + hex.EncodeToString(sum[:10])
}

// Written is a chapter and the conversation that holds it.
type Written struct {
	ID string
	*Chapter
}

// Limits of what is read of a story at once.
const (
	maxEntriesOfStory = 256 // newest entries, to find the frontier
	maxShown          = 4   // chapters
)

// Frontier reads the chapters of a project's story that no higher one consolidates, the highest level first and then the
// newest, at most four. It leaves out those that cover a deleted conversation, or of one that belonged to a project
// whose name is no longer the project's.
func Frontier(ctx context.Context, r Reader, p Project) ([]Written, error) {
	entries, err := r.Members(ctx, p.Tenant, MemberQuery{Kind: KindStory, Names: p.Names, AsOf: p.asOf, Limit: maxEntriesOfStory})
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	consolidated := map[string]bool{}
	levels := map[events.ConversationID]int{}
	for _, e := range entries {
		list := strings.Fields(e.Words)
		levels[e.Conversation], _ = strconv.Atoi(list[0])
		for _, child := range list[1:] {
			consolidated[child] = true
		}
	}
	entries = slices.DeleteFunc(entries, func(e Member) bool { return consolidated[e.Conversation.ID] })
	slices.SortStableFunc(entries, func(a, b Member) int {
		return cmp.Or(cmp.Compare(levels[b.Conversation], levels[a.Conversation]), cmp.Compare(b.Seq, a.Seq))
	})
	entries = entries[:min(len(entries), maxShown)]
	list, err := chapters(ctx, r, p, entries)
	if err != nil {
		return nil, err
	}
	gone, err := told(ctx, r, p, list)
	return slices.DeleteFunc(list, func(c Written) bool { return !c.stands(p, gone) }), err
}

// chapters reads the chapters of entries, in their order.
func chapters(ctx context.Context, r Reader, p Project, entries []Member) (list []Written, err error) {
	ids := make([]events.ConversationID, len(entries))
	for i, e := range entries {
		ids[i] = e.Conversation
	}
	digests, err := r.Digests(ctx, ids, p.asOf)
	for i, d := range digests {
		if d != nil && d.Chapter != nil {
			list = append(list, Written{ids[i].ID, d.Chapter})
		}
	}
	return list, err
}

// told returns which of the conversations that chapters cover are deleted.
func told(ctx context.Context, r Reader, p Project, list []Written) (map[string]bool, error) {
	known := map[string]bool{}
	var ids []string
	for _, c := range list {
		for _, t := range c.Told {
			if !known[t.ID] {
				known[t.ID] = true
				ids = append(ids, t.ID)
			}
		}
	}
	return r.Deleted(ctx, p.Tenant, ids)
}

// tellsOf reports whether a chapter covers one of these conversations.
func (c *Chapter) tellsOf(ids map[string]bool) bool {
	return slices.ContainsFunc(c.Told, func(t events.Told) bool { return ids[t.ID] })
}

// stands reports whether a chapter may still be shown.
func (c *Chapter) stands(p Project, deleted map[string]bool) bool {
	return !c.tellsOf(deleted) && !slices.ContainsFunc(c.Names, func(name string) bool { return !slices.Contains(p.Names, name) })
}

// Plan is a chapter that is due, or chapters that must go.
type Plan struct {
	Withdrawn []string // conversations of chapters that cover a deleted session, or of the same as another chapter
	Level     int      // 0 if no chapter is due
	Names     []string
	Told      []events.Told
	Children  []string
	Texts     []summary.Draft // of sessions or chapters, oldest first
	Chars     int             // of Texts
	Began     string
	Ended     string
}

// Due reads what is due of a project's story. threshold is in characters of the texts that a chapter is written from.
func Due(ctx context.Context, r Reader, p Project, threshold int) (Plan, error) {
	entries, err := r.Members(ctx, p.Tenant, MemberQuery{Kind: KindStory, Names: p.Names, AsOf: p.asOf, Limit: MaxEntries})
	if err != nil {
		return Plan{}, err
	}
	slices.Reverse(entries) // if two chapters cover the same session, the first one counts
	list, err := chapters(ctx, r, p, entries)
	if err != nil {
		return Plan{}, err
	}
	gone, err := told(ctx, r, p, list)
	if err != nil {
		return Plan{}, err
	}
	sessions, err := analysed(ctx, r, p)
	if err != nil {
		return Plan{}, err
	}
	return due(p, list, gone, sessions, threshold), nil
}

// analysed reads the sessions of a project that have an insight, in the order of their insights.
func analysed(ctx context.Context, r Reader, p Project) (list []Session, err error) {
	ids, err := Entered(ctx, r, p)
	if err != nil {
		return nil, err
	}
	for batch := range slices.Chunk(ids[:min(len(ids), MaxEntries)], MaxSessions) {
		of := make([]events.ConversationID, len(batch))
		for i, id := range batch {
			of[i] = events.ConversationID{Tenant: p.Tenant, ID: id}
		}
		digests, err := r.Digests(ctx, of, p.asOf)
		if err != nil {
			return nil, err
		}
		for i, d := range digests {
			if d != nil && d.Insight != nil && slices.Contains(p.Names, d.Place.Name) {
				list = append(list, Session{ID: of[i], Digest: d})
			}
		}
	}
	slices.SortFunc(list, func(a, b Session) int { return cmp.Compare(a.Insight.Seq, b.Insight.Seq) })
	return list, nil
}

// due plans from the chapters of a project, in the order in which they were written.
func due(p Project, list []Written, deleted map[string]bool, sessions []Session, threshold int) (plan Plan) {
	told := map[events.Told]bool{}
	consolidated := map[string]bool{}
	open := map[int][]Written{}
	top := 0
	for _, c := range list {
		twice := c.Level == 1 && slices.ContainsFunc(c.Told, func(t events.Told) bool { return told[t] }) ||
			slices.ContainsFunc(c.Children, func(id string) bool { return consolidated[id] })
		switch {
		case c.tellsOf(deleted) || c.stands(p, deleted) && twice:
			plan.Withdrawn = append(plan.Withdrawn, c.ID)
			continue
		case !c.stands(p, deleted):
			continue // of a withdrawn alias; the chapter counts again if the alias comes back
		}
		for _, t := range c.Told {
			if c.Level == 1 {
				told[t] = true
			}
		}
		for _, id := range c.Children {
			consolidated[id] = true
		}
		open[c.Level] = append(open[c.Level], c)
		top = max(top, c.Level)
	}
	if len(plan.Withdrawn) > 0 {
		return plan
	}
	for level := top; level > 0; level-- {
		rest := slices.DeleteFunc(open[level], func(c Written) bool { return consolidated[c.ID] })
		if plan = consolidate(rest, threshold); plan.Level > 0 {
			return plan
		}
	}
	for _, s := range sessions {
		t := events.Told{ID: s.ID.ID, Chars: s.Insight.Chars}
		if told[t] {
			continue
		}
		plan.add(draftOf(&s), s.Began, s.Ended, []string{s.Place.Name})
		if plan.Told = append(plan.Told, t); plan.Chars >= threshold || len(plan.Told) == events.MaxTold {
			plan.Level = 1
			return plan
		}
	}
	return Plan{}
}

// consolidate plans a chapter of the next level from at least two, except the last one, which the next sessions
// continue.
func consolidate(rest []Written, threshold int) (plan Plan) {
	for _, c := range rest[:max(0, len(rest)-1)] {
		if len(plan.Told)+len(c.Told) > events.MaxTold {
			if len(plan.Children) > 1 {
				plan.Level = c.Level + 1
				return plan
			}
			plan = Plan{} // it covers too many to be consolidated
		}
		plan.add(c.Draft(), c.Began, c.Ended, c.Names)
		plan.Told, plan.Children = append(plan.Told, c.Told...), append(plan.Children, c.ID)
		if len(plan.Children) > 1 && plan.Chars >= threshold {
			plan.Level = c.Level + 1
			return plan
		}
	}
	return Plan{}
}

func (p *Plan) add(d summary.Draft, began, ended string, names []string) {
	p.Texts = append(p.Texts, d)
	p.Chars += Chars(d)
	if p.Began == "" || began != "" && began < p.Began { // RFC 3339 in UTC
		p.Began = began
	}
	p.Ended = max(p.Ended, ended)
	p.Names = append(p.Names, names...)
	slices.Sort(p.Names)
	p.Names = slices.Compact(p.Names)
}

// Chars counts the characters of a draft's texts.
func Chars(d summary.Draft) int {
	n := utf8.RuneCountInString(d.Conversation) + utf8.RuneCountInString(d.Actions)
	for _, text := range slices.Concat(d.Findings, d.Topics) {
		n += utf8.RuneCountInString(text)
	}
	return n
}

// draftOf returns the text of a session that a chapter is written from.
func draftOf(s *Session) summary.Draft {
	d := summary.Draft{Findings: s.Insight.Findings}
	texts := []string{s.Insight.Topic}
	if s.First != nil {
		texts = append(texts, "Asked: "+plain.Flat(s.First.Text))
	}
	switch {
	case s.Summary != nil && s.Summary.ByModel:
		texts = append(texts, s.Summary.Text)
	case s.Answer != nil:
		texts = append(texts, "Ended: "+plain.Flat(s.Answer.Text))
	}
	if len(s.Insight.Items) > 0 {
		texts = append(texts, "Left to do: "+strings.Join(s.Insight.Items, "; "))
	}
	d.Conversation = strings.Join(texts, "\n")
	return d
}

// Telling lists the chapters that cover a conversation, on all levels, in the order of their ids.
func Telling(ctx context.Context, r Reader, id events.ConversationID, asOf uint64) (list []string, err error) {
	entries, err := r.Members(ctx, id.Tenant, MemberQuery{Kind: KindTold, Names: []string{id.ID}, AsOf: asOf, Limit: MaxEntries})
	for _, e := range entries {
		list = append(list, e.Conversation.ID)
	}
	slices.Sort(list)
	return list, err
}
