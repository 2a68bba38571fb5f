package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/projects"
)

// ProjectsForgetCmd withdraws a line of what was learnt in a project.
type ProjectsForgetCmd struct {
	projectArg
	Line   string `arg:"" help:"A part of the line as the context shows it, which no other line has, or the sequence of the event that taught it."`
	Query  string `help:"Also look for it in older conversations that fit these words." placeholder:"TEXT"`
	Reason string `help:"The reason, kept in the log."`
	Yes    bool   `short:"y" help:"Do not ask for confirmation. Required without a terminal."`
}

func (*ProjectsForgetCmd) Help() string {
	return `Contexts of the project no longer show the line under What Was Learnt; those as of an earlier sequence still do. If the event that taught it taught other lines too, they go with it: they are shown before you confirm. The log keeps the event, and search still finds it; mneme erase removes the events of a whole conversation. To undo it, record the line again, for example as a note.

Examples:

    mneme projects forget . "releases happen on Tuesdays"
    mneme projects forget . "notes:shop, turn 6" --reason "moved to Thursdays"
    mneme projects forget . 4711 --yes`
}

// Run withdraws it after confirmation.
func (c *ProjectsForgetCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if strings.TrimSpace(c.Line) == "" {
		return usageError("<line> is empty, and every line has that: give a part of the line that no other one has")
	}
	path, err := c.path("")
	if err != nil {
		return err
	}
	var made window.Context
	if err := api.get(ctx, path+"/context", parameters{"format": "json", "max_chars": window.MaxMaxChars, "query": c.Query}, &made); err != nil {
		return unknownProject(err, c.Project, pastFlags{})
	}
	seq, lines, err := c.find(&made)
	if err != nil {
		return err
	}
	for _, line := range lines {
		t.say("%s", line)
	}
	if !c.Yes {
		question := "Forget this line?"
		if len(lines) == 0 {
			question = fmt.Sprintf("Forget what the event at sequence %d taught?", seq)
		} else if len(lines) > 1 {
			question = fmt.Sprintf("Forget these %s, which one event taught?", counted(len(lines), "line"))
		}
		if err := confirm(ctx, t, question, "forget "+c.Line, "nothing was forgotten"); err != nil {
			return err
		}
	}
	return g.change(ctx, t, http.MethodDelete, path+"/lessons/"+strconv.FormatUint(seq, 10), "forgotten: stored in", parameters{"reason": c.Reason}, nil)
}

// find returns the sequence of the event that taught the line, and all that it taught.
func (c *ProjectsForgetCmd) find(made *window.Context) (seq uint64, lines []string, err error) {
	var items []window.Item
	for _, s := range made.Sections {
		if s.Name == projects.SectionLearnt {
			items = s.Items
		}
	}
	seq, notNumber := strconv.ParseUint(c.Line, 10, 63)
	if notNumber != nil {
		part := folded(c.Line)
		var found []window.Item
		for _, it := range items {
			if strings.Contains(folded(it.Label+": "+it.Text), part) {
				found = append(found, it)
			}
		}
		switch {
		case len(found) == 0:
			return 0, nil, fmt.Errorf("no line of What Was Learnt has %q, so nothing was forgotten: mneme context --project shows the lines; --query looks for one in older conversations", c.Line)
		case slices.ContainsFunc(found, func(it window.Item) bool { return it.Seq != found[0].Seq }):
			list := make([]string, len(found))
			for i, it := range found {
				list[i] = fmt.Sprintf("%d  %s: %s", it.Seq, it.Label, it.Text)
			}
			return 0, nil, fmt.Errorf("%s have %q, so nothing was forgotten: name the right one by its sequence\n%s", counted(len(found), "line"), c.Line, strings.Join(list, "\n"))
		}
		seq = found[0].Seq
	}
	for _, it := range items {
		if it.Seq == seq {
			lines = append(lines, it.Label+": "+it.Text)
		}
	}
	return seq, lines, nil
}

// folded returns a text in lower case, with single spaces.
func folded(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
