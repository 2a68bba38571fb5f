package codeindex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/scopes"
)

// newLog is an empty log of one test.
func newLog(t *testing.T) *eventlog.Log {
	t.Helper()
	_, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{Partitions: 1})
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	return log
}

// recorder keeps what a log was given, as a read model would: an event that is known is dropped.
type recorder struct {
	*eventlog.Log
	sync.Mutex
	known  map[string]bool
	events []*events.Recorded
	fail   int // publishing fails when this is counted down to 1

	pending  string // the file of intents, and what it held when something was published last
	intended []byte
}

func (r *recorder) PublishAll(ctx context.Context, tenant string, list []events.Event) ([]eventlog.Ack, error) {
	r.Lock()
	defer r.Unlock()
	if r.fail > 0 {
		r.fail--
	}
	away := r.fail == 1
	r.intended, _ = os.ReadFile(r.pending)
	acks, err := r.Log.PublishAll(ctx, tenant, list)
	for i := range acks {
		if e := list[i]; !r.known[e.ID] {
			r.known[e.ID] = true
			made, err := events.Record(e)
			if err != nil {
				return acks, err
			}
			r.events = append(r.events, &made)
		}
	}
	if away { // after it has stored them
		return nil, errors.New("the server is away")
	}
	return acks, err
}

// index is what a reader of the events knows now: the texts of the scopes of each file.
func (r *recorder) index() map[string]string {
	out := map[string]string{}
	for _, e := range r.events {
		p, ok := e.Payload.(*events.CodeIndexed)
		if !ok {
			continue
		}
		if delete(out, p.Path); p.Removed {
			continue
		}
		for _, s := range p.Scopes {
			out[p.Path] += s.Text + "\n"
		}
	}
	return out
}

type bench struct {
	*recorder
	Options
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{recorder: &recorder{Log: newLog(t), known: map[string]bool{}}}
	defer func() { b.pending = intents(b.State) }()
	b.Options = Options{Root: t.TempDir(), Project: "p", Tenant: "t", Log: b.recorder, Redact: redact.Default(), State: filepath.Join(t.TempDir(), "state.json")}
	return b
}

// write writes a file as if it had been written long ago, so that an unchanged time means unchanged
// bytes.
func (b *bench) write(t require.TestingT, name, text string) {
	path := filepath.Join(b.Root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	clock++
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(clock, 0)))
}

var clock int64 = 1_000_000_000

func (b *bench) run(t require.TestingT) Report {
	r, err := Run(context.Background(), b.Options)
	require.NoError(t, err)
	return r
}

func goFile(name string) string { return "package a\n\nfunc " + name + "() {\n}\n" }

func TestAFolderIsIndexedOnceAndThenOnlyWhatHasChanged(t *testing.T) {
	b := setup(t)
	b.write(t, "a.go", goFile("A"))
	b.write(t, "sub/b.py", "def b():\n    pass\n")
	b.write(t, "image.png", "x")
	b.write(t, "node_modules/x/x.js", "function x() {}\n")
	first := b.run(t)
	require.Equal(t, []int{2, 2, 0, 2}, []int{first.Files, first.Indexed, first.Unchanged, first.Scopes})
	require.Equal(t, map[string]int{"unknown": 1}, first.Skipped)
	require.Equal(t, map[string]string{"a.go": "func A() {\n}\n", "sub/b.py": "def b():\n    pass\n"}, b.index())
	require.IsType(t, &events.CodeScanned{}, b.events[len(b.events)-1].Payload)
	require.Equal(t, "code:p", b.events[0].Subject)

	n := len(b.events)
	again := b.run(t)
	require.Equal(t, []int{2, 0}, []int{again.Unchanged, again.Indexed})
	require.Len(t, b.events, n, "nothing is published")

	b.write(t, "a.go", goFile("A")) // touched
	require.Equal(t, 2, b.run(t).Unchanged)
	require.Len(t, b.events, n)

	b.write(t, "a.go", goFile("Other"))
	require.NoError(t, os.Rename(filepath.Join(b.Root, "sub", "b.py"), filepath.Join(b.Root, "sub", "c.py")))
	r := b.run(t)
	require.Equal(t, []int{2, 1}, []int{r.Indexed, r.Removed})
	require.Equal(t, map[string]string{"a.go": "func Other() {\n}\n", "sub/c.py": "def b():\n    pass\n"}, b.index())

	b.write(t, "a.go", goFile("A"))
	b.run(t)
	require.Contains(t, b.index()["a.go"], "func A()", "a file that becomes what it was is published again")
}

func TestIgnoredFilesLinksAndOtherRepositoriesAreLeftOut(t *testing.T) {
	b := setup(t)
	b.write(t, ".gitignore", "/build/\n*.gen.go\n!keep.gen.go\n# a comment\n")
	b.write(t, "build/a.go", goFile("A"))
	b.write(t, "x.gen.go", goFile("X"))
	b.write(t, "keep.gen.go", goFile("Keep"))
	b.write(t, "sub/.gitignore", "local.go\n")
	b.write(t, "sub/local.go", goFile("Local"))
	b.write(t, "sub/build/b.go", goFile("B"))
	b.write(t, "local.go", goFile("Top"))
	b.write(t, "module/.git", "gitdir: elsewhere")
	b.write(t, "module/m.go", goFile("M"))
	b.write(t, ".git/info/exclude", "secret.go\n")
	b.write(t, "secret.go", goFile("Secret"))
	require.NoError(t, os.Symlink("..", filepath.Join(b.Root, "sub", "circle")))
	require.NoError(t, os.Symlink("local.go", filepath.Join(b.Root, "link.go")))
	r := b.run(t)
	require.Len(t, b.index(), 3)
	require.Contains(t, b.index(), "keep.gen.go")
	require.Contains(t, b.index(), "local.go")
	require.Contains(t, b.index(), "sub/build/b.go")
	require.Equal(t, 2, r.Skipped["link"])

	b.write(t, ".gitignore", "*.go\n")
	require.Equal(t, 3, b.run(t).Removed, "what is ignored from now on leaves the index")
	require.Empty(t, b.index())
}

func TestWhatTheUserIgnoresEverywhereIsLeftOutUnlessTheRepositorySaysOtherwise(t *testing.T) {
	b := setup(t)
	dotfiles := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dotfiles, "ignored"), []byte("*.local.go\nmine.go\nnotes.go\n"), 0o600))
	b.Ignores = filepath.Join(t.TempDir(), "ignore")
	require.NoError(t, os.Symlink(filepath.Join(dotfiles, "ignored"), b.Ignores))
	b.write(t, ".git/info/exclude", "!mine.go\n")
	b.write(t, ".gitignore", "!notes.go\n")
	for _, name := range []string{"env.local.go", "sub/env.local.go", "mine.go", "notes.go"} {
		b.write(t, name, goFile("F"))
	}
	b.run(t)
	require.Len(t, b.index(), 2)
	require.Contains(t, b.index(), "mine.go")
	require.Contains(t, b.index(), "notes.go")
}

func TestTheUsersIgnoredPathsAreWhereGitFindsThem(t *testing.T) {
	settings, root := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", settings)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(settings, "config"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	byDefault := filepath.Join(settings, "git", "ignore")
	require.Equal(t, byDefault, UserIgnores(t.Context(), root))

	require.NoError(t, os.WriteFile(filepath.Join(settings, "config"), []byte("[include]\n\tpath = more\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(settings, "more"), []byte("[core]\n\texcludesFile = "+filepath.Join(settings, "mine")+"\n"), 0o600))
	if _, err := exec.LookPath("git"); err == nil {
		require.Equal(t, filepath.Join(settings, "mine"), UserIgnores(t.Context(), root))
	} else {
		t.Log("git is not installed: not tested with it")
	}
	t.Setenv("PATH", "")
	require.Equal(t, byDefault, UserIgnores(t.Context(), root))
}

func TestWhereTheCaseOfNamesDoesNotCountPatternsMatchNamesInAnyCase(t *testing.T) {
	b := setup(t)
	b.write(t, ".gitignore", "/Build/\n*.Gen.go\nÄ.go\n")
	b.write(t, "sub/.gitignore", "!KEEP.gen.go\n[A-C].go\n")
	for _, name := range []string{"build/x.go", "a.gen.go", "ä.go", "sub/keep.GEN.go", "sub/b.go", "sub/d.go"} {
		b.write(t, name, goFile("F"))
	}
	b.run(t)
	require.Len(t, b.index(), 6)
	b.AnyCase = true
	b.run(t)
	require.ElementsMatch(t, []string{"ä.go", "sub/keep.GEN.go", "sub/d.go"}, slices.Collect(maps.Keys(b.index())))

	if _, err := exec.LookPath("git"); err != nil {
		t.Log("git is not installed: not tested with it")
		return
	}
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "config"))
	require.False(t, IgnoresCase(t.Context(), b.Root))
	require.NoError(t, os.WriteFile(os.Getenv("GIT_CONFIG_GLOBAL"), []byte("[core]\n\tignoreCase = yes\n"), 0o600))
	require.True(t, IgnoresCase(t.Context(), b.Root))
}

func TestALinkedWorktreeLeavesOutWhatItsRepositoryExcludes(t *testing.T) {
	for _, named := range []string{"../.git/worktrees/one", "absolute"} {
		b := setup(t)
		repository := b.Root
		if named == "absolute" {
			named = filepath.Join(repository, ".git/worktrees/one")
		}
		b.write(t, ".git/info/exclude", "secret.go\n")
		b.write(t, ".git/worktrees/one/commondir", "../..\n")
		b.write(t, "linked/.git", "gitdir: "+named+"\n")
		b.write(t, "linked/secret.go", goFile("Secret"))
		b.write(t, "linked/a.go", goFile("A"))
		b.Root = filepath.Join(repository, "linked")
		b.run(t)
		require.Len(t, b.index(), 1)
		require.Contains(t, b.index(), "a.go")
	}
}

func TestPartOfAProjectIsIndexedAlone(t *testing.T) {
	b := setup(t)
	b.write(t, ".gitignore", "z.go\n")
	b.write(t, "a.go", goFile("A"))
	b.write(t, "sub/b.go", goFile("B"))
	b.write(t, "sub/z.go", goFile("Z"))
	b.run(t)
	require.NoError(t, os.Remove(filepath.Join(b.Root, "a.go")))
	b.write(t, "sub/b.go", goFile("C"))
	b.Below = "sub"
	r := b.run(t)
	require.Equal(t, []int{1, 1, 0}, []int{r.Files, r.Indexed, r.Removed})
	require.Len(t, b.index(), 2, "a.go was not looked for")

	b.write(t, ".gitignore", "sub/\n")
	b.write(t, "sub/.gitignore", "!b.go\n")
	r = b.run(t)
	require.Equal(t, []int{0, 2, 1}, []int{r.Files, r.Skipped["ignored"], r.Removed}, "nothing in an ignored folder can be named again")
}

func TestUnreadableTextIsSkippedWithItsReason(t *testing.T) {
	b := setup(t)
	b.write(t, "a.go", "\x00\x01")
	b.write(t, "min.js", strings.Repeat("function a(){};", 500))
	b.write(t, "big.js", strings.Repeat("function a() {\n};\n", 20<<20/18))
	b.write(t, "empty.py", "\n")
	r := b.run(t)
	require.Equal(t, map[string]int{"binary": 1, "minified": 1, "large": 1, "empty": 1}, r.Skipped)
	require.Empty(t, b.index())
	again := b.run(t)
	require.Zero(t, again.Unchanged, "they are counted once")
	require.Equal(t, r.Skipped, again.Skipped)

	b.write(t, "a.go", goFile("A"))
	b.run(t)
	require.Len(t, b.index(), 1)
	b.write(t, "a.go", "\x00\x01")
	require.Equal(t, 1, b.run(t).Removed, "a file with nothing to find leaves the index")
	require.Empty(t, b.index())
	b.write(t, "a.go", goFile("A"))
	b.run(t)
	require.Len(t, b.index(), 1)
}

func TestSecretsAreReplaced(t *testing.T) {
	b := setup(t)
	b.write(t, "a.go", "package a\n\nconst token = \"ghp_"+strings.Repeat("a1B2c3", 6)+"\"\n")
	r := b.run(t)
	require.Equal(t, 1, r.Redacted)
	require.NotContains(t, b.index()["a.go"], "ghp_")
	require.Contains(t, b.index()["a.go"], "[redacted:")
	b.Redact = nil
	b.run(t)
	require.Contains(t, b.index()["a.go"], "ghp_", "other rules cut every file again")
}

func TestASecretThatTwoScopesShareIsReplaced(t *testing.T) {
	b := setup(t)
	line := strings.Repeat("aB3dE5gH", 8)
	key := "-----BEG" + "IN PRIVATE KEY-----\n" + strings.Repeat(line+"\n", 100) + "-----E" + "ND PRIVATE KEY-----\n"
	b.write(t, "deploy.sh", "cat >key.pem <<EOF\n"+key+"EOF\n\ndone() {\n\techo done\n}\n")
	require.Equal(t, 1, b.run(t).Redacted)
	for _, e := range b.events {
		if p, ok := e.Payload.(*events.CodeIndexed); ok {
			for _, s := range p.Scopes {
				require.NotContains(t, s.Text, line)
			}
			last := p.Scopes[len(p.Scopes)-1]
			require.Equal(t, "done 106", fmt.Sprint(last.Name, " ", last.StartLine), "lines keep their numbers")
		}
	}
}

func TestTagsOfPrivateTextsInAProgramHideNoCode(t *testing.T) {
	b := setup(t)
	fill := strings.Repeat("\tprintln(1)\n", 60)
	b.write(t, "a.go", "package a\n\nconst begin = \"<private>\"\n\nfunc Kept() {\n"+fill+"}\n\nfunc End() string {\n"+fill+"\treturn \"</private>\"\n}\n")
	b.write(t, "b.go", "package a\n\n// <private>\n\nfunc Hidden() {\n"+fill+"}\n\nfunc Too() {\n"+fill+"}\n\n// </private>\n\nfunc Shown() {\n"+fill+"}\n")
	b.write(t, "c.go", "package a\n\n// F says <private>my\n// address</private>.\nfunc F() {}\n")
	require.Equal(t, 1, b.run(t).Redacted)
	require.Contains(t, b.index()["a.go"], "Kept")
	require.Contains(t, b.index()["a.go"], "</private>")
	require.NotContains(t, b.index()["b.go"], "Hidden")
	require.NotContains(t, b.index()["b.go"], "Too")
	require.Contains(t, b.index()["b.go"], "Shown")
	require.NotContains(t, b.index()["c.go"], "address")
}

func TestAPrivateTextThatEndsAfterThePublishedPartIsReplaced(t *testing.T) {
	b := setup(t)
	long := strings.Repeat("Lovelace lives here\r\n", 400)
	b.write(t, "a.md", "# People\r\n\r\nnotes <private>Ada\r\n"+long+"</private> end\r\n\r\n# Next\r\n\r\ntext\r\n")
	b.write(t, "b.md", "# Tags\n\nA text begins with <private> and is kept\n\n# More\n\nand ends with </private>\n")
	require.Equal(t, 1, b.run(t).Redacted)
	require.Equal(t, "# People\n\nnotes [redacted:private]", strings.TrimSpace(strings.Split(b.index()["a.md"], "# Next")[0]))
	require.Contains(t, b.index()["b.md"], "<private> and is kept")
}

func TestFewLargeFilesAreReadAtOnce(t *testing.T) {
	t.Parallel()
	list := make([]job, 1_000)
	for i := range list {
		if list[i].size = 1 << 10; i < 100 {
			list[i].size = scopes.MaxFileBytes
		}
	}
	list[50].size = 1 << 40 // only its first megabyte is read
	var sizes []int
	for chunk := range parts(list) {
		sizes = append(sizes, len(chunk))
	}
	require.Equal(t, []int{8, 8, 8, 8, 8, 8, 7, 8, 8, 8, 8, 8, 256, 256, 256, 137}, sizes)
}

func TestAPrivateTextThatBeginsInAHeadingIsNotInItsName(t *testing.T) {
	b := setup(t)
	b.write(t, "a.md", "# About <private>Ada\nLovelace</private>\n\ntext\n")
	require.Equal(t, 1, b.run(t).Redacted)
	for _, e := range b.events {
		require.NotContains(t, string(e.Data), "Ada")
	}
	require.Contains(t, b.index()["a.md"], "# About [redacted:private]")
}

func TestMoreFilesThanTheLimitAreRefused(t *testing.T) {
	b := setup(t)
	for i := range 5 {
		b.write(t, fmt.Sprintf("f%d.go", i), goFile("F"))
	}
	b.MaxFiles = 4
	_, err := Run(t.Context(), b.Options)
	require.ErrorIs(t, err, ErrTooMany)
	require.ErrorContains(t, err, "holds more than 4; raise the limit with --max-files")
	require.Empty(t, b.events)
	b.MaxFiles = 5
	require.Equal(t, 5, b.run(t).Indexed)
}

func TestADryRunPublishesAndRemembersNothing(t *testing.T) {
	b := setup(t)
	b.write(t, "a.go", goFile("A"))
	b.DryRun = true
	require.Equal(t, 1, b.run(t).Indexed)
	require.Empty(t, b.events)
	require.NoFileExists(t, b.State)
}

func TestAFileThatAppearsAtTheSameMomentIsReadAgain(t *testing.T) {
	b := setup(t)
	path := filepath.Join(b.Root, "a.go")
	require.NoError(t, os.WriteFile(path, []byte(goFile("A")), 0o644))
	now := time.Now()
	require.NoError(t, os.Chtimes(path, now, now))
	b.run(t)
	require.NoError(t, os.WriteFile(path, []byte(goFile("B")), 0o644)) // as long as before
	require.NoError(t, os.Chtimes(path, now, now))
	require.Equal(t, 1, b.run(t).Indexed)
}

func TestWithoutItsStateARunAsksWhatIsKnown(t *testing.T) {
	b := setup(t)
	b.write(t, "a.go", goFile("A"))
	b.run(t)
	b.write(t, "a.go", goFile("B"))
	b.run(t)
	known, err := LoadState(b.State)
	require.NoError(t, err)
	for _, f := range known.Files {
		f.Size, f.Time, f.Read = 0, 0, 0 // the server does not know these
	}
	n := len(b.events)
	b.Known = func(context.Context, string) (*State, error) { return known, nil }
	require.NoError(t, os.Remove(b.State))
	r := b.run(t)
	require.Equal(t, []int{1, 0}, []int{r.Unchanged, r.Indexed})
	require.LessOrEqual(t, len(b.events), n+1)
	b.write(t, "a.go", goFile("A"))
	b.run(t)
	require.Contains(t, b.index()["a.go"], "func A()")
}

// Whatever changes between runs, and wherever a run ends, the next run that succeeds leaves an index of the folder's
// present files.
func TestAPartOfARepositoryThatIsAwayStaysInTheIndex(t *testing.T) {
	b := setup(t)
	b.Below = "sub"
	git := filepath.Join(b.Root, ".git")
	require.NoError(t, os.Mkdir(git, 0o755))
	b.write(t, "sub/a.go", goFile("A"))
	b.run(t)
	away := b.Root + "-away" // its disk is not mounted
	require.NoError(t, os.Rename(b.Root, away))
	_, err := Run(context.Background(), b.Options)
	require.ErrorIs(t, err, ErrUnread)
	require.Contains(t, b.index(), "sub/a.go")
	require.NoError(t, os.Rename(away, b.Root))
	require.NoError(t, os.RemoveAll(filepath.Join(b.Root, "sub")))
	b.run(t)
	require.Empty(t, b.index(), "only the part is gone")
}

func TestAFileThatComesBackAfterTwoKilledRunsIsInTheIndex(t *testing.T) {
	for name, before := range map[string]string{"a new file": "", "a file that was known": "Before"} {
		b := setup(t)
		path := filepath.Join(b.Root, "a.go")
		b.write(t, "b.go", goFile("B"))
		if before != "" {
			b.write(t, "a.go", goFile(before))
		}
		b.run(t)
		state, err := os.ReadFile(b.State)
		require.NoError(t, err)
		killed := func() { // after the log's answer, before the state was written
			b.run(t)
			require.NoError(t, os.WriteFile(b.State, state, 0o600))
			require.NoError(t, os.WriteFile(b.pending, b.intended, 0o600))
		}
		b.write(t, "a.go", goFile("A"))
		killed()
		require.NoError(t, os.Remove(path))
		killed()
		require.NotContains(t, b.index(), "a.go", name)
		b.write(t, "a.go", goFile("A"))
		b.run(t)
		require.Contains(t, b.index(), "a.go", name)
		n := len(b.events)
		b.run(t)
		require.Len(t, b.events, n, "nothing is published once the state is certain again")
	}
}

func TestAnIndexIsWhatTheFolderHoldsHoweverRunsEnd(t *testing.T) {
	b := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"a.go", "b.go", "sub/c.go", "d.go"}).Draw(rt, "file")
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				_ = os.Remove(filepath.Join(b.Root, filepath.FromSlash(name)))
			case 1:
				before, err := os.ReadFile(b.State)
				b.intended = nil
				b.run(rt)
				if rapid.Bool().Draw(rt, "killed") { // before it wrote its state at the end; it also writes it once at the beginning
					if err != nil {
						s, err := LoadState(b.State)
						require.NoError(rt, err)
						before, err = json.Marshal(State{Project: s.Project, Rules: s.Rules, Files: map[string]*File{}})
						require.NoError(rt, err)
					}
					require.NoError(rt, os.WriteFile(b.State, before, 0o600))
					if b.intended != nil {
						require.NoError(rt, os.WriteFile(b.pending, b.intended, 0o600))
					}
				}
			case 2:
				b.fail = rapid.IntRange(2, 4).Draw(rt, "fails")
				_, _ = Run(context.Background(), b.Options)
				b.fail = 0
			default:
				b.write(rt, name, goFile(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(rt, "text")))
			}
		}
		b.run(rt)
		want := map[string]string{}
		for _, name := range []string{"a.go", "b.go", "sub/c.go", "d.go"} {
			if raw, err := os.ReadFile(filepath.Join(b.Root, filepath.FromSlash(name))); err == nil {
				want[name] = strings.TrimPrefix(string(raw), "package a\n\n")
			}
		}
		require.Equal(rt, want, b.index())
		scan := b.events[len(b.events)-1].Payload
		if p, ok := scan.(*events.CodeScanned); ok {
			require.True(rt, p.Done)
			require.Equal(rt, len(want), p.Files)
		}
	})
}

func TestAnIndexThatIsErasedDuringTheRunIsToldOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "a.go", goFile("A"))
	b.Erased = func(context.Context, string) (bool, error) { return len(b.events) > 0, nil }
	_, err := Run(t.Context(), b.Options)
	require.ErrorIs(t, err, ErrErased, "nothing of what was published counts")
	require.NotEmpty(t, b.events)
}
