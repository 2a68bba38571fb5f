// Package redact removes secrets from texts before they are published: a log can't forget.
//
// It works on decoded texts, never on raw JSON, whose escapes hide secrets and whose ids it would
// break. The rules are few and of one kind each: prefixes that providers give their keys, blocks of
// PEM, JSON web tokens, passwords in URLs, and assignments such as password=… and Authorization: Bearer …, also in tables.
// None of them guesses by entropy, because what tools print is full of hashes. A secret without a
// known form is therefore not found.
//
// The same text under the same rules always gives the same text, and a redacted text does not change again.
package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/yamlfile"
)

const placeholder = "[redacted:"

// Rules are what counts as a secret. They are safe for concurrent use.
type Rules struct {
	list    []rule
	gates   *gates
	version string
}

// Default returns the rules of this package.
func Default() *Rules { return standard }

var standard = &Rules{list: defaults, gates: newGates(defaults), version: Version}

// Version names the rules: [Version], and with rules of one's own a + and 8 digits of their hash.
func (r *Rules) Version() string { return r.version }

// ForFiles returns these rules for whole files of code, in which <private> and </private> can be texts of a program far
// apart: they count only in one line, or alone on their lines.
func (r *Rules) ForFiles() *Rules {
	f := &Rules{version: r.version}
	for _, rule := range r.list {
		if rule.find == private {
			f.list = append(f.list, inFiles...)
		} else {
			f.list = append(f.list, rule)
		}
	}
	f.gates = newGates(f.list)
	return f
}

// own is a file of rules.
type own struct {
	Rules []struct {
		Kind    string   `yaml:"kind"`
		Pattern string   `yaml:"pattern"`
		Any     []string `yaml:"any"`
	} `yaml:"rules"`
}

var kindName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Load returns the rules of this package and those of a YAML file:
//
//	rules:
//	  - kind: employee-number     # letters a-z, digits and -, up to 40 of them
//	    pattern: 'EMP-(\d{6})'    # RE2; with a group only what it matches is replaced
//	    any: ["EMP-"]             # optional: the pattern runs only on texts with one of these
//
// The file's rules come first. It returns an error that says which rule is wrong.
func Load(path string) (*Rules, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file own
	if err := yamlfile.Decode(raw, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Rules) == 0 {
		return nil, fmt.Errorf("%s: has no rules", path)
	}
	r := &Rules{}
	for i, o := range file.Rules {
		made, err := compiled(o.Kind, o.Pattern, o.Any)
		if err != nil {
			return nil, fmt.Errorf("%s: rule %d: %w", path, i+1, err)
		}
		r.list = append(r.list, made)
	}
	sum := sha256.Sum256(raw)
	r.list = append(r.list, defaults...)
	r.gates, r.version = newGates(r.list), Version+"+"+hex.EncodeToString(sum[:4])
	return r, nil
}

func compiled(kind, pattern string, gates []string) (rule, error) {
	if !kindName.MatchString(kind) {
		return rule{}, fmt.Errorf("kind: %q is not 1 to 40 of a-z, 0-9 and -", kind)
	}
	find, err := regexp.Compile(pattern)
	switch {
	case pattern == "":
		return rule{}, errors.New("pattern: is missing")
	case err != nil:
		return rule{}, fmt.Errorf("pattern: %w", err)
	case find.NumSubexp() > 1:
		return rule{}, errors.New("pattern: has more than one group; write (?:…) for those that are not the secret")
	case find.MatchString(""):
		return rule{}, errors.New("pattern: matches an empty text")
	case slices.Contains(gates, ""):
		return rule{}, errors.New("any: has an empty text")
	}
	return rule{kind: kind, gates: gates, find: match(pattern)}, nil
}

// Finding is a secret in a text.
type Finding struct {
	Kind       string
	Start, End int // in bytes of the text
}

// Find returns the secrets in a text by position. They don't overlap.
func (r *Rules) Find(text string) []Finding {
	var f findings
	if strings.Contains(text, placeholder) {
		f.done = replaced.FindAllStringIndex(text, -1)
	}
	places := r.gates.in(text)
	for i := range r.list {
		switch rule := &r.list[i]; {
		case rule.find == nil:
			rule.assignments(text, &f)
			f.join()
			rule.tables(text, &f)
		case rule.before != nil:
			rule.at(text, places[i], &f)
		case len(rule.gates) == 0 || len(places[i]) > 0:
			rule.in(text, &f)
		}
		f.join()
	}
	return f.list
}

var replaced = regexp.MustCompile(`\[redacted:[a-z0-9-]{1,40}\]`)

// at adds the secrets that begin at one of the places.
func (r *rule) at(text string, places []int, f *findings) {
	from := 0
	for _, place := range places {
		if place < from || !r.before(text[from:place]) {
			continue
		}
		if m := r.find.re().FindStringSubmatchIndex(text[place:]); m != nil && (r.within == nil || r.within(text[:place])) {
			from = r.add(text, place, m, f)
		}
	}
}

// in adds the secrets in a text.
func (r *rule) in(text string, f *findings) {
	for from := 0; from < len(text); {
		m := r.find.re().FindStringSubmatchIndex(text[from:])
		if m == nil {
			break
		}
		from = r.add(text, from, m, f)
	}
}

// add adds the secret of a match in text[from:], and returns where the next match can begin.
func (r *rule) add(text string, from int, m []int, f *findings) (next int) {
	start, end := from+m[0], from+m[1]
	if len(m) == 4 {
		start, end = from+m[2], from+m[3]
	}
	if len(m) == 4 && m[2] < 0 || start == end { // the group did not take part in the match
		return from + max(m[1], m[0]+1)
	}
	if r.extend != nil {
		match := end
		if end = r.extend(text, end); end == match {
			return end
		}
	}
	if r.parts != nil {
		for _, p := range r.parts(text[start:end]) {
			f.add(Finding{r.kind, start + p[0], start + p[1]})
		}
		return end
	}
	if r.plausible == nil || r.plausible(text[start:end]) {
		f.add(Finding{r.kind, start, end})
	}
	return end // the text after the secret can begin the next match
}

// findings collects what rules find in a text: what an earlier one has found stays.
type findings struct {
	list []Finding // of earlier rules, by position
	more []Finding // of the current rule, by position; joined at its end, since to insert each costs the square of their number
	done [][]int   // what was replaced before
}

// add adds a finding of the current rule, unless it overlaps an existing one. A rule finds secrets in their order.
func (f *findings) add(n Finding) {
	if last := len(f.more) - 1; last >= 0 && n.Start < f.more[last].End {
		return
	}
	at, _ := slices.BinarySearchFunc(f.list, n.Start, func(f Finding, start int) int { return f.End - start - 1 })
	if at < len(f.list) && f.list[at].Start < n.End || !fresh(n.Start, n.End, f.done) {
		return
	}
	f.more = append(f.more, n)
}

// join ends a rule.
func (f *findings) join() {
	if len(f.more) == 0 {
		return
	}
	all := make([]Finding, 0, len(f.list)+len(f.more))
	for _, n := range f.more {
		at, _ := slices.BinarySearchFunc(f.list, n.Start, func(f Finding, start int) int { return f.Start - start })
		all = append(append(all, f.list[:at]...), n)
		f.list = f.list[at:]
	}
	f.list, f.more = append(all, f.list...), f.more[:0]
}

// fresh reports whether a place holds more than earlier replacements, and cuts none of them.
func fresh(start, end int, done [][]int) bool {
	at, _ := slices.BinarySearchFunc(done, start, func(d []int, start int) int { return d[1] - start - 1 })
	for ; at < len(done) && done[at][0] < end; at++ {
		if done[at][0] < start || done[at][1] > end || done[at][0] == start && done[at][1] == end {
			return false
		}
	}
	return true
}

// Text replaces each secret in a text with [redacted:kind], and returns the kinds of the secrets.
func (r *Rules) Text(text string) (redacted string, kinds []string) {
	return r.replace(text, false)
}

// Lines is as [Rules.Text], but every line keeps its number: the lines of a secret that are replaced stay, empty.
func (r *Rules) Lines(text string) (redacted string, kinds []string) {
	return r.replace(text, true)
}

// maxRounds is how often what was replaced may show another secret before it. Texts of people and programs take two or three
// rounds. Of GOCSPX-GOCSPX-GOCSPX-… each shows only the last key, so that the time would grow with the square of its length.
const maxRounds = 8

func (r *Rules) replace(text string, lines bool) (redacted string, kinds []string) {
	for round := 0; ; round++ {
		found := r.Find(text)
		if lines { // what stays of a secret is none, also if a rule of one's own matches ends of lines
			found = slices.DeleteFunc(found, func(f Finding) bool {
				return strings.Trim(replaced.ReplaceAllString(text[f.Start:f.End], ""), "\n") == ""
			})
		}
		if len(found) == 0 {
			return text, kinds
		}
		switch {
		case round >= 2*maxRounds:
			found = []Finding{{found[0].Kind, 0, len(text)}}
		case round >= maxRounds:
			found = widened(text, found)
		}
		var b strings.Builder
		at := 0
		for _, f := range found {
			b.WriteString(text[at:f.Start] + placeholder + f.Kind + "]")
			if lines {
				b.WriteString(strings.Repeat("\n", strings.Count(text[f.Start:f.End], "\n")))
			}
			at, kinds = f.End, append(kinds, f.Kind)
		}
		text = b.String() + text[at:]
	}
}

// widened extends findings to the blanks around them.
func widened(text string, found []Finding) (wide []Finding) {
	const blank = " \t\r\n"
	for _, f := range found {
		if last := len(wide) - 1; last >= 0 && f.Start < wide[last].End { // most are in the text around the one before
			f.Start, f.End, wide = wide[last].Start, max(f.End, wide[last].End), wide[:last]
		} else {
			f.Start = strings.LastIndexAny(text[:f.Start], blank) + 1
		}
		if n := strings.IndexAny(text[f.End:], blank); n >= 0 {
			f.End += n
		} else {
			f.End = len(text)
		}
		wide = append(wide, f)
	}
	return wide
}

// Member reports whether a member of this name holds this text as a secret, as password does in
// {"password": "…"}, where the text alone does not show it.
func (r *Rules) Member(name, value string) (kind string, secret bool) {
	if len(name) > maxName || len(value) < 6 || len(value) > maxValue || strings.ContainsAny(value, "\r\n") || strings.Contains(value, placeholder) || !ofSecret(name) {
		return "", false
	}
	if strings.ContainsAny(value, " \t") {
		return "password", phrase(value)
	}
	return "password", password(value)
}
