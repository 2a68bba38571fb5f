package files

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// lookers are programs that only read and print, whatever their operands are. git counts with the
// subcommands of gitLooks, find and fd without an option that runs or deletes, sed without -i.
var lookers = nameSet(`[ basename cat cd cmp column cut date df diff dirname du echo egrep exa eza false fd fdfind fgrep file find
	git grep head hexdump id jq less ls md5sum more nl od printf ps pwd readlink realpath rg ripgrep sed sha1sum sha256sum sleep sort
	stat strings tac tail test tree true type uname uniq wc whereis which whoami xxd`)

var gitLooks = nameSet("blame diff grep log ls-files rev-parse shortlog show status")

func nameSet(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// Looks reports whether a call certainly changes nothing: it only reads, searches or lists files.
// It is false for a tool that the table does not know, and for a shell command that is not obvious.
func (t *Table) Looks(c Call) bool {
	r, known := t.rule(c.Tool)
	if !known || len(r.Patch) > 0 {
		return false
	}
	args := decode(c.Arguments)
	if len(r.Shell) == 0 {
		kind := r.Kind
		if r.Verb != "" {
			kind = r.Verbs[args.text(r.Verb)]
		}
		return kind != "" && kind != KindWrite
	}
	commands := r.commands(args)
	return len(commands) > 0 && !slices.ContainsFunc(commands, func(words []string) bool {
		return len(words) > 1 || strings.TrimSpace(words[0]) == "" || !onlyLooks(words[0])
	})
}

func onlyLooks(script string) bool {
	file := parse(script)
	if file == nil {
		return false
	}
	looks := true
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CallExpr:
			looks = looks && looker(withoutPrefix(parsedWords(n.Args)))
		case *syntax.Redirect:
			switch n.Op {
			case syntax.RdrIn, syntax.DplIn, syntax.DplOut, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			default:
				looks = looks && n.Word.Lit() == "/dev/null"
			}
		case *syntax.FuncDecl, *syntax.CoprocClause:
			looks = false
		}
		return looks
	})
	return looks
}

// looker reports whether a simple command only looks. A mere assignment, which has no words, does.
func looker(words []word) bool {
	if len(words) == 0 {
		return true
	}
	name := path.Base(words[0].text)
	if !words[0].literal || !lookers[name] {
		return false
	}
	for _, w := range words[1:] {
		switch name {
		case "find":
			if strings.HasPrefix(w.text, "-exec") || strings.HasPrefix(w.text, "-ok") || strings.HasPrefix(w.text, "-f") && w.text != "-follow" || w.text == "-delete" {
				return false
			}
		case "fd", "fdfind":
			if strings.EqualFold(w.text, "-x") || strings.HasPrefix(w.text, "--exec") {
				return false
			}
		case "sed":
			if strings.HasPrefix(w.text, "-i") || strings.HasPrefix(w.text, "--in-place") {
				return false
			}
		case "sort":
			if strings.HasPrefix(w.text, "-o") || strings.HasPrefix(w.text, "--output") {
				return false
			}
		case "git":
			if strings.HasPrefix(w.text, "-") {
				continue
			}
			return gitLooks[w.text]
		}
	}
	return true
}

// Shell reports whether a tool runs shell commands.
func (t *Table) Shell(tool string) bool {
	r, known := t.rule(tool)
	return known && len(r.Shell) > 0
}
