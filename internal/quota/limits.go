package quota

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v3"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/yamlfile"
)

// Limits are the quota of one tenant. Zero means no limit.
type Limits struct {
	Requests  int     // handled at the same time
	Reads     int     // of these, reads
	Events    float64 // published per second
	Bytes     float64 // of published events, per second
	MaxEvents uint64  // in the log
	MaxBytes  uint64  // in the log, as the server counts its size
	Calls     int     // of models, per hour
	Tokens    int64   // of models, in and out, per hour
	Cost      float64 // of models, per hour, in the currency of the prices
}

// fields are the fields of a quota in the file.
var fields = map[string]func(*Limits, *yaml.Node) error{
	"reads":             func(l *Limits, n *yaml.Node) error { return whole(&l.Reads, n) },
	"requests":          func(l *Limits, n *yaml.Node) error { return whole(&l.Requests, n) },
	"events_per_second": func(l *Limits, n *yaml.Node) error { return number(&l.Events, n) },
	"bytes_per_second": func(l *Limits, n *yaml.Node) error {
		var size uint64
		if bytesOf(&size, n) == nil {
			l.Bytes = float64(size)
			return nil
		}
		return number(&l.Bytes, n)
	},
	"model_calls_per_hour":  func(l *Limits, n *yaml.Node) error { return whole(&l.Calls, n) },
	"model_tokens_per_hour": func(l *Limits, n *yaml.Node) error { return whole(&l.Tokens, n) },
	"model_cost_per_hour":   func(l *Limits, n *yaml.Node) error { return number(&l.Cost, n) },
	"max_events":            func(l *Limits, n *yaml.Node) error { return whole(&l.MaxEvents, n) },
	"max_bytes":             func(l *Limits, n *yaml.Node) error { return bytesOf(&l.MaxBytes, n) },
}

// whole reads a number that is not negative and has no fraction.
func whole[T int | int64 | uint64](to *T, n *yaml.Node) error {
	var value float64
	if err := number(&value, n); err != nil {
		return err
	}
	if value != math.Trunc(value) || n.Decode(to) != nil || *to < 0 { // a float64 does not hold every large number
		return fmt.Errorf("%s is not a whole number", n.Value)
	}
	return nil
}

// number reads a number that is not negative.
func number(to *float64, n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if err := n.Decode(to); err != nil || n.Tag == "!!null" {
		return fmt.Errorf("%q is not a number", n.Value)
	}
	if *to < 0 || math.IsInf(*to, 0) || math.IsNaN(*to) {
		return fmt.Errorf("%v is not a limit: it must be positive, or 0 for none", *to)
	}
	return nil
}

// bytesOf reads a number of bytes, with or without a unit.
func bytesOf(to *uint64, n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Tag == "!!int" {
		return whole(to, n)
	}
	size, err := humanize.ParseBytes(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		return fmt.Errorf("%q is not a number of bytes, such as 5000000, 500MB or 20GiB", n.Value)
	}
	*to = size
	return nil
}

// limitsOf reads the quota at a place of the file. Its errors name the fields.
func limitsOf(where string, n *yaml.Node) (l Limits, errs []error) {
	var members map[string]yaml.Node
	if err := yamlfile.Plain(n.Decode(&members)); err != nil {
		return l, []error{fmt.Errorf("%s: not fields of a quota, such as {max_events: 100000}: %w", where, err)}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		set, ok := fields[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s.%s: there is no such field; known are %s", where, name, strings.Join(slices.Sorted(maps.Keys(fields)), ", ")))
			continue
		}
		value := members[name]
		if err := set(&l, &value); err != nil {
			errs = append(errs, fmt.Errorf("%s.%s: %w", where, name, err))
		}
	}
	if l.Requests > 0 && l.Reads > l.Requests {
		errs = append(errs, fmt.Errorf("%s.reads: %d is more than the %d requests, of which they are a part", where, l.Reads, l.Requests))
	}
	return l, errs
}

// stores reports whether a quota bounds what is stored.
func (l *Limits) stores() bool { return l.MaxEvents > 0 || l.MaxBytes > 0 }

// file is the quotas file:
//
//	default: {requests: 8, events_per_second: 500, max_bytes: 20GiB}
//	tenants:
//	  team-a: {requests: 32, events_per_second: 2000}
//
// A listed tenant has its own limits and none of the default ones.
type file struct {
	Default Limits
	Tenants map[string]Limits
}

// parse reads a file. Its error names the tenants and the fields.
func parse(text []byte) (f file, err error) {
	var raw struct {
		Default yaml.Node            `yaml:"default"`
		Tenants map[string]yaml.Node `yaml:"tenants"`
	}
	if err := yamlfile.Decode(text, &raw); err != nil {
		return f, err
	}
	f.Tenants = map[string]Limits{}
	def, errs := limitsOf("default", &raw.Default)
	f.Default = def
	for _, name := range slices.Sorted(maps.Keys(raw.Tenants)) {
		if name == "" || len(name) > events.MaxTenantBytes {
			errs = append(errs, fmt.Errorf("tenants: the name %q is not 1 to %d bytes long", name, events.MaxTenantBytes))
		}
		one := raw.Tenants[name]
		own, wrong := limitsOf("tenants."+name, &one)
		f.Tenants[name], errs = own, append(errs, wrong...)
	}
	return f, errors.Join(errs...)
}

// stores reports whether any tenant has a limit on what is stored.
func (f *file) stores() bool {
	for _, l := range f.Tenants {
		if l.stores() {
			return true
		}
	}
	return f.Default.stores()
}
