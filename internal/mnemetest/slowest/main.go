// Command slowest runs go test, prints what go test prints, and lists the ten slowest tests:
//
//	go run ./internal/mnemetest/slowest -short ./...
//
// The arguments are those of go test. The exit code is that of go test.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// listed is how many tests are listed.
const listed = 10

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	how := ""
	if slices.Contains(os.Args, "-race") {
		how = " with the race detector"
	}
	report(out, os.Stdout, how)
	var failed *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &failed) {
		os.Exit(max(failed.ExitCode(), 1)) // -1: ended by a signal
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// report prints the outcome of each package, the output of failed tests, and the slowest tests. The time of a
// test includes that of its parallel subtests, which go test does not count. They may have run at the same time.
// how tells several runs apart that print at the same time.
func report(in io.Reader, out io.Writer, how string) {
	var tests []event
	parallel := map[string]bool{}                      // subtests by package and name
	beside := map[string]float64{}                     // seconds of them, by package and name of their test
	skipped := map[string]int{}                        // tests by reason
	output := map[string]map[string]*strings.Builder{} // by package and test
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			_, _ = out.Write(line) // not from a test
			continue
		}
		texts := output[e.Package]
		if texts == nil {
			texts = map[string]*strings.Builder{}
			output[e.Package] = texts
		}
		switch ended := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"; {
		case e.Action == "pause":
			parallel[e.Package+" "+e.Test] = true
		case e.Action == "build-output":
			fmt.Fprint(out, e.Output)
		case e.Action == "output":
			if texts[e.Test] == nil {
				texts[e.Test] = &strings.Builder{}
			}
			texts[e.Test].WriteString(e.Output)
		case ended && e.Test == "":
			printPackage(out, e, texts, how)
			delete(output, e.Package)
			if text := texts[""]; text != nil && strings.Contains(text.String(), "\t(cached)") {
				tests = slices.DeleteFunc(tests, func(t event) bool { return t.Package == e.Package }) // did not run now
			}
		case ended:
			if e.Action == "skip" {
				skipped[reason(texts[e.Test])]++
			}
			if e.Action != "fail" {
				delete(texts, e.Test)
			}
			if test, _, isSub := strings.Cut(e.Test, "/"); !isSub {
				tests = append(tests, e)
			} else if parallel[e.Package+" "+e.Test] {
				beside[e.Package+" "+test] += e.Elapsed
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(output)) { // go test ended before the package did
		printPackage(out, event{Action: "fail"}, output[name], how)
	}
	for i, t := range tests { // a test may be reported before its subtests
		tests[i].Elapsed += beside[t.Package+" "+t.Test]
	}
	slices.SortStableFunc(tests, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	if len(skipped) > 0 {
		fmt.Fprintf(out, "\nSKIPPED%s, by reason:\n", how)
	}
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(out, "%7d  %s\n", skipped[why], why)
	}
	fmt.Fprintf(out, "\nThe slowest tests%s:\n", how)
	for _, t := range tests[:min(listed, len(tests))] {
		fmt.Fprintf(out, "%7.1fs %s %s\n", t.Elapsed, t.Package, t.Test)
	}
}

// skipLine matches the line of t.Skip.
var skipLine = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// reason returns why a test was skipped: its last message.
func reason(output *strings.Builder) string {
	if output != nil {
		if all := skipLine.FindAllStringSubmatch(output.String(), -1); all != nil {
			return all[len(all)-1][1]
		}
	}
	return "no reason given"
}

// printPackage prints the last line of a package that passed. For a package that failed it prints everything that
// does not belong to a passed test: a test that was running when the process ended counts as failed.
func printPackage(out io.Writer, e event, texts map[string]*strings.Builder, how string) {
	text := texts[""]
	if text == nil {
		text = &strings.Builder{}
	}
	if e.Action == "fail" {
		for _, test := range slices.Sorted(maps.Keys(texts)) {
			if test != "" {
				fmt.Fprint(out, texts[test])
			}
		}
		fmt.Fprintln(out, strings.TrimSuffix(text.String(), "\n")+how)
		return
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if last := lines[len(lines)-1]; last != "" && !strings.HasSuffix(last, "[no test files]") {
		fmt.Fprintln(out, last+how)
	}
}
