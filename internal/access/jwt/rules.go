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

// rule gives rights to the tokens whose claims all match.
type rule struct {
	Claims        map[string]string `yaml:"claims"` // a list claim matches if it contains the value
	access.Rights `yaml:",inline"`
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
		err := r.Rights.Check()
		if err == nil && len(r.Claims) == 0 {
			err = errors.New("claims is empty, so the rule would match every token")
		}
		if err != nil {
			return nil, fmt.Errorf("%s, rule %d: %w", path, i+1, err)
		}
	}
	s := &ruleset{rules: file.Rules}
	s.ended, s.end = context.WithCancel(context.Background())
	return s, nil
}

// match returns the rights of the first rule whose claims all match.
func (s *ruleset) match(claims map[string]any) (access.Rights, bool) {
	for _, r := range s.rules {
		all := true
		for name, want := range r.Claims {
			all = all && slices.Contains(claimText(claims[name]), want)
		}
		if all {
			return r.Rights, true
		}
	}
	return access.Rights{}, false
}
