package neo4jstore

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/graph"
)

// The read models of mneme have their schema in migrations; others get it from their layouts. Both
// must make the same constraints and indexes, whatever their names.
func TestMigrationsMakeWhatLayoutsNeed(t *testing.T) {
	of := regexp.MustCompile(`FOR \(\w+:(\w+)\) (?:REQUIRE|ON) (.+?)(?: IS UNIQUE)?$`)
	variable := regexp.MustCompile(`\b\w+\.`)
	key := func(statement string) string {
		m := of.FindStringSubmatch(statement)
		if m == nil {
			return statement
		}
		return m[1] + " " + strings.Trim(variable.ReplaceAllString(m[2], ""), "()")
	}
	made := map[string]bool{}
	for _, index := range Indexes() {
		made[key(index.Statement)] = true
	}
	for _, l := range ours() {
		for _, statement := range l.schema() {
			if strings.Contains(statement, "GraphEvent) REQUIRE (e.conversation, e.seq)") {
				continue // each kind of event has an index of its own
			}
			require.True(t, made[key(statement)], "%s: %s", l.Projection, statement)
		}
	}
}

func TestPrefix(t *testing.T) {
	require.Equal(t, "Graph", prefix("graph"))
	require.Equal(t, "TokenCosts", prefix("token-costs"))
}

func TestALayoutHasLabelsOfItsOwn(t *testing.T) {
	codec := Codec[*graph.FilesUnit]{Layout: Layout{Projection: "mine", Conversation: "MyConversation", Event: "MyEvent"}}
	require.NoError(t, codec.check())
	codec.Nodes = []Nodes{{Label: "Message"}}
	_, err := Open(t.Context(), Config{}, 1, codec)
	require.EqualError(t, err, "the layout of mine has the label Message, which is mneme's; choose another")
	codec.Nodes, codec.Event = nil, ""
	_, err = OpenReader(t.Context(), Config{}, 1, codec)
	require.EqualError(t, err, "the layout of mine needs a label for its conversations and one for its events")
	for _, l := range ours() {
		require.NoError(t, l.check())
	}
}
