package neo4jstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// migration is one step of the schema. Never change a released one: a test and every
// database record its checksum.
type migration struct {
	name       string
	statements []string // each in a separate transaction; safe to repeat
}

// checksum identifies a migration in the database.
func (m migration) checksum() string {
	sum := sha256.Sum256([]byte(m.name + "\n" + strings.Join(m.statements, "\n")))
	return hex.EncodeToString(sum[:])
}

// migrate applies the missing migrations. Several processes may do so at once.
func (d *db) migrate(ctx context.Context) error {
	applied, err := d.migrations(ctx)
	if err != nil {
		return err
	}
	if len(applied) == 0 {
		if err := d.checkForeign(ctx); err != nil {
			// Or another process has made the schema and begun to write.
			if applied, _ = d.migrations(ctx); len(applied) == 0 {
				return err
			}
		}
	}
	for n := len(applied); n < len(migrations); n++ {
		if err := d.apply(ctx, n); err != nil {
			return fmt.Errorf("schema %d, %s: %w", n+1, migrations[n].name, err)
		}
	}
	return d.awaitIndexes(ctx, Indexes())
}

// apply applies one migration.
func (d *db) apply(ctx context.Context, n int) error {
	m := migrations[n]
	for _, statement := range m.statements {
		if err := d.define(ctx, statement); err != nil {
			return err
		}
	}
	_, err := d.write(ctx, "MERGE (s:MnemeSchema {n: $n}) ON CREATE SET s.name = $name, s.sha256 = $sha256, s.at = datetime()",
		map[string]any{"n": n + 1, "name": m.name, "sha256": m.checksum()})
	return err
}

// definePatience is how long other processes may take to make the same constraint or index.
const definePatience = time.Minute

// define makes a constraint or an index unless it exists. IF NOT EXISTS checks first, so if
// two processes make the same one at once, one of them fails; on retry it finds it.
func (d *db) define(ctx context.Context, statement string) error {
	if label := movedFrom[statement]; label != "" {
		return d.dropOnce(ctx, statement, label)
	}
	began := time.Now()
	for attempt := 1; ; attempt++ {
		_, err := d.write(ctx, statement, nil)
		deadlocked := strings.HasSuffix(codeOf(err), ".DeadlockDetected") // a deadlock with another process can last longer than a write is retried
		if !contested(err) && !deadlocked || time.Since(began) > definePatience {
			return err
		}
		if attempt == 1 {
			continue
		}
		if !deadlocked {
			if err := d.dropRemains(ctx, statement); err != nil {
				return err
			}
		}
		select {
		case <-time.After(10*time.Millisecond + rand.N(90*time.Millisecond)):
		case <-ctx.Done():
			return err
		}
	}
}

// dropPatience is how long the process that drops an index may keep others waiting.
const dropPatience = 30 * time.Second

const (
	selectMoving = "SHOW INDEXES YIELD name, labelsOrTypes WHERE name = $name AND $label IN labelsOrTypes RETURN name"
	// The first SET takes the lock.
	claimDrop = "MATCH (s:MnemeSchema {n: 1}) SET s.n = s.n WITH s WHERE coalesce(s.dropping < datetime.realtime() - $patience, true) SET s.dropping = datetime.realtime() RETURN s.n"
)

// dropOnce drops an index that is made again on another label. Only one of several
// concurrent processes may drop it: another would drop the index that the first has just
// made, while others wait for that to come online.
func (d *db) dropOnce(ctx context.Context, statement, label string) error {
	params := map[string]any{"name": droppedBy(statement), "label": label, "patience": neo4j.DurationOf(0, 0, int64(dropPatience.Seconds()), 0)}
	for claimed := false; ; {
		rows, err := d.Read(ctx, selectMoving, params)
		if err != nil || len(rows) == 0 { // another process has dropped it
			return err
		}
		if claimed {
			_, err := d.write(ctx, statement, nil)
			return err
		}
		if rows, err = d.write(ctx, claimDrop, params); err != nil {
			return err
		}
		if claimed = len(rows) > 0; claimed {
			continue // another process may have dropped it
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// droppedBy returns the name of the index that a statement drops, "" if none.
func droppedBy(statement string) string {
	name, ok := strings.CutPrefix(statement, "DROP INDEX ")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, " IF EXISTS")
}

// contested reports whether another process makes, or has made, the same constraint or index.
func contested(err error) bool {
	code := codeOf(err)
	return strings.HasPrefix(code, "Neo.ClientError.Schema.") && strings.HasSuffix(code, "AlreadyExists") || strings.HasSuffix(code, ".Schema.ConstraintCreationFailed")
}

const createConstraint = "CREATE CONSTRAINT "

// dropRemains drops the remains of a constraint if the server died while making it. The
// server makes the index first, in a separate transaction. Without its constraint that index
// never comes online, and its name is taken.
func (d *db) dropRemains(ctx context.Context, statement string) error {
	rest, ok := strings.CutPrefix(statement, createConstraint)
	if !ok {
		return nil
	}
	name, _, _ := strings.Cut(rest, " ")
	making, err := d.Read(ctx, "SHOW TRANSACTIONS YIELD currentQuery WHERE currentQuery STARTS WITH $statement RETURN currentQuery", map[string]any{"statement": createConstraint + name + " "})
	if err != nil || len(making) > 0 {
		return err
	}
	remains, err := d.Read(ctx, "SHOW INDEXES YIELD name, owningConstraint WHERE name = $name AND owningConstraint IS NULL RETURN name", map[string]any{"name": name})
	if err != nil || len(remains) == 0 {
		return err
	}
	_, err = d.write(ctx, "DROP INDEX "+name+" IF EXISTS", nil)
	if code := codeOf(err); strings.HasPrefix(code, "Neo.") && strings.Contains(code, ".Schema.") { // it now belongs to a constraint
		return nil
	}
	return err
}

// checkSchema makes sure that a reader knows the database's schema. It returns ErrNotThere
// until a writer has made the schema.
func (d *db) checkSchema(ctx context.Context) error {
	applied, err := d.migrations(ctx)
	if err != nil {
		return err
	}
	if len(applied) < len(migrations) {
		return fmt.Errorf("schema %d of %d in %s: %w", len(applied), len(migrations), d.URI, ErrNotThere)
	}
	return nil
}

const selectMigrations = "MATCH (s:MnemeSchema) RETURN s.n, s.sha256, s.name ORDER BY s.n"

// migrations lists the checksums of the database's migrations, and refuses unknown ones.
func (d *db) migrations(ctx context.Context) ([]string, error) {
	rows, err := d.Read(ctx, selectMigrations, nil)
	if err != nil {
		return nil, err
	}
	var list []string
	for i, row := range rows {
		n, _ := row[0].(int64)
		sum, _ := row[1].(string)
		if i >= len(migrations) {
			return nil, fmt.Errorf("%w: it is at schema %d, this program knows %d; use a newer mneme, or another database", ErrSchema, len(rows), len(migrations))
		}
		if int(n) != i+1 || sum != migrations[i].checksum() {
			return nil, fmt.Errorf("%w: its schema %d, %v, is not the one that this program makes; use the build that made it, or another database", ErrSchema, n, row[2])
		}
		list = append(list, sum)
	}
	return list, nil
}

// checkForeign looks for nodes with our labels in a database that mneme never wrote to.
func (d *db) checkForeign(ctx context.Context) error {
	var ours []string
	for _, label := range Labels() {
		ours = append(ours, label.Name)
	}
	rows, err := d.Read(ctx, "MATCH (n:"+strings.Join(ours, "|")+") WITH n LIMIT 1 UNWIND labels(n) AS label WITH label WHERE label IN $ours RETURN label", map[string]any{"ours": ours})
	if err == nil && len(rows) > 0 {
		err = fmt.Errorf("%w: nodes labelled %v in %s that mneme did not make; give mneme a Neo4j of its own", ErrForeign, rows[0][0], d.URI)
	}
	return err
}

const (
	// indexPatience is how long new indexes may take.
	indexPatience = 5 * time.Minute
	// indexPause is the time between two looks at indexes that are being made.
	indexPause = 100 * time.Millisecond

	selectPending = "SHOW INDEXES YIELD name, state, populationPercent WHERE name IN $names AND state <> 'ONLINE' RETURN name, state, populationPercent ORDER BY name"
)

// awaitIndexes waits until these indexes are online. It does not wait for all indexes of the
// server, as db.awaitIndexes does: the index of a constraint that another program is making, or gave
// up on, comes online late or never.
func (d *db) awaitIndexes(ctx context.Context, list []Index) error {
	names := make([]string, len(list))
	for i, index := range list {
		names[i] = index.Name
	}
	for began := time.Now(); ; {
		pending, err := d.Read(ctx, selectPending, map[string]any{"names": names})
		if err != nil || len(pending) == 0 {
			return err
		}
		for _, row := range pending {
			if row[1] == "FAILED" {
				return fmt.Errorf("index %v could not be made: drop it and start again", row[0])
			}
		}
		if waited := time.Since(began); waited > indexPatience {
			return fmt.Errorf("index %v has been made to %.0f %% in %s: start again, or drop it if that stays so", pending[0][0], pending[0][2], waited.Round(time.Second))
		}
		select {
		case <-time.After(indexPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
