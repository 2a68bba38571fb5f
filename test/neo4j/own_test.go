package neo4j_test

import (
	"testing"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
)

// own is a server that tests kill and restart.
type own struct {
	t      *testing.T          // of all steps
	dir    string              // for the next start
	server *neo4jdeploy.Server // of the last start
}

// start starts the server with other settings.
func (o *own) start(options ...func(*neo4jdeploy.Config)) {
	o.t.Helper()
	o.server = neo4jtest.Own(o.t, append(options, func(c *neo4jdeploy.Config) { c.Dir = o.dir })...)
}

// restart restarts the server at the same address after a kill.
func (o *own) restart() {
	o.t.Helper()
	o.server = neo4jtest.Restart(o.t, o.server)
}

// TestAServerThatIsKilledOrTooSmall runs on one server one after the other what kills it or needs
// its settings, because a server that starts uses more processor time than any of the tests.
func TestAServerThatIsKilledOrTooSmall(t *testing.T) {
	t.Parallel()
	o := &own{t: t}
	for _, step := range []struct {
		name string
		test func(*testing.T, *own)
	}{
		{"it dies while the schema is made", diesWhileTheSchemaIsMade},
		{"programs wait while it is absent and skip nothing", isAbsent},
		{"it has little memory", hasLittleMemory},
		{"nothing is lost when it and mneme are killed", isKilledLikeMneme},
		{"nothing of an erased conversation is left in its files once they are filled again", leavesNothingOfAnErasedConversation},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, o) }) {
			return
		}
	}
}
