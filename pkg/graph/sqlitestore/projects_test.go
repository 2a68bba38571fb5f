package sqlitestore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/project"
)

func TestMembersAreReadFromAFileOfAnEarlierVersionWithoutTheIndexOfIds(t *testing.T) {
	t.Parallel()
	s, err := OpenProjects(t.Context(), Path(t.TempDir(), "projects", 1))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	h := storetest.NewHistory()
	for i := range 3 {
		h.Add(fmt.Sprint("c", i), &events.ConversationStarted{Project: "p"})
	}
	declared := project.Projection(files.DefaultTable())
	cp, err := s.Acquire(t.Context(), 0, declared.Fingerprint())
	require.NoError(t, err)
	_, err = declared.Apply(t.Context(), s, cp, h.Messages)
	require.NoError(t, err)
	query := project.MemberQuery{Kind: project.KindIn, Names: []string{"p"}, AsOf: graph.Latest, Limit: 2}
	members, err := s.Members(t.Context(), "t", query)
	require.NoError(t, err)
	require.Len(t, members, 2)
	require.Equal(t, "c2", members[0].Conversation.ID)

	_, err = s.db.writer.ExecContext(t.Context(), "DROP INDEX conversation_ids")
	require.NoError(t, err)
	without, err := s.Members(t.Context(), "t", query)
	require.NoError(t, err)
	require.Equal(t, members, without)
}
