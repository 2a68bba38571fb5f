package project

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func lessonTexts(d *Digest) (texts []string) {
	for _, l := range d.Lessons() {
		texts = append(texts, l.Text)
	}
	return texts
}

func TestALessonStandsAlone(t *testing.T) {
	t.Parallel()
	request := &Said{Text: "Make the uploads faster."}
	good := []string{
		"The API requires that a tool's result follows its call at once.",
		"node's watch() tells of a rename twice on this file system.",
		"Files that have been deleted stay in the index until it is made again.",
		"Steps a user takes in the gallery are stored with their times.",
		"Node.js: streams of uploads must be closed by the one who opens them.",
		"ASP.NET - the upload limit of the gallery is 30 MB unless a handler raises it.",
		"All uploads go through one client, which retries three times.",
		"The page size of the store is fixed at 4096 bytes on every platform.",
		"In a transaction now() returns when it began, which makes the queue order wrong.",
		"Der Zwischenspeicher wird erst nach dem Neustart geleert, nicht vorher.",
	}
	bad := []string{
		"Updated the tests so that they expect the error.",
		"upload_test.go: Added a case for an empty file and its retry.",
		"Use the shared client for all uploads of the gallery.",
		"All tests pass and the linter has nothing to say.",
		"However, it still takes the lock of the whole store.",
		"The backfill may be gone, so let me look at the merge again.",
		"Should the retry of an upload wait for the clock?",
		"The retry of an upload depends on these three things:",
		"No evidence anywhere.",
		"The store now takes a lock before each upload.",
		"Both races between the upload and the gallery are fixed, with a lock each.",
		"For the gallery, I just added a retry of the upload.",
		"The retry has been moved into the client of the gallery.",
		"Yes, the retry of an upload has a test in the client.",
		"Comment 2 (from the review): the retry of an upload waits too long.",
		"With few uploads, option 1 (one queue for all) is the cleanest way.",
		"Session B continues while the upload of the gallery waits.",
		"pkg/upload/retry.go:41 - returns the error of the last attempt.",
		"retry.go (2): the attempts of an upload, the pause between them.",
		"The retry of an upload appears twice (lines ~690-730 and ~750-810).",
		"TestAnUploadIsRetried_Twice - verifies the pause between attempts.",
		"BaseCommit ✓ (from the head of the current branch)",
	}
	d := Digest{Request: request, Summary: &Summary{Findings: append(good, bad...)}}
	require.Equal(t, good, lessonTexts(&d), "findings picked without a model")
	d.Summary.ByModel = true
	require.Len(t, lessonTexts(&d), len(good)+len(bad), "a model writes findings that stand alone")
}

func TestACorrectionStandsAlone(t *testing.T) {
	t.Parallel()
	good := []string{
		"no, the retry belongs into the client, not the store",
		"never log uploads",
		"Don't change the generated files by hand.",
	}
	bad := []string{
		"no, that's horrible.",
		"no, write it again",
		"wait, let's discuss the retry of uploads",
		"no need to retry the upload for now",
		"To silence it in future, run:",
		"ok, let me try it in the light theme, it should always work",
	}
	var taught []Said
	bad = append(bad, "not that (refused: a change of pkg/upload/retry.go)", "merge the other branch first (refused: git fetch; git merge)")
	good = append(good, "don't run the integration tests here (refused: make integration)", "I did not say commit anything (refused: git add; git commit)",
		"never push to the main branch (refused: git push)")
	for _, text := range append(bad, good...) {
		taught = append(taught, Said{Text: text})
	}
	d := Digest{Request: &Said{Text: "Make the uploads faster."}, Taught: taught}
	require.ElementsMatch(t, good, lessonTexts(&d))
	d.Request = nil
	require.Len(t, lessonTexts(&d), len(taught), "a note says what its writer meant it to")
}

func TestAFixThatDoesNotSayWhatWasWrongIsNoLesson(t *testing.T) {
	t.Parallel()
	var d Digest
	for _, trouble := range []string{"FAIL", "[lint] ERROR task failed", "Tests failed.", "error: exit status 1", "ERROR: build failed", "FAIL example.com/upload [build failed]", "why not all of them?", "undefined: errors",
		"upload.go:41:2: undefined: errors", "src/upload.ts(41,5): error TS2305: no exported member", `File "upload.py", line 41, in retry: NameError`, "41 │ * @throws Error if the store is gone", "2026/02/07 WARN failed to close the store",
		"Failed to fetch metadata: remote not found"} {
		d.Fixes = append(d.Fixes, Fix{Command: "make test", Trouble: trouble, Changed: []string{"upload.go"}})
	}
	d.Fixes = append(d.Fixes, Fix{Command: "go vet ./...", Failed: "go vet gallery", Trouble: "gallery.go:41: the package is not in std"})
	d.Fixes = append(d.Fixes, Fix{Command: "git diff", Trouble: "fatal: ambiguous argument 'upload'", Changed: []string{"upload.go"}})
	for _, trouble := range []string{"connect ECONNREFUSED db.internal:5432", "Failed to fetch https://cache.site.dev:8443/v1"} {
		d.Fixes = append(d.Fixes, Fix{Command: "make seed", Trouble: trouble, Changed: []string{"seed.go"}})
	}
	require.Equal(t, []string{
		`"Failed to fetch https://cache.site.dev:8443/v1" when running make seed; it succeeded after a change of seed.go`,
		`"connect ECONNREFUSED db.internal:5432" when running make seed; it succeeded after a change of seed.go`,
		`"gallery.go:41: the package is not in std" when running go vet gallery; go vet ./... succeeded`,
		`"Failed to fetch metadata: remote not found" when running make test; it succeeded after a change of upload.go`,
		`"undefined: errors" when running make test; it succeeded after a change of upload.go`,
	}, lessonTexts(&d))
}

func BenchmarkLessons(b *testing.B) {
	d := Digest{Request: &Said{Text: "Make the uploads faster."}, Summary: &Summary{Findings: []string{
		"The SessionIDConflictError happens in InitializeSession when the shadow branch has commits of another session.",
		"Anthropic's API requires tool_result right after tool_use: a user's message between them breaks this.",
		"Updated two tests so that they have UserAddedPerFile in their attribution of prompts.",
	}}, Taught: []Said{{Text: "we always want to be passed a valid checkpoint's identity"}, {Text: "no, the retry belongs into the client, not the store"}}}
	for b.Loop() {
		d.Lessons()
	}
}
