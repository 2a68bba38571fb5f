package jwt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/yamlfile"
)

// rule gives rights to the tokens whose claims all match, or denies them all.
type rule struct {
	Claims        map[string]string `yaml:"claims"` // a list claim matches if it contains the value
	Deny          bool              `yaml:"deny"`
	access.Rights `yaml:",inline"`
}

// check reports a rule that says too much or too little.
func (r rule) check() error {
	switch {
	case r.Deny && r.Rights != access.Rights{}:
		return errors.New("a rule with deny grants nothing: leave out tenant, role and the like")
	case len(r.Claims) == 0:
		return errors.New("claims is empty, so the rule would match every token")
	case r.Deny:
		return nil
	}
	return r.Rights.Check()
}

// ruleset is one reading of the claims file.
type ruleset struct {
	rules []rule
	ended context.Context
	end   context.CancelFunc
}

// maxRulesBytes bounds the claims file.
const maxRulesBytes = 1 << 20

// readRules reads a claims file:
//
//	rules:
//	  - claims: {sub: somebody-who-left}
//	    deny: true
//	  - claims: {groups: team-a-leads}
//	    tenant: team-a
//	    role: operate
//	  - claims: {groups: team-a}
//	    tenant: team-a
//	    role: write
//
// The first rule whose claims all match decides. No rule, no rights.
func readRules(path string) (*ruleset, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(text) > maxRulesBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxRulesBytes)
	}
	var file struct {
		Rules []rule `yaml:"rules"`
	}
	if err := yamlfile.Decode(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Rules) == 0 {
		return nil, fmt.Errorf("%s: it has no rules, so nobody could do anything", path)
	}
	for i, r := range file.Rules {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%s, rule %d: %w", path, i+1, err)
		}
	}
	s := &ruleset{rules: file.Rules}
	s.ended, s.end = context.WithCancel(context.Background())
	return s, nil
}

// match returns the first rule whose claims all match.
func (s *ruleset) match(claims map[string]any) (rule, bool) {
	for _, r := range s.rules {
		all := true
		for name, want := range r.Claims {
			all = all && slices.Contains(claimText(claim(claims, name)), want)
		}
		if all {
			return r, true
		}
	}
	return rule{}, false
}
