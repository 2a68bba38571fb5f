package files

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxRan is how many commands of one call [Table.Ran] returns; the rest is ignored.
const maxRan = 8

// maxRanBytes is the longest command that Ran returns: longer ones carry data, such as a script in an argument.
const maxRanBytes = 300

// maxRanWord is the longest word that Ran returns in bytes; "…" stands for a longer one, and for one of several lines.
const maxRanWord = 120

// Ran is a simple command of a shell script that a tool call ran.
type Ran struct {
	Words []string // as written, quotes included, without redirections and assignments before them
	Dir   string   // where it ran, "" if unknown
	// Decides reports that the script fails exactly if this command fails. It is false if the command's
	// exit status is lost, as in a pipe, or shared with other commands.
	Decides bool
}

// Ran lists the simple commands that a call runs in a shell, in order. For a pipe it lists the first command,
// because the others only show its output. Commands in branches, loops and functions are left out.
func (t *Table) Ran(c Call) []Ran {
	r, known := t.rule(c.Tool)
	if !known {
		return nil
	}
	return r.ran(c, decode(c.Arguments), nil)
}

func (r *Rule) ran(c Call, args arguments, trees scripts) []Ran {
	if len(r.Shell) == 0 {
		return nil
	}
	dir := r.folder(c, args)
	var w ranWalker
	commands := r.commands(args)
	for _, words := range commands {
		w.shell = shell{found: &collection{}, dir: dir, trees: trees}
		alone := len(commands) == 1
		switch {
		case len(words) == 1:
			w.script(words[0], alone)
		case len(words) > 2 && scriptShells[path.Base(words[0])] && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c"):
			w.script(words[2], alone)
		default:
			w.add(words, alone)
		}
	}
	return w.list
}

type ranWalker struct {
	shell
	list []Ran
}

// script walks a script. alone says that the call runs nothing else.
func (w *ranWalker) script(text string, alone bool) {
	file := w.trees.parse(text)
	if file == nil {
		return
	}
	for _, st := range file.Stmts {
		w.statement(st, alone && len(file.Stmts) == 1)
	}
}

// statement walks through what certainly runs. decides says whether the statement's status is the script's.
func (w *ranWalker) statement(st *syntax.Stmt, decides bool) {
	decides = decides && !st.Background && !st.Negated
	switch cmd := st.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(cmd, decides)
	case *syntax.BinaryCmd:
		switch cmd.Op {
		case syntax.AndStmt:
			moves := isCd(cmd.X)
			w.statement(cmd.X, false)
			w.statement(cmd.Y, decides && moves)
		default:
			w.statement(cmd.X, false)
		}
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			w.statement(cmd.Stmt, decides)
		}
	case *syntax.Subshell:
		inner := ranWalker{shell: w.shell, list: w.list}
		for _, s := range cmd.Stmts {
			inner.statement(s, decides && len(cmd.Stmts) == 1)
		}
		w.list = inner.list
	}
}

// isCd reports whether a statement only changes the directory, which rarely fails.
func isCd(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && call.Args[0].Lit() == "cd"
}

func (w *ranWalker) call(cmd *syntax.CallExpr, decides bool) {
	words := parsedWords(cmd.Args)
	if len(words) > 0 && words[0].literal && words[0].text == "cd" {
		w.cd(words[1:])
		return
	}
	without := withoutPrefix(words)
	args := cmd.Args[len(cmd.Args)-len(without):]
	var list []string
	printer := syntax.NewPrinter(syntax.SingleLine(true))
	for _, a := range args {
		var text strings.Builder
		if printer.Print(&text, a) != nil {
			return
		}
		word := text.String()
		if len(word) > maxRanWord || strings.ContainsAny(word, "\n\r\x00") {
			word = "…" // data, such as a message or a script
		}
		list = append(list, word)
	}
	w.add(list, decides)
}

func (w *ranWalker) add(words []string, decides bool) {
	n := 0
	for _, word := range words {
		if n += len(word) + 1; n > maxRanBytes || strings.ContainsAny(word, "\n\r\x00") {
			return
		}
	}
	if len(words) == 0 || len(w.list) == maxRan {
		return
	}
	r := Ran{Words: words, Decides: decides}
	if !w.lost {
		r.Dir = w.dir
	}
	w.list = append(w.list, r)
}
