package files

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shell walks a script and adds the obvious accesses of its commands. A copy of it is a
// subshell: it inherits the state and can't change the parent's.
type shell struct {
	found *collection
	dir   string // working directory, "" if it was never known
	lost  bool   // a cd led somewhere unknown, so relative paths no longer count
	depth int    // nesting of scripts in scripts
	trees scripts
}

const maxScriptDepth = 3

// run adds the accesses of a command. A single word is a script, several are a program and
// its arguments.
func (s shell) run(dir string, words []string) {
	s.dir = dir
	switch len(words) {
	case 0:
	case 1:
		s.script(words[0])
	default:
		s.call(literalWords(words), nil)
	}
}

func (s *shell) script(text string) {
	if s.depth == maxScriptDepth {
		return
	}
	if file := s.trees.parse(text); file != nil {
		s.depth++
		s.statements(file.Stmts)
		s.depth--
	}
}

func (s *shell) statements(list []*syntax.Stmt) {
	for _, st := range list {
		if s.found.full() {
			return
		}
		s.statement(st)
	}
}

// statement walks only what certainly runs once the script gets there: not the right side
// of ||, the branches of if and case, or the body of a function. A loop's body is assumed
// to run at least once.
func (s *shell) statement(st *syntax.Stmt) {
	if st.Background {
		s = new(*s)
	}
	switch cmd := st.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(parsedWords(cmd.Args), st.Redirs)
	case *syntax.BinaryCmd:
		switch cmd.Op {
		case syntax.AndStmt:
			s.statement(cmd.X)
			s.statement(cmd.Y)
		case syntax.OrStmt:
			s.statement(cmd.X)
		default: // each side of a pipe is a subshell
			s.inside(cmd.X)
			s.inside(cmd.Y)
		}
	case *syntax.Subshell:
		s.inside(cmd.Stmts...)
	case *syntax.Block:
		s.statements(cmd.Stmts)
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			s.statement(cmd.Stmt)
		}
	case *syntax.IfClause:
		s.statements(cmd.Cond)
	case *syntax.WhileClause:
		s.loop(slices.Concat(cmd.Cond, cmd.Do))
	case *syntax.ForClause:
		s.loop(cmd.Do)
	}
	s.redirects(st.Redirs)
}

// inside walks statements in a subshell.
func (s *shell) inside(list ...*syntax.Stmt) {
	inner := *s
	inner.statements(list)
}

// loop walks a body once. If the body contains a cd, the directory is unknown after it,
// because the number of rounds is.
func (s *shell) loop(body []*syntax.Stmt) {
	inner := *s
	inner.statements(body)
	if inner.dir != s.dir {
		s.lost = true
	}
	s.lost = s.lost || inner.lost
}

var redirectKinds = map[syntax.RedirOperator]Kind{
	syntax.RdrIn: KindRead, syntax.RdrInOut: KindWrite,
	syntax.RdrOut: KindWrite, syntax.AppOut: KindWrite, syntax.RdrClob: KindWrite, syntax.DplOut: KindWrite,
	syntax.RdrAll: KindWrite, syntax.AppAll: KindWrite,
}

func (s *shell) redirects(list []*syntax.Redirect) {
	for _, r := range list {
		w := parsedWord(r.Word)
		kind := redirectKinds[r.Op]
		if kind == "" || !w.literal || r.Op == syntax.DplOut && strings.Trim(w.text, "0123456789-") == "" {
			continue
		}
		s.add(w.text, kind)
	}
}

// add records a file that the script accesses, unless it is a device or its folder is
// unknown.
func (s *shell) add(p string, kind Kind) {
	if p == "" || p == "-" || strings.HasPrefix(p, "/dev/") || s.lost && !rooted(p) {
		return
	}
	s.found.add(s.dir, p, kind)
}

// call walks one simple command.
func (s *shell) call(words []word, redirects []*syntax.Redirect) {
	words = withoutPrefix(words)
	if len(words) == 0 || !words[0].literal {
		return
	}
	name := path.Base(words[0].text)
	args := words[1:]
	switch {
	case name == "cd" || name == "pushd":
		s.cd(args)
	case name == "popd":
		s.lost = true
	case scriptShells[name]:
		s.nested(args)
	case name == "apply_patch" || name == "applypatch":
		s.patch(args, redirects)
	case commandsByName[name] != nil:
		s.operands(commandsByName[name], args)
	}
}

// withoutPrefix removes sudo, env, timeout and the like. If they have options, the command
// is no longer obvious and nothing is left.
func withoutPrefix(words []word) []word {
	for len(words) > 0 && words[0].literal {
		skip, isPrefix := prefixCommands[words[0].text]
		if !isPrefix {
			break
		}
		words = words[min(1+skip, len(words)):]
		for len(words) > 0 && words[0].literal && strings.Contains(words[0].text, "=") { // env A=1
			words = words[1:]
		}
		if len(words) > 0 && strings.HasPrefix(words[0].text, "-") {
			return nil
		}
	}
	return words
}

func (s *shell) cd(args []word) {
	for len(args) > 0 && args[0].literal && (args[0].text == "--" || args[0].text == "-P" || args[0].text == "-L") {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		s.dir, s.lost = "~", false
	case len(args) > 1 || !args[0].literal || strings.HasPrefix(args[0].text, "-") || s.lost && !rooted(args[0].text):
		s.lost = true
	default:
		s.dir = join(s.dir, args[0].text)
		s.lost = s.dir == ""
	}
}

// nested walks the script of bash -c '…'.
func (s *shell) nested(args []word) {
	for i, a := range args {
		if !a.literal || !strings.HasPrefix(a.text, "-") {
			return
		}
		if !strings.HasPrefix(a.text, "--") && strings.HasSuffix(a.text, "c") {
			if i+1 < len(args) && args[i+1].literal {
				inner := *s
				inner.script(args[i+1].text)
			}
			return
		}
	}
}

func (s *shell) patch(args []word, redirects []*syntax.Redirect) {
	if s.lost {
		return
	}
	for _, a := range args {
		s.found.patched(s.dir, a.text)
	}
	for _, r := range redirects {
		s.found.patched(s.dir, hereText(r.Hdoc))
	}
}
