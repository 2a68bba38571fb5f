package project

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	json "github.com/go-json-experiment/json/v1"

	"mneme.dev/mneme/pkg/plain"
)

// planners are the tools that keep a todo list, in lower case and without underscores.
var planners = []string{
	"todowrite", "taskcreate", "taskupdate", // Claude Code, opencode, Qwen Code
	"updateplan",     // Codex
	"writetodos",     // Gemini CLI
	"todolist",       // Kimi Code
	"todos",          // Crush
	"tasktracker",    // OpenHands
	"updatetodolist", // Roo Code, Kilo Code
	"managetodolist", // Copilot in VS Code
}

// taskProgress is the argument of any tool of Cline that holds the todo list.
var taskProgress = []byte(`"task_progress"`)

// todo is an item in the arguments of a call.
type todo struct {
	Content     string `json:"content"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Step        string `json:"step"`
	Status      string `json:"status"`
}

// todos is a list in the arguments of a call, or the same as Markdown.
type todos []todo

var checkbox = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])?\s*\[([ xX~-])\]\s+(.*\S)`)

func (l *todos) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' {
		return json.Unmarshal(raw, (*[]todo)(l))
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	for line := range strings.SplitSeq(text, "\n") {
		if m := checkbox.FindStringSubmatch(line); m != nil {
			status := "in_progress"
			switch m[1] {
			case " ":
				status = "pending"
			case "x", "X":
				status = "completed"
			}
			*l = append(*l, todo{Content: m[2], Status: status})
		}
	}
	return nil
}

// plan reads the todo list of tools that keep one.
func (c *Called) plan(tool string, arguments []byte) {
	if bytes.Contains(arguments, taskProgress) {
		var args struct {
			List todos `json:"task_progress"`
		}
		if json.Unmarshal(arguments, &args) == nil && args.List != nil {
			c.replace(args.List)
			return
		}
	}
	if !slices.Contains(planners, strings.ToLower(strings.ReplaceAll(tool, "_", ""))) {
		return
	}
	var args struct {
		Todos     todos  `json:"todos"`
		Plan      todos  `json:"plan"`
		Tasks     todos  `json:"task_list"`
		List      todos  `json:"todoList"`
		Command   string `json:"command"`
		Operation string `json:"operation"`
		Subject   string `json:"subject"`
		TaskID    string `json:"taskId"`
		Status    string `json:"status"`
	}
	if json.Unmarshal(arguments, &args) != nil || args.Command == "view" || args.Operation == "read" {
		return
	}
	for _, list := range []todos{args.Todos, args.Plan, args.Tasks, args.List} {
		if list != nil {
			c.replace(list)
			return
		}
	}
	switch {
	case args.TaskID != "":
		c.Todos = []Todo{{ID: plain.Speaker(args.TaskID), Text: plain.Clip(plain.Line(args.Subject), maxTodo), State: plain.Speaker(args.Status)}}
	case args.Subject != "":
		c.Task = plain.Clip(plain.Line(args.Subject), maxTodo)
	}
}

// replace makes a list the whole todo list.
func (c *Called) replace(list todos) {
	c.Whole = true
	for _, t := range list {
		text := plain.Clip(plain.Line(cmp.Or(t.Content, t.Title, t.Description, t.Step)), maxTodo)
		if text != "" && len(c.Todos) < maxTodos {
			c.Todos = append(c.Todos, Todo{Text: text, State: plain.Speaker(t.Status)})
		}
	}
}
