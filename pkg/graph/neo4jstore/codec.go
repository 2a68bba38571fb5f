package neo4jstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Codec is what one read model adds to the database: its nodes, and how they are read and written.
// The engine's half is in [Store] and [Tx].
type Codec[U projection.Unit] struct {
	Layout
	// Begin returns the read model's part of a transaction. It may be called again for the same
	// batch, if the transaction was disturbed.
	Begin func(t *Tx) Work[U]
	// Hash returns the hash of a conversation's rows up to the settled sequence of its partition, or
	// a zero Hash if it has none. Leave out sequences and keys; see projection.ReadStore.
	Hash func(ctx context.Context, s *Store[U], id events.ConversationID) (projection.ConversationHash, error)
}

// Work is the read model's part of a transaction: two methods of projection.Tx.
type Work[U projection.Unit] interface {
	// Load prepares the unit of work for these events.
	Load(ctx context.Context, list []*events.Recorded) (U, error)
	// Save adds the changes of the unit to the transaction, with [Tx.Add]. Every event that was
	// applied must leave a node with its claims: add it with [Tx.Claimed], or call [Tx.AddEvents].
	Save(ctx context.Context, u U) error
}

// Layout describes the nodes of a read model and the Cypher that writes them.
//
// Keys begin with the generation, so that generations share labels; make them with [Tx.Key]. The
// engine has nodes of its own, whose labels begin with the projection's name: TokenCostsCheckpoint,
// TokenCostsSettled, TokenCostsFailedEvent and TokenCostsServing for a projection "token-costs".
//
// Readers see a batch before it is settled. So a row that never changes has the sequence of its
// event, and reads leave out those above the Settled node of the conversation's checkpoint:
//
//	MATCH (c:TokenCostsConversation {key: $key}) MATCH (s:TokenCostsSettled {key: c.checkpoint})
type Layout struct {
	Projection   string   // name of the projection
	Conversation string   // label of its conversations, which have key, checkpoint, tenant, id, deleted_seq and sweep
	Event        string   // label of all events it applied, which have conversation, seq, identity, payload_key and content_digest
	Payloads     []string // labels of the events whose payload_key is unique among them; often just Event

	// Schema are statements that create the constraints and indexes of its labels. Each must be safe
	// to repeat: CREATE CONSTRAINT <name> IF NOT EXISTS. Statements for labels of the engine and for
	// the keys of Conversation and Event are not needed.
	Schema []string
	Writes []Piece // the writes of a batch, in order: see [Tx.Add]
	// Statements are further statements of a batch, whose parameters are lists in $in. They are sent
	// once before a writer serves, so that the server has their plans.
	Statements []string
	Link       string   // run after the commit and before settling, for what other partitions may have written during the transaction
	Unlink     []string // run before a repair deletes the conversation $key: they mark what stays and was linked to it, so that Link does that again
	Tidy       []Piece  // run after settling
	Relink     []string // Link, for everything that exists: run when a partition is acquired
	Sweeps     []string // each deletes up to $limit nodes of the conversation $key and returns how many: see [Empty]
	Nodes      []Nodes  // labels besides Conversation and the engine's, children before parents: to remove a generation
}

// Nodes says how to find the nodes of a label that belong to a generation.
type Nodes struct {
	Label string
	// By are the properties after conversation of an index on the label. Without any, nodes are found
	// by a property key.
	By []string
}

// ours are the layouts of the read models that migrations know: their schema is in [migrations].
func ours() []Layout {
	return []Layout{graphLayout, filesLayout, summariesLayout, embeddingsLayout, projectsLayout, insightLayout, codebaseLayout}
}

// prefix begins the engine's labels of a projection: TokenCosts for token-costs.
func prefix(projection string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(projection, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// labelled puts the labels of a projection into a statement of the engine.
func labelled(projection, statement string) string {
	return strings.ReplaceAll(statement, "$Engine", prefix(projection))
}

// dialect holds the Cypher of a read model's store.
type dialect struct {
	Layout
	holders string // looks up $in.keys, and which of $in.conversations were deleted
}

func (l Layout) dialect() dialect {
	d := dialect{l, lookForHolders(l.Conversation, l.Event, l.Payloads...)}
	d.Writes = append(slices.Clip(l.Writes), fail(prefix(l.Projection)))
	return d
}

// schema returns the statements that create the constraints and indexes of a read model.
func (l Layout) schema() []string {
	name := strings.ReplaceAll(l.Projection, "-", "_")
	p := prefix(l.Projection)
	list := []string{
		"CREATE CONSTRAINT " + name + "_checkpoint IF NOT EXISTS FOR (k:" + p + "Checkpoint) REQUIRE k.key IS UNIQUE",
		"CREATE CONSTRAINT " + name + "_settled IF NOT EXISTS FOR (s:" + p + "Settled) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT " + name + "_failed_event IF NOT EXISTS FOR (f:" + p + "FailedEvent) REQUIRE (f.generation, f.seq) IS UNIQUE",
		"CREATE INDEX " + name + "_failed_event_conversation IF NOT EXISTS FOR (f:" + p + "FailedEvent) ON (f.conversation)",
		"CREATE CONSTRAINT " + name + "_serving IF NOT EXISTS FOR (s:" + p + "Serving) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT " + name + "_conversation_key IF NOT EXISTS FOR (c:" + l.Conversation + ") REQUIRE c.key IS UNIQUE",
		"CREATE INDEX " + name + "_conversation_sweep IF NOT EXISTS FOR (c:" + l.Conversation + ") ON (c.sweep)",
		"CREATE CONSTRAINT " + name + "_event_identity IF NOT EXISTS FOR (e:" + l.Event + ") REQUIRE e.identity IS UNIQUE",
		"CREATE CONSTRAINT " + name + "_event_seq IF NOT EXISTS FOR (e:" + l.Event + ") REQUIRE (e.conversation, e.seq) IS UNIQUE",
	}
	for _, label := range l.Payloads {
		list = append(list, "CREATE CONSTRAINT "+name+"_"+strings.ToLower(label)+"_payload_key IF NOT EXISTS FOR (e:"+label+") REQUIRE e.payload_key IS UNIQUE")
	}
	return append(list, l.Schema...)
}

// migrated reports whether migrations make the layout's schema.
func (l Layout) migrated() bool {
	return slices.ContainsFunc(ours(), func(o Layout) bool { return o.Projection == l.Projection })
}

// CheckLayouts refuses layouts that can't be kept in one database: a wrong one, or two that share a
// label. The labels of the engine count, and names that differ only in hyphens have the same ones.
func CheckLayouts(list ...Layout) error {
	for i, l := range list {
		if err := l.check(); err != nil {
			return err
		}
		for _, other := range list[:i] {
			for _, label := range append(l.labels(), l.engine()...) {
				if slices.Contains(append(other.labels(), other.engine()...), label) {
					return fmt.Errorf("the layouts of %s and %s share the label %s; choose another label or name for one", other.Projection, l.Projection, label)
				}
			}
		}
	}
	return nil
}

// engine returns the labels of the engine's nodes.
func (l Layout) engine() []string {
	p := prefix(l.Projection)
	return []string{p + "Checkpoint", p + "Settled", p + "FailedEvent", p + "Serving"}
}

// labels returns the labels that the layout declares.
func (l Layout) labels() []string {
	labels := append([]string{l.Conversation, l.Event}, l.Payloads...)
	for _, n := range l.Nodes {
		labels = append(labels, n.Label)
	}
	return labels
}

// check refuses a layout that would write to labels of mneme or of the engine, or that lacks one.
func (l Layout) check() error {
	if l.migrated() {
		return nil
	}
	for _, o := range ours() {
		if prefix(o.Projection) == prefix(l.Projection) {
			return fmt.Errorf("the layout of %s would share the engine's labels with mneme's %s; choose another name", l.Projection, o.Projection)
		}
	}
	for _, label := range l.labels() {
		if label == "" {
			return fmt.Errorf("the layout of %s needs a label for its conversations and one for its events", l.Projection)
		}
		if slices.ContainsFunc(Labels(), func(ours Label) bool { return ours.Name == label }) {
			return fmt.Errorf("the layout of %s has the label %s, which is mneme's; choose another", l.Projection, label)
		}
		if slices.Contains(l.engine(), label) {
			return fmt.Errorf("the layout of %s has the label %s, which is the engine's; choose another", l.Projection, label)
		}
	}
	return nil
}

// missing returns the statements of the layout's schema whose index or constraint does not exist. The index that
// belongs to a constraint does not prove the constraint: that may still be in the making, or have failed.
func (d *db) missing(ctx context.Context, l Layout) ([]string, error) {
	if l.migrated() {
		return nil, nil
	}
	there := map[string]bool{} // by name of the index
	err := d.scan(ctx, "SHOW INDEXES YIELD name, owningConstraint RETURN name, owningConstraint IS NOT NULL", nil, func(v *values) {
		name := v.text()
		there[name] = v.flag()
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(l.schema(), func(s string) bool {
		constraint, ok := there[nameOf(s)]
		return ok && (constraint || !strings.HasPrefix(s, createConstraint))
	}), nil
}

// Store is one generation of a read model in Neo4j. It implements projection.Store; a read model
// adds its own reads by embedding it and calling Read.
type Store[U projection.Unit] struct {
	store
	codec Codec[U]
}

// Open connects to write one generation of a read model, and makes the schema. It returns the
// errors of the package comment.
func Open[U projection.Unit](ctx context.Context, c Config, generation int, codec Codec[U]) (*Store[U], error) {
	return openStore(ctx, c, generation, codec, false, func(d *db, ctx context.Context) error {
		if err := d.migrate(ctx); err != nil {
			return err
		}
		return d.make(ctx, codec.Layout)
	})
}

// make makes the layout's schema, unless migrations do.
func (d *db) make(ctx context.Context, l Layout) error {
	if l.migrated() {
		return nil
	}
	missing, err := d.missing(ctx, l)
	if err != nil {
		return err
	}
	for _, statement := range missing {
		if err := d.define(ctx, statement); err != nil {
			return fmt.Errorf("schema of %s: %w", l.Projection, err)
		}
	}
	var indexes []Index
	for _, statement := range l.schema() {
		indexes = append(indexes, Index{nameOf(statement), statement})
	}
	return d.awaitIndexes(ctx, indexes)
}

// OpenReader connects to read. Until a writer has made the schema it returns ErrNotThere.
func OpenReader[U projection.Unit](ctx context.Context, c Config, generation int, codec Codec[U]) (*Store[U], error) {
	return openStore(ctx, c, generation, codec, true, func(d *db, ctx context.Context) error {
		if err := d.checkSchema(ctx); err != nil {
			return err
		}
		missing, err := d.missing(ctx, codec.Layout)
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("the schema of %s in %s: %w", codec.Projection, d.URI, ErrNotThere)
		}
		return err
	})
}

func openStore[U projection.Unit](ctx context.Context, c Config, generation int, codec Codec[U], reader bool, check func(*db, context.Context) error) (*Store[U], error) {
	if err := codec.check(); err != nil {
		return nil, err
	}
	d, err := openAnd(ctx, c, check)
	if err != nil {
		return nil, err
	}
	return &Store[U]{store{db: d, dialect: codec.dialect(), generation: generation, reader: reader}, codec}, nil
}

// Update implements projection.Store.
func (s *Store[U]) Update(ctx context.Context, partition int, fn func(projection.Tx[U]) error) error {
	return s.transact(ctx, partition, func(t *Tx) error {
		return fn(struct {
			*Tx
			Work[U]
		}{t, s.codec.Begin(t)})
	})
}

// Hash implements projection.ReadStore.
func (s *Store[U]) Hash(ctx context.Context, id events.ConversationID) (projection.ConversationHash, error) {
	return s.codec.Hash(ctx, s, id)
}

// Hashes implements projection.ReadStore.
func (s *Store[U]) Hashes(ctx context.Context, yield func(projection.ConversationHash) error) error {
	return s.hashes(ctx, s.Hash, yield)
}

// Warm sends a writer's statements once, with nothing to write: Neo4j plans a statement on first
// use, which takes a freshly started server up to a second each.
func (s *Store[U]) Warm(ctx context.Context) error { return s.warm(ctx) }
