package neo4jstore

import (
	"context"

	"mneme.dev/mneme/pkg/projection"
)

// keptBytes says what a client of Neo4j cannot clear.
const keptBytes = "the rows are deleted, but Neo4j keeps their bytes in free records of its store files until it reuses them, in segments of its full-text indexes until they are merged, and in its transaction logs until they rotate. " +
	"To clear them, stop mneme's programs and Neo4j, remove the folders databases and transactions of this database from its data folder, and start Neo4j and then the programs, which fill it from the log; in the Enterprise edition, neo4j-admin database copy instead writes a store without deleted records"

// Clean implements projection.Cleaner: it has the full-text indexes apply their deletions and asks for a checkpoint,
// after which old transaction logs may be pruned. Cleaned.Left says what Neo4j keeps nevertheless. If the user may not
// run these procedures, or the server has none for a checkpoint, such as the Community edition, the result is the same
// a little later: by default a checkpoint comes every 15 minutes.
func (s *store) Clean(ctx context.Context) (projection.Cleaned, error) {
	if err := ctx.Err(); err != nil {
		return projection.Cleaned{}, err
	}
	for _, procedure := range []string{"CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()", "CALL db.checkpoint()"} {
		_, _ = s.write(ctx, procedure, nil)
	}
	return projection.Cleaned{Left: keptBytes}, nil
}
