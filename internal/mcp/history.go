package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
)

type historyArguments struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Symbol  string `json:"symbol"`
	Project string `json:"project"`
	Limit   int    `json:"limit"`
}

// touch says that a conversation read, changed or mentioned a piece of code.
type touch struct {
	Ref          string `json:"ref"`
	Conversation string `json:"conversation"`
	Title        string `json:"title,omitempty"`
	Time         string `json:"time,omitempty"` // of the conversation's newest event
	Path         string `json:"path,omitempty"`
	Kind         string `json:"kind"`
	Count        int    `json:"count"`
}

type history struct {
	Project string  `json:"project"`
	Touches []touch `json:"touches"`
	More    bool    `json:"more"`
	// Meant are the pieces of code that the arguments may mean, if there are several. Messages that name one of them
	// are found only if path and line say which.
	Meant []string `json:"meant,omitempty"`
}

// kindMention is the kind of a touch that only mentions the code.
const kindMention = "mention"

// maxAbout is how many conversations about a piece of code are examined.
const maxAbout = 100

const touchPath = 200

// mostMeant is how many pieces of code are shown if several may be meant.
const mostMeant = 5

func (c *call) history(ctx context.Context, in historyArguments) (answer, error) {
	switch {
	case in.Path == "" && in.Symbol == "":
		return answer{}, refuse("path or symbol is missing: the code that conversations are about")
	case in.Path == "" && in.Line != 0:
		return answer{}, refuse("path is missing: line is the number of a line in a file")
	case in.Path != "" && graph.CodeBase(in.Path) == "":
		return answer{}, refuse("path is not the path of a file")
	case in.Project == everything && c.grant != nil && c.grant.Project != "":
		return answer{}, refuse("the token is only for the project %q: leave the argument project out", c.grant.Project)
	}
	out := history{Project: everything, Touches: []touch{}}
	g, _, err := c.pins.Graph(ctx)
	if err != nil {
		return answer{}, err
	}
	f, _, err := c.pins.Files(ctx)
	if err != nil {
		return answer{}, err
	}
	all := in.Project == everything
	q := graph.CodeQuery{File: in.Path, Line: in.Line, Name: in.Symbol, Limit: in.Limit}
	var p project.Project
	if !all {
		if p, err = c.find(ctx, in.Project, graph.Latest); err != nil {
			return answer{}, err
		}
		out.Project, q.Limit = plain.Clip(plain.Line(p.Name), headProject), maxAbout
		if q.Only, err = c.entered(ctx, p); err != nil { // other projects have files of the same name
			return answer{}, err
		}
	}
	leave, err := c.Views.Enter(ctx, c.tenant)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	list, more, err := graph.ConversationsAbout(ctx, g, f, c.tenant, q)
	if err != nil {
		return answer{}, err
	}
	var named naming
	if !all {
		if list, err = ofProject(ctx, c, p, list, func(a *graph.AboutCode) events.ConversationID { return a.Conversation.ID }); err != nil {
			return answer{}, err
		}
		if named, err = c.namedIn(ctx, g, p, q.Only, in); err != nil {
			return answer{}, err
		}
		out.Meant = named.meant
	}
	touches := touchesOf(list, named)
	shown, err := fit(historyChars-frameRoom, touches[:min(in.Limit, len(touches))], func(rows []touch) any { out.Touches = rows; return out })
	if err != nil {
		return answer{}, err
	}
	out.Touches, out.More = touches[:shown], more || shown < len(touches)
	return answer{value: out}, nil
}

// naming are the conversations whose messages name a piece of indexed code.
type naming struct {
	path  string // of its file
	list  []codebase.About
	meant []string // pieces of code, if several may be meant: then the list is empty
}

// namedIn returns the conversations of a project whose messages name a piece of its code, because messages rarely
// declare their references. It needs an index of the code (mneme index), and arguments that mean exactly one piece. only are
// the conversations that entered the project.
func (c *call) namedIn(ctx context.Context, g graph.Reader, p project.Project, only []string, in historyArguments) (n naming, err error) {
	if c.Cache == nil || in.Symbol == "" && in.Line == 0 {
		return n, nil
	}
	r, m, err := c.pins.Code(ctx)
	if err != nil {
		return n, err
	}
	scopes, _, err := c.Cache.Scopes(ctx, r, m.Generation, p, view.ScopeQuery{Name: in.Symbol, File: in.Path, Line: in.Line})
	if err != nil || len(scopes) == 0 {
		return n, err
	}
	if len(scopes) > 1 {
		for _, s := range scopes[:min(len(scopes), mostMeant)] {
			n.meant = append(n.meant, plain.Clip(plain.Line(fmt.Sprintf("%s:%d %s", s.Path, s.Start, s.Name)), touchPath))
		}
		return n, nil
	}
	list, _, err := scopes[0].Index.Naming(scopes[0].Hit, graph.Latest).Conversations(ctx, g, c.tenant, graph.CandidateQuery{Only: only})
	if err != nil {
		return n, err
	}
	n.path = scopes[0].Path
	n.list, err = ofProject(ctx, c, p, list, func(a *codebase.About) events.ConversationID { return a.ID })
	return n, err
}

// touchesOf lists what conversations did with a piece of code, including which of them name it, newest first.
func touchesOf(list []graph.AboutCode, n naming) []touch {
	type touched struct {
		last    uint64 // sequence of the newest
		touches []touch
	}
	var all []touched
	add := func(c *graph.Conversation, accesses []graph.FileAccess, mentioned uint64, file string, mentions int) {
		of := touch{Conversation: c.ID.ID, Title: plain.Clip(plain.Line(c.Title), hitTitle), Time: c.UpdatedAt}
		one := touched{last: mentioned}
		for _, a := range accesses {
			t := of
			t.Ref, t.Path, t.Kind, t.Count = refTo(of.Conversation, a.Seq), plain.Clip(plain.Line(a.Path), touchPath), a.Kind, a.Count
			one.touches, one.last = append(one.touches, t), max(one.last, a.Seq)
		}
		if mentions > 0 {
			t := of
			t.Ref, t.Path, t.Kind, t.Count = refTo(of.Conversation, mentioned), plain.Clip(plain.Line(file), touchPath), kindMention, mentions
			one.touches = append(one.touches, t)
		}
		all = append(all, one)
	}
	for i := range list {
		about := &list[i]
		at := slices.IndexFunc(n.list, func(c codebase.About) bool { return c.ID == about.Conversation.ID })
		switch {
		case at >= 0: // these include the references
			add(&about.Conversation, about.Accesses, n.list[at].Mentions[0].Seq, n.path, len(n.list[at].Mentions))
			n.list = slices.Delete(n.list, at, at+1)
		case len(about.References) > 0:
			add(&about.Conversation, about.Accesses, about.References[0].Seq, about.References[0].File, len(about.References))
		default:
			add(&about.Conversation, about.Accesses, 0, "", 0)
		}
	}
	for i := range n.list {
		add(&n.list[i].Conversation, nil, n.list[i].Mentions[0].Seq, n.path, len(n.list[i].Mentions))
	}
	slices.SortStableFunc(all, func(a, b touched) int { return cmp.Compare(b.last, a.last) })
	touches := []touch{}
	for _, one := range all {
		touches = append(touches, one.touches...)
	}
	return touches
}
