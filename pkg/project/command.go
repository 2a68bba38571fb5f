package project

import (
	"path"
	"regexp"
	"strings"

	"mneme.dev/mneme/pkg/files"
)

// looks are programs that only look around, move things or print: that they were run says nothing about how to work in
// a project.
var looks = words(`[ alias awk base64 basename cat cd chmod clear column comm cp cut date df diff dirname du echo env exit export
	expr false file find grep egrep fgrep head hexdump history id jq kill la less ln ls md5 mkdir more mv od open pgrep pkill popd printf ps
	pushd pwd read readlink realpath rev rg rm rmdir sed seq set sha256sum shasum sleep sort source stat strings tac tail tee test time touch
	tr trap tree true type uname uniq unset until wait wc which whoami xargs xxd yes`)

// inTwo are programs whose first argument names what they do, and whose further arguments differ each time.
var inTwo = words("git gh hg svn jj linear")

// narrowing are flags that pick single tests or say how much to print. A command is the same without them.
var (
	narrowing     = words("-v --verbose --no-cache -q --quiet --silent -failfast --no-color")
	narrowingNext = words("-run -k --grep --testNamePattern --filter -count -timeout --timeout --test-name-pattern")
)

// otherwise are flags that mean something else to a program: make -k goes on after an error, docker -v mounts a folder,
// and pnpm --filter names a package.
var otherwise = map[string]map[string]bool{
	"bazel": words("-k"), "curl": words("-k"), "gmake": words("-k"), "make": words("-k"),
	"docker": words("-v --filter"), "podman": words("-v --filter"),
	"bun": words("--filter"), "pnpm": words("--filter"), "turbo": words("--filter"),
}

// Flags that stand between a program and what it is to do, as in npm --prefix web test. The first ones have a value.
var (
	beforeNext = words("-C --cwd --dir --directory --filter --manifest-path --prefix --workspace")
	before     = words("-k -s -B --keep-going --silent --offline --locked")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// maxCommand is the longest normalised command in bytes.
const maxCommand = 160

// Command returns a command in the form in which runs are compared, "" if it is not worth remembering:
// without what picks single tests, with paths as seen from the conversation's folder.
func Command(ran files.Ran, place Place) string {
	if len(ran.Words) == 0 {
		return ""
	}
	program := path.Base(ran.Words[0])
	if looks[program] || !plainProgram.MatchString(program) {
		return ""
	}
	list := []string{place.shorten(ran.Words[0])}
	for i := 1; i < len(ran.Words); i++ {
		w := ran.Words[i]
		if inTwo[program] {
			if !strings.HasPrefix(w, "-") && word.MatchString(w) {
				list = append(list, w)
				break
			}
			continue
		}
		flag, _, has := strings.Cut(w, "=")
		switch {
		case otherwise[program][flag]:
			list = append(list, place.shorten(w))
		case narrowing[flag]:
		case narrowingNext[flag]:
			if !has {
				i++
			}
		default:
			list = append(list, place.shorten(w))
		}
	}
	if n := len(list); n > 1 && list[n-1] == "--" { // what it separates was left out
		list = list[:n-1]
	}
	// The folder of a file in it: the top of a worktree is not a folder of its own.
	if dir := path.Dir(place.Relative(path.Join(ran.Dir, "file"))); dir != "." && dir != path.Clean(ran.Dir) && !strings.HasPrefix(dir, "..") {
		list = append([]string{"cd", dir, "&&"}, list...)
	}
	text := strings.Join(list, " ")
	if len(text) > maxCommand {
		return ""
	}
	return text
}

var (
	plainProgram = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.+-]*$`)
	word         = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// shorten makes a path in a word relative to the conversation's folder.
func (p Place) shorten(w string) string {
	bare := strings.Trim(w, `"'`)
	if bare == p.Folder && bare != "" {
		return "."
	}
	if short := p.Relative(bare); absolute(bare) && short != bare {
		return "./" + short
	}
	return w
}

// Anywhere reports whether a command is the same in every project, such as git status: it says little about this one.
func Anywhere(command string) bool {
	program, _, _ := strings.Cut(command, " ")
	return inTwo[program]
}

// family names what a command does: its program and, if it has one, its subcommand. Commands of one family that fail
// and then succeed count as one attempt.
func family(command string) string {
	list := strings.Fields(command)
	if len(list) > 3 && list[0] == "cd" {
		list = list[3:]
	}
	if len(list) > 1 {
		list = append(list[:1], skipFlags(list[1:])...)
	}
	if len(list) > 2 && word.MatchString(list[1]) && (list[1] == "run" || list[1] == "exec") {
		what := list[2:]
		for len(what) > 1 && strings.HasPrefix(what[0], "-") {
			what = what[1:]
		}
		return strings.Join(append(list[:2], what[0]), " ")
	}
	return strings.Join(list[:min(2, len(list))], " ")
}

// skipFlags leaves out the flags before what a program is to do, and the toolchain of cargo +nightly test.
func skipFlags(list []string) []string {
	for len(list) > 0 {
		flag, _, has := strings.Cut(list[0], "=")
		switch {
		case beforeNext[flag] && !has && len(list) > 1:
			list = list[2:]
		case beforeNext[flag], before[flag], strings.HasPrefix(flag, "+"), parallel.MatchString(flag):
			list = list[1:]
		default:
			return list
		}
	}
	return list
}

// parallel matches how many jobs make runs at once, also in two words.
var parallel = regexp.MustCompile(`^(-j[0-9]*|[0-9]+)$`)
