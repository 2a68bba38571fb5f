package natsdeploy

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"mneme/events"
)

// Names in an IncompatibleError that are no field of the stream's configuration.
const (
	fieldSchema     = "schema"
	fieldPartitions = "partitions"
)

// ungoverned are the fields that are the operator's to choose. Every other
// field is compared, those of a later client library included, so that a new
// feature cannot be switched on unseen.
var ungoverned = map[string]bool{
	"Description": true,
	"Placement":   true, // which servers of a cluster hold it
	"Metadata":    true, // the server and tools add keys; ours is compared apart
}

// compare says whether an existing stream is the one these settings ask for:
// nil, or an *IncompatibleError for the first difference, the gravest first.
func compare(have jetstream.StreamConfig, s Settings) error {
	if v := have.Metadata[schemaKey]; v != schemaVersion {
		return &IncompatibleError{Field: fieldSchema, Have: strconv.Quote(v), Want: strconv.Quote(schemaVersion)}
	}
	if s.DuplicateWindow == 0 {
		s.DuplicateWindow = have.Duplicates
	}
	s = s.withDefaults()
	if n, ok := partitions(have); ok && n != s.Partitions {
		return &IncompatibleError{Field: fieldPartitions, Have: strconv.Itoa(n), Want: strconv.Itoa(s.Partitions)}
	}
	if have.MaxBytes > 0 { // how large it is, is for an operator to say; a limit there must be
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

// partitions reads the number of partitions back from the subject transform;
// not ok if the transform is not one of ours.
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
