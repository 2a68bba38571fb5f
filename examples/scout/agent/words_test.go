package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeywords(t *testing.T) {
	t.Parallel()
	for question, want := range map[string][]string{
		"where is the lantern written?":                    {"lantern", "writ"},
		"Where are lanterns written, and who writes?":      {"lantern", "writ"},
		"how does StartEmbedded lock its directory?":       {"startembedded", "lock", "start", "embed"},
		"what is max_payload in server.conf?":              {"max_payload", "server.conf", "max", "payload", "server", "conf"},
		"what is `Nats-Msg-Id` for?":                       {"nats-msg-id"},
		`who says "not a text" and when?`:                  {"not a text", "says"},
		"which function is called?":                        {"function", "call"},
		"where is it?":                                     nil,
		"":                                                 nil,
		"where's the queue's size?":                        {"queu", "size"},
		"alpha beta gamma delta epsilon zetas etas thetas": {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"},
		"où est écrit le checkpoint ?":                     {"écrit", "checkpoint"},
	} {
		var got []string
		for _, w := range keywords(question) {
			got = append(got, w.stem)
		}
		require.Equal(t, want, got, question)
	}
}

func TestStem(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"writ":    {"write", "writes", "writing", "written", "writings"},
		"publish": {"publish", "published", "publishes", "publishing"},
		"stor":    {"store", "stores", "stored", "storing"},
		"call":    {"call", "calls", "called", "calling"},
		"class":   {"class", "classes"},
		"token":   {"token", "tokens"},
		"valid":   {"validation", "validations"},
		"set":     {"set"},
		"send":    {"sent"},
	} {
		for _, w := range words {
			require.Equal(t, want, stem(w), w)
		}
	}
}

func TestWordIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stem, line string
		want       bool
	}{
		{"appl", "apply it", true},
		{"stor", "the fileStore keeps", true},
		{"stor", "file_store", true},
		{"stor", "a history of", false},
		{"leas", "all leases", true},
		{"leas", "at least", false},
		{"writ", "overwritten, then written", true},
		{"lantern", "Lanterning", true},
		{"lantern", "nolantern", false},
		{"go", "İ go", true}, // whose lower case is longer
	} {
		require.Equal(t, c.want, word{stem: c.stem}.in(c.line), "%s in %s", c.stem, c.line)
	}
}
