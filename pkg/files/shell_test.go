package files

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func inShell(script string) string {
	var found collection
	shell{found: &found}.run("/w", []string{script})
	return strings.Join(show(found.list), ", ")
}

type script struct{ script, want string }

func check(t *testing.T, scripts []script) {
	t.Helper()
	for _, c := range scripts {
		t.Run(c.script, func(t *testing.T) { assert.Equal(t, c.want, inShell(c.script)) })
	}
}

func TestCommandsReadTheirOperands(t *testing.T) {
	check(t, []script{
		{"cat a b", "read /w/a, read /w/b"},
		{"cat -- -a", "read /w/-a"},
		{"cat 'a b' \"c\"\\ d", "read /w/a b, read /w/c d"},
		{"head -n 5 a", "read /w/a"},
		{"head -20 a | tail -n5", "read /w/a"},
		{"tail +5 a", "read /w/a"},
		{"sed -n '1,5p' a", "read /w/a"},
		{"sed -ne '1,5p' a", "read /w/a"},
		{"awk -F: '{print $1}' a", "read /w/a"},
		{"jq -r .x a.json", "read /w/a.json"},
		{"sort -t , -k 2 a", "read /w/a"},
		{"diff -u a b", "read /w/a, read /w/b"},
		{"sudo cat a", "read /w/a"},
		{"timeout 5 cat a", "read /w/a"},
		{"LANG=C cat a", "read /w/a"},
		{"/bin/cat a", "read /w/a"},
		{"cat ~/a", "read ~/a"},
		{"cat", ""},
		{"cat -", ""},
		{"python a.py", ""},
		{"rm a", ""},
	})
}

func TestCommandsAndRedirectionsWrite(t *testing.T) {
	check(t, []script{
		{"echo x > a", "write /w/a"},
		{"echo x >> a 2>&1", "write /w/a"},
		{"make &> log", "write /w/log"},
		{"cat < a > b", "read /w/a, write /w/b"},
		{"cat > a <<'EOF'\ncat b\nEOF", "write /w/a"},
		{"x 2>/dev/null", ""},
		{"echo x | tee -a a b", "write /w/a, write /w/b"},
		{"touch -t 2001 a", "write /w/a"},
		{"sed -i 's/x/y/' a", "write /w/a"},
		{"sed -i '' 's/x/y/' a", "write /w/a"},
		{"sed -i.bak -e 's/x/y/' a", "write /w/a"},
		{"cp a b", "read /w/a, write /w/b"},
		{"cp a b dir", "read /w/a, write /w/dir/a, read /w/b, write /w/dir/b"},
		{"cp -r a b", ""},
		{"mv a b", "write /w/b"},
		{"mv a dir/", "write /w/dir/a"},
	})
}

func TestCommandsSearchAndList(t *testing.T) {
	check(t, []script{
		{"grep -rn pattern src", "search /w/src"},
		{"grep -A 3 -e p -e q a b", "search /w/a, search /w/b"},
		{"grep -nA3 p a", "search /w/a"},
		{"rg -n pattern", ""},
		{"rg -t py p src", "search /w/src"},
		{"rg --files src", "search /w/src"},
		{"find src test -name '*.go'", "search /w/src, search /w/test"},
		{"find . ! -name x", "search /w"},
		{"ls -la src", "list /w/src"},
		{"tree -L 2 src", "list /w/src"},
	})
}

func TestWorkingDirectoryIsTracked(t *testing.T) {
	check(t, []script{
		{"cd sub && cat a", "read /w/sub/a"},
		{"cd /x; cat a; cd ..; cat b", "read /x/a, read /b"},
		{"(cd sub && cat a); cat b", "read /w/sub/a, read /w/b"},
		{"cd sub | cat a", "read /w/a"},
		{"cd sub & cat a", "read /w/a"},
		{"cd && cat a", "read ~/a"},
		{"cd $DIR && cat a && cat /b", "read /b"},
		{"cd - && cat a", ""},
		{"cd $DIR; cd sub; cat a", ""},
		{"cd $DIR; cd /x; cat a", "read /x/a"},
		{"for i in 1 2; do cd sub; done; cat a", ""},
		{"bash -c 'cd sub; cat a'; cat b", "read /w/sub/a, read /w/b"},
	})
}

func TestUncertainAccessesAreLeftOut(t *testing.T) {
	check(t, []script{
		{"cat $FILE a", "read /w/a"},
		{"cat *.go a?.go [ab].go {a,b}.go", ""},
		{"cat '*.go'", "read /w/*.go"},
		{`cat \*.go`, "read /w/*.go"},
		{"cat $(find .)", ""},
		{"cat <(ls)", ""},
		{"grep $PATTERN a", "search /w/a"},
		{"cat a || cat b", "read /w/a"},
		{"if [ -f a ]; then cat a; fi", ""},
		{"if grep -q x a; then cat b; fi", "search /w/a"},
		{"f() { cat a; }", ""},
		{"while read -r l; do echo $l >> b; done < a", "write /w/b, read /w/a"},
		{"env -i cat a", ""},
		{"xargs cat a", ""},
		{"cat 'unfinished", ""},
		{"curl https://example.org/a > a", "write /w/a"},
	})
}

func TestPatchInAHereDocumentWritesItsFiles(t *testing.T) {
	patch := `*** Begin Patch
*** Update File: a.go
@@
-*** Add File: no.go
+x
*** Update File: old.go
*** Move to: new.go
*** Delete File: gone.go
*** Add File: b c.go
+y
*** End Patch`
	want := "write /w/sub/a.go, write /w/sub/new.go, write /w/sub/b c.go"
	assert.Equal(t, want, inShell("cd sub && apply_patch <<'PATCH'\n"+patch+"\nPATCH"))
	assert.Equal(t, want, inShell("cd sub && apply_patch '"+patch+"'"))
}

func TestTooDeepOrTooLongCommandsNameNoFile(t *testing.T) {
	for _, open := range []string{"(", "$(", "{ ", "((", "$((", "a["} {
		assert.Empty(t, inShell("cat a; "+strings.Repeat(open, MaxCommandBytes/len(open)-8)), open)
	}
	assert.Equal(t, "read /w/a", inShell("cat a; echo "+strings.Repeat("x", MaxCommandBytes/2)))
	assert.Empty(t, inShell("cat a; echo "+strings.Repeat("x", MaxCommandBytes)))
	nested := "cat a"
	for range 6 {
		nested = "bash -c " + "'" + strings.ReplaceAll(nested, "'", `'\''`) + "'"
	}
	assert.Empty(t, inShell(nested))
}
