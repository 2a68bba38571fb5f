package mcp

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
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
	Note    string  `json:"note"`
	Touches []touch `json:"touches"`
	More    bool    `json:"more"`
}

// kindMention is the kind of a touch that only spoke of the code.
const kindMention = "mention"

// maxAbout is how many conversations about a piece of code are looked at.
const maxAbout = 100

const touchPath = 200

func (c *call) history(ctx context.Context, in historyArguments) (answer, error) {
	switch {
	case in.Path == "" && in.Symbol == "":
		return answer{}, refuse("path or symbol is missing: the code that conversations are about")
	case in.Path == "" && in.Line != 0:
		return answer{}, refuse("path is missing: line is one of a file")
	case in.Path != "" && graph.CodeBase(in.Path) == "":
		return answer{}, refuse("path is not the path of a file")
	case in.Project == everything && c.grant != nil && c.grant.Project != "":
		return answer{}, refuse("the token is of the project %q and of no other: leave the argument project out", c.grant.Project)
	}
	out := history{Project: everything, Note: note, Touches: []touch{}}
	g, _, err := c.pins.Graph(ctx)
	if err != nil {
		return answer{}, err
	}
	f, _, err := c.pins.Files(ctx)
	if err != nil {
		return answer{}, err
	}
	all := in.Project == everything
	limit := in.Limit
	if !all {
		limit = maxAbout
	}
	leave, err := c.Views.Enter(ctx, c.tenant)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	list, more, err := graph.ConversationsAbout(ctx, g, f, c.tenant, graph.CodeQuery{File: in.Path, Line: in.Line, Name: in.Symbol, Limit: limit})
	if err != nil {
		return answer{}, err
	}
	if !all {
		p, err := c.find(ctx, in.Project, graph.Latest)
		if err != nil {
			return answer{}, err
		}
		out.Project = plain.Clip(plain.Line(p.Name), headProject)
		ids := make([]events.ConversationID, len(list))
		for i := range list {
			ids[i] = list[i].Conversation.ID
		}
		in, err := c.among(ctx, p, ids)
		if err != nil {
			return answer{}, err
		}
		kept := list[:0]
		for i := range list {
			if in[i] {
				kept = append(kept, list[i])
			}
		}
		list = kept
	}
	touches := touchesOf(list)
	shown, err := fit(historyChars-frameRoom, touches[:min(in.Limit, len(touches))], func(rows []touch) any { out.Touches = rows; return out })
	if err != nil {
		return answer{}, err
	}
	out.Touches, out.More = touches[:shown], more || shown < len(touches)
	return answer{value: out}, nil
}

// touchesOf lists what conversations did with a piece of code, the newest conversation first.
func touchesOf(list []graph.AboutCode) []touch {
	touches := []touch{}
	for i := range list {
		about := &list[i]
		of := touch{Conversation: about.Conversation.ID.ID, Title: plain.Clip(plain.Line(about.Title), hitTitle), Time: about.UpdatedAt}
		for _, a := range about.Accesses {
			t := of
			t.Ref, t.Path, t.Kind, t.Count = refTo(of.Conversation, a.Seq), plain.Clip(plain.Line(a.Path), touchPath), a.Kind, a.Count
			touches = append(touches, t)
		}
		if len(about.References) > 0 {
			newest := about.References[0]
			t := of
			t.Ref, t.Path, t.Kind, t.Count = refTo(of.Conversation, newest.Seq), plain.Clip(plain.Line(newest.File), touchPath), kindMention, len(about.References)
			touches = append(touches, t)
		}
	}
	return touches
}
