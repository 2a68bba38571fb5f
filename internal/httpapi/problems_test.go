package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

// The text of a reason may change or be translated, so no status may depend on it.
func TestTheStatusDoesNotDependOnTheReasonText(t *testing.T) {
	t.Parallel()
	status := func(err error) int {
		var model *huma.ErrorModel
		require.ErrorAs(t, err, &model)
		return model.Status
	}
	for _, reason := range []string{"is 9 bytes long, the limit is 8", "is too big", ""} {
		for field, want := range map[string]int{"body": http.StatusBadRequest, "data": http.StatusUnprocessableEntity, "id": http.StatusUnprocessableEntity, "content-type": http.StatusUnsupportedMediaType} {
			require.Equal(t, want, status(httpapi.InvalidEvent(&events.Invalid{Field: field, Reason: reason}, "body")), "%s: %s", field, reason)
		}
		require.Equal(t, http.StatusRequestEntityTooLarge, status(httpapi.InvalidEvent(&events.Invalid{Field: "body", Reason: reason, TooLarge: true}, "body")), reason)
	}
	_, err := events.DecodeStructured([]byte(strings.Repeat(" ", events.MaxEventBytes+1)))
	var invalid *events.Invalid
	require.True(t, errors.As(err, &invalid))
	require.Equal(t, http.StatusRequestEntityTooLarge, status(httpapi.InvalidEvent(invalid, "body")))
}
