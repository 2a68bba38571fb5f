package natsdeploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/events"
)

// Names in an IncompatibleError that are not fields of the stream's configuration.
const (
	fieldSchema = "schema"
	fieldCopy   = "it"
)

// ungoverned lists the fields that operators may choose. All others are
// compared, including fields of a later client library, so that a new feature
// cannot be switched on unnoticed.
var ungoverned = map[string]bool{
	"Description": true,
	"Placement":   true, // which servers of a cluster hold it
	"Replicas":    true, // how many hold it; [Split] needs another number while programs run
	"Metadata":    true, // the server and tools add keys; ours is compared separately
}

// compare returns nil if an existing stream has these settings, else an
// *IncompatibleError for the most serious difference.
func compare(have jetstream.StreamConfig, s Settings) error {
	if IsRestoring(have) {
		return ErrRestoring
	}
	if v := have.Metadata[schemaKey]; v != schemaVersion && v != splitSchema {
		if have.Mirror != nil || len(have.Sources) > 0 {
			return &IncompatibleError{Field: fieldCopy, Have: "a copy that NATS makes of another stream", Want: "the log itself"}
		}
		return &IncompatibleError{Field: fieldSchema, Have: strconv.Quote(v), Want: strconv.Quote(schemaVersion)}
	}
	s.DuplicateWindow = cmp.Or(s.DuplicateWindow, have.Duplicates)
	s = s.withDefaults()
	if have.MaxBytes > 0 { // operators choose the size, but there must be a limit
		s.MaxBytes = have.MaxBytes
	}
	h, w := reflect.ValueOf(have), reflect.ValueOf(StreamConfig(s))
	for i := range h.NumField() {
		field := h.Type().Field(i)
		if ungoverned[field.Name] || reflect.DeepEqual(h.Field(i).Interface(), w.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		return &IncompatibleError{Field: name, Have: show(h.Field(i)), Want: show(w.Field(i))}
	}
	return nil
}

// PutBack gives the configuration of a log, as JSON, the settings that this program needs, where somebody has changed
// them: some, such as deny_delete, the server never takes back from a stream that exists. What operators may choose stays.
func PutBack(config map[string]json.RawMessage) error {
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	var have jetstream.StreamConfig
	if err := json.Unmarshal(text, &have); err != nil {
		return err
	}
	wanted, err := json.Marshal(StreamConfig(Settings{MaxBytes: max(have.MaxBytes, 0), DuplicateWindow: have.Duplicates}))
	if err != nil {
		return err
	}
	var want map[string]json.RawMessage
	if err := json.Unmarshal(wanted, &want); err != nil {
		return err
	}
	for field := range reflect.TypeFor[jetstream.StreamConfig]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if ungoverned[field.Name] || field.Name == "SubjectTransform" { // the partitions
			continue
		}
		if value, set := want[name]; set {
			config[name] = value
		} else {
			delete(config, name)
		}
	}
	return nil
}

// partitions reads the number of partitions back from the subject transform.
// ok is false if mneme did not make the transform.
func partitions(cfg jetstream.StreamConfig) (n int, ok bool) {
	if cfg.SubjectTransform == nil {
		return 0, false
	}
	_, after, _ := strings.Cut(cfg.SubjectTransform.Destination, "partition(")
	digits, _, _ := strings.Cut(after, ",")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || cfg.SubjectTransform.Destination != events.StoredDestination(n) {
		return 0, false
	}
	return n, true
}

func show(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "unset"
		}
		v = v.Elem()
	}
	return fmt.Sprintf("%+v", v.Interface())
}
