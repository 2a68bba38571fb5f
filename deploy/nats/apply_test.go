package natsdeploy_test

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
)

func TestApplyCreatesOnceAndIsIdempotent(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{MaxBytes: 1 << 20})
	js := connect(t, e)

	_, err := natsdeploy.Inspect(t.Context(), js)
	require.ErrorIs(t, err, natsdeploy.ErrNoStream)

	s := natsdeploy.Settings{Partitions: 8, MaxBytes: 1 << 20, DuplicateWindow: time.Minute}
	info, err := natsdeploy.Apply(t.Context(), js, s)
	require.NoError(t, err)
	require.True(t, info.Created)
	require.Equal(t, 8, info.Partitions)
	first := config(t, js)

	again, err := natsdeploy.Apply(t.Context(), js, s)
	require.NoError(t, err)
	require.False(t, again.Created)
	_, err = natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{Partitions: 8})
	require.NoError(t, err, "neither size nor window asked for: the stream's own")
	larger, err := natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{Partitions: 8, MaxBytes: 2 << 20})
	require.NoError(t, err)
	require.Equal(t, again, larger, "the stream keeps its initial size")
	inspected, err := natsdeploy.Inspect(t.Context(), js)
	require.NoError(t, err)
	require.Equal(t, again, inspected)
	require.Equal(t, first, config(t, js))
}

func TestAnotherStreamWithTheSubjectsOfTheLogIsNamed(t *testing.T) {
	t.Parallel()
	js := connect(t, start(t, embedded.Config{MaxBytes: 1 << 20}))
	copied := natsdeploy.StreamConfig(natsdeploy.Settings{MaxBytes: 1 << 20})
	copied.Name = "COPY"
	_, err := js.CreateStream(t.Context(), copied)
	require.NoError(t, err)
	_, err = natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{MaxBytes: 1 << 20})
	require.ErrorIs(t, err, natsdeploy.ErrIncompatible, "waiting does not help")
	require.ErrorContains(t, err, "COPY")
}

// As on servers that take over when those of the log are lost.
func TestACopyThatNATSMakesOfTheLogIsNotTakenForTheLogOfAnotherVersion(t *testing.T) {
	t.Parallel()
	from := &jetstream.StreamSource{Name: natsdeploy.Stream, External: &jetstream.ExternalStream{APIPrefix: "$JS.elsewhere.API"}}
	for _, made := range []jetstream.StreamConfig{{Mirror: from}, {Sources: []*jetstream.StreamSource{from}}} {
		js := connect(t, start(t, embedded.Config{MaxBytes: 1 << 20}))
		made.Name = natsdeploy.Stream
		_, err := js.CreateStream(t.Context(), made)
		require.NoError(t, err)
		_, err = natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{MaxBytes: 1 << 20})
		require.ErrorIs(t, err, natsdeploy.ErrIncompatible)
		require.ErrorContains(t, err, "it is a copy that NATS makes of another stream")
		require.ErrorContains(t, err, "save the copy with `nats stream backup", "it may hold the newest events")
		require.ErrorContains(t, err, "mneme restore")
	}
}

func TestManyProgramsMayApplyAtOnce(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	const programs = 8
	var wg sync.WaitGroup
	infos, errs := make([]natsdeploy.Info, programs), make([]error, programs)
	for i := range programs {
		js := connect(t, e)
		wg.Go(func() {
			infos[i], errs[i] = natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{MaxBytes: 1 << 20, Partitions: 1 + i%2})
		})
	}
	wg.Wait()
	info, err := natsdeploy.Inspect(t.Context(), connect(t, e))
	require.NoError(t, err)
	for i := range programs {
		require.NoError(t, errs[i])
		require.Equal(t, info.Partitions, infos[i].Partitions, "the log's, whatever was asked for")
	}
}

func TestAStreamWithOtherSettingsIsRefusedAndNotChanged(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		field  string
		change func(*jetstream.StreamConfig)
	}{
		{"schema", func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{natsdeploy.SchemaKey: "3"} }},
		{"mneme.splits", func(c *jetstream.StreamConfig) { c.Metadata["mneme.splits"] = "8:x" }},
		{"subject_transform", func(c *jetstream.StreamConfig) { c.SubjectTransform = nil }},
		{"subject_transform", func(c *jetstream.StreamConfig) {
			c.SubjectTransform.Destination = "ev.{{partition(2,1)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}"
		}},
		{"subjects", func(c *jetstream.StreamConfig) { c.Subjects = []string{"mneme.>"} }},
		{"retention", func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }},
		{"max_consumers", func(c *jetstream.StreamConfig) { c.MaxConsumers = 5 }},
		{"max_msgs", func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }},
		{"max_bytes", func(c *jetstream.StreamConfig) { c.MaxBytes = -1 }},
		{"discard", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{"discard_new_per_subject", func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject, c.MaxMsgsPerSubject = true, 1 }},
		{"max_age", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"max_msgs_per_subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }},
		{"max_msg_size", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1 << 20 }},
		{"storage", func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
		{"no_ack", func(c *jetstream.StreamConfig) { c.NoAck, c.AllowAtomicPublish = true, false }},
		{"duplicate_window", func(c *jetstream.StreamConfig) { c.Duplicates = time.Minute }},
		{"deny_delete", func(c *jetstream.StreamConfig) { c.DenyDelete = true }},
		{"deny_purge", func(c *jetstream.StreamConfig) { c.DenyPurge = true }},
		{"allow_rollup_hdrs", func(c *jetstream.StreamConfig) { c.AllowRollup = true }},
		// Here the server itself switches roll-ups on.
		{"allow_rollup_hdrs", func(c *jetstream.StreamConfig) { c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = true, time.Minute }},
		// The server refuses schedules, and async persistence with batches, together with our settings.
		{"discard", func(c *jetstream.StreamConfig) { c.AllowMsgSchedules, c.Discard = true, jetstream.DiscardOld }},
		{"allow_atomic", func(c *jetstream.StreamConfig) {
			c.PersistMode, c.AllowAtomicPublish = jetstream.AsyncPersistMode, false
		}},
		{"compression", func(c *jetstream.StreamConfig) { c.Compression = jetstream.S2Compression }},
		{"first_seq", func(c *jetstream.StreamConfig) { c.FirstSeq = 100 }},
		{"republish", func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "copy.>"}
		}},
		{"allow_direct", func(c *jetstream.StreamConfig) { c.AllowDirect = false }},
		{"consumer_limits", func(c *jetstream.StreamConfig) { c.ConsumerLimits.MaxAckPending = 7 }},
		{"allow_msg_ttl", func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
		{"allow_atomic", func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }},
		{"allow_batched", func(c *jetstream.StreamConfig) { c.AllowBatchPublish = true }},
	} {
		t.Run(tc.field, func(t *testing.T) {
			t.Parallel()
			e := start(t, embedded.Config{})
			js := connect(t, e)
			s := natsdeploy.Settings{Partitions: 2, MaxBytes: 1 << 20, DuplicateWindow: natsdeploy.DefaultDuplicateWindow}
			foreign := natsdeploy.StreamConfig(s)
			tc.change(&foreign)
			_, err := js.CreateStream(t.Context(), foreign)
			require.NoError(t, err)
			before := config(t, js)

			_, err = natsdeploy.Apply(t.Context(), js, s)
			require.ErrorIs(t, err, natsdeploy.ErrIncompatible)
			var incompatible *natsdeploy.IncompatibleError
			require.ErrorAs(t, err, &incompatible)
			require.Equal(t, tc.field, incompatible.Field)
			require.NotEqual(t, incompatible.Have, incompatible.Want)
			require.Equal(t, before, config(t, js))
		})
	}
}

func TestEveryStreamFieldIsComparedOrLeftToOperators(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[jetstream.StreamConfig]()
	for i := range fields.NumField() {
		have := natsdeploy.StreamConfig(natsdeploy.Settings{})
		field := reflect.ValueOf(&have).Elem().Field(i)
		switch field.Kind() {
		case reflect.Bool:
			field.SetBool(!field.Bool())
		case reflect.String:
			field.SetString("other")
		case reflect.Int, reflect.Int32, reflect.Int64:
			field.SetInt(field.Int() + 1)
		case reflect.Uint64, reflect.Uint8:
			field.SetUint(field.Uint() + 1)
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 3, 3))
		case reflect.Struct:
			have.ConsumerLimits.MaxAckPending = 1
		case reflect.Map:
			have.Metadata["other"] = "key"
		}
		if have.MaxBytes > natsdeploy.DefaultMaxBytes { // any size is accepted, a missing limit is not
			have.MaxBytes = -1
		}
		require.False(t, reflect.DeepEqual(have, natsdeploy.StreamConfig(natsdeploy.Settings{})), "%s was not changed", fields.Field(i).Name)
		err := natsdeploy.Compare(have, natsdeploy.Settings{MaxBytes: natsdeploy.DefaultMaxBytes, DuplicateWindow: natsdeploy.DefaultDuplicateWindow})
		if natsdeploy.Ungoverned[fields.Field(i).Name] {
			require.NoError(t, err, fields.Field(i).Name)
		} else {
			require.ErrorIs(t, err, natsdeploy.ErrIncompatible, fields.Field(i).Name)
		}
	}
}

func TestALogKeepsItsPartitionsWhateverIsAsked(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	_, err := e.Apply(t.Context(), natsdeploy.Settings{Partitions: 8})
	require.NoError(t, err)
	for _, asked := range []int{0, 4, 16} {
		info, err := e.Apply(t.Context(), natsdeploy.Settings{Partitions: asked})
		require.NoError(t, err)
		require.Equal(t, 8, info.Partitions)
	}
}

func TestOperatorsMayChangeTheirFields(t *testing.T) {
	t.Parallel()
	have := natsdeploy.StreamConfig(natsdeploy.Settings{})
	have.Description, have.MaxBytes, have.Placement, have.Replicas = "ours", 1<<20, &jetstream.Placement{Cluster: "west"}, 3
	have.Metadata["_nats.ver"] = "2.15.2"
	require.NoError(t, natsdeploy.Compare(have, natsdeploy.Settings{}))
}

func TestInspectRefusesAStreamThatMnemeDidNotMake(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	js := connect(t, e)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: natsdeploy.Stream, Subjects: []string{events.PublishFilter}})
	require.NoError(t, err)
	_, err = natsdeploy.Inspect(t.Context(), js)
	require.ErrorIs(t, err, natsdeploy.ErrIncompatible)
	require.ErrorContains(t, err, "schema")
}

func TestImpossibleSettingsAreRefusedBeforeCreation(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	for _, s := range []natsdeploy.Settings{{Partitions: -1}, {Partitions: natsdeploy.MaxPartitions + 1}, {MaxBytes: -1}, {Replicas: 3}, {DuplicateWindow: time.Hour}} {
		_, err := e.Apply(t.Context(), s)
		require.Error(t, err, "%+v", s)
	}
	_, err := natsdeploy.Inspect(t.Context(), connect(t, e))
	require.ErrorIs(t, err, natsdeploy.ErrNoStream)
}
