// Package redact removes secrets from texts before they are published: a log can't forget.
//
// It works on decoded texts, never on raw JSON, whose escapes hide secrets and whose ids it would
// break. The rules are few and of one kind each: prefixes that providers give their keys, blocks of
// PEM, JSON web tokens, passwords in URLs, and assignments such as password=… and Authorization: Bearer ….
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
	var all []Finding
	var done [][]int // what was replaced before
	if strings.Contains(text, placeholder) {
		done = replaced.FindAllStringIndex(text, -1)
	}
	places := r.gates.in(text)
	for i := range r.list {
		switch rule := &r.list[i]; {
		case rule.find == nil:
			all = rule.assignments(text, all, done)
		case rule.before != nil:
			all = rule.at(text, places[i], all, done)
		case len(rule.gates) == 0 || len(places[i]) > 0:
			all = rule.in(text, all, done)
		}
	}
	return all
}

var replaced = regexp.MustCompile(`\[redacted:[a-z0-9-]{1,40}\]`)

// at adds the secrets that begin at one of the places and that no earlier rule has found, by position.
func (r *rule) at(text string, places []int, all []Finding, done [][]int) []Finding {
	from := 0
	for _, place := range places {
		if place < from || !r.before(text[from:place]) {
			continue
		}
		if m := r.find.re().FindStringSubmatchIndex(text[place:]); m != nil && (r.within == nil || r.within(text[:place])) {
			all, from = r.add(text, place, m, all, done)
		}
	}
	return all
}

// in adds the secrets that the rule finds and no earlier rule has found, by position.
func (r *rule) in(text string, all []Finding, done [][]int) []Finding {
	for from := 0; from < len(text); {
		m := r.find.re().FindStringSubmatchIndex(text[from:])
		if m == nil {
			break
		}
		all, from = r.add(text, from, m, all, done)
	}
	return all
}

// add adds the secret of a match in text[from:], and returns where the next match can begin.
func (r *rule) add(text string, from int, m []int, all []Finding, done [][]int) (_ []Finding, next int) {
	start, end := from+m[0], from+m[1]
	if len(m) == 4 {
		start, end = from+m[2], from+m[3]
	}
	if len(m) == 4 && m[2] < 0 || start == end { // the group did not take part in the match
		return all, from + max(m[1], m[0]+1)
	}
	if r.extend != nil {
		match := end
		if end = r.extend(text, end); end == match {
			return all, end
		}
	}
	if r.parts != nil {
		for _, p := range r.parts(text[start:end]) {
			all = insert(all, Finding{r.kind, start + p[0], start + p[1]}, done)
		}
		return all, end
	}
	if r.plausible == nil || r.plausible(text[start:end]) {
		all = insert(all, Finding{r.kind, start, end}, done)
	}
	return all, end // the text after the secret can begin the next match
}

// insert adds a finding at its place, unless it overlaps an existing one.
func insert(all []Finding, f Finding, done [][]int) []Finding {
	at, _ := slices.BinarySearchFunc(all, f.Start, func(f Finding, start int) int { return f.End - start - 1 })
	if at < len(all) && all[at].Start < f.End || !fresh(f.Start, f.End, done) {
		return all
	}
	return slices.Insert(all, at, f)
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
	if len(name) > maxName || len(value) < 6 || len(value) > maxValue || strings.ContainsAny(value, "\r\n") || strings.Contains(value, placeholder) || !memberName.MatchString(name) {
		return "", false
	}
	if strings.ContainsAny(value, " \t") {
		return "password", phrase(value)
	}
	return "password", password(value)
}
