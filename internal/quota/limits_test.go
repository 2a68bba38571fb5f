package quota

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFileSaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	q := open(t, `
default: {requests: 8, max_bytes: 20GiB}
tenants:
  a: {events_per_second: 0.5, bytes_per_second: 5MB, max_events: 1000000, max_bytes: 1000}
  unbounded: {}
  nothing:
`)
	require.Equal(t, Limits{Requests: 8, MaxBytes: 20 << 30}, q.of("other"))
	require.Equal(t, Limits{Events: 0.5, Bytes: 5e6, MaxEvents: 1e6, MaxBytes: 1000}, q.of("a"))
	require.Equal(t, Limits{}, q.of("unbounded"), "a tenant that is listed has none of the default's limits")
	require.Equal(t, Limits{}, q.of("nothing"))
}

func TestTheLargestNumberIsALimit(t *testing.T) {
	t.Parallel()
	q := open(t, `
default: {model_tokens_per_hour: 9223372036854775807, model_calls_per_hour: 9223372036854775807, max_events: 18446744073709551615, max_bytes: 9007199254740993}
tenants:
  a: {model_tokens_per_hour: 1e9}
`)
	require.Equal(t, Limits{Tokens: math.MaxInt64, Calls: math.MaxInt, MaxEvents: math.MaxUint64, MaxBytes: 1<<53 + 1}, q.of("other"))
	require.Equal(t, Limits{Tokens: 1e9}, q.of("a"))
}

func TestAWrongFileIsRefusedWithTheTenantAndTheField(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"default: {max_event: 5}":                              `default.max_event: there is no such field; known are bytes_per_second, events_per_second, max_bytes, max_events, model_calls_per_hour, model_cost_per_hour, model_tokens_per_hour, reads, requests`,
		"tenants: {a: {max_events: -1}}":                       `tenants.a.max_events: -1 is not a limit: it must be positive, or 0 for none`,
		"tenants: {a: {max_events: 1.5}}":                      `tenants.a.max_events: 1.5 is not a whole number`,
		"tenants: {a: {max_events: 5k}}":                       `tenants.a.max_events: "5k" is not a number`,
		"tenants: {a: {max_events: 1e30}}":                     `tenants.a.max_events: 1e30 is not a whole number`,
		"default: {model_tokens_per_hour: 9.3e18}":             `default.model_tokens_per_hour: 9.3e18 is not a whole number`,
		"tenants: {a: {max_bytes: 5 parsecs}}":                 `tenants.a.max_bytes: "5 parsecs" is not a number of bytes, such as 5000000, 500MB or 20GiB`,
		"tenants: {a: {max_bytes: -5MB}}":                      `tenants.a.max_bytes: "-5MB" is not a number of bytes`,
		"tenants: {a: {max_bytes: -5}}":                        `tenants.a.max_bytes: -5 is not a limit`,
		"tenants: {a: {max_bytes: [1]}}":                       `tenants.a.max_bytes: "" is not a number of bytes`,
		"default: {model_calls_per_hour: 1/h}":                 `default.model_calls_per_hour: "1/h" is not a number`,
		"default: {model_cost_per_hour: -0.5}":                 `default.model_cost_per_hour: -0.5 is not a limit`,
		"default: {model_tokens_per_hour: -1}":                 `default.model_tokens_per_hour: -1 is not a limit`,
		"tenants: {a: {requests: 2, reads: 3}}":                `tenants.a.reads: 3 is more than the 2 requests, of which they are a part`,
		"tenants: {a: {requests: }}":                           `tenants.a.requests: "" is not a number`,
		"tenants: {a: {bytes_per_second: 5 parsecs}}":          `tenants.a.bytes_per_second: "5 parsecs" is not a number`,
		"tenants: {a: {events_per_second: .nan}}":              `tenants.a.events_per_second: NaN is not a limit`,
		"tenants: {a: {requests: 1, requests: 2}}":             `tenants.a: not fields of a quota`,
		"tenants: {a: 5}":                                      `tenants.a: not fields of a quota, such as {max_events: 100000}: `,
		"tenants: {a: {requests: x}, b: {max_bytes: y}}\n":     "tenants.a.requests: \"x\" is not a number\ntenants.b.max_bytes: \"y\" is not a number of bytes",
		"tenants: {a: {max_bytes: y, requests: x}}":            "tenants.a.max_bytes: \"y\" is not a number of bytes, such as 5000000, 500MB or 20GiB\ntenants.a.requests: \"x\" is not a number",
		"default: {requests: 1}\ntenant: {a: {requests: 2}}\n": `the field "tenant" is unknown`,
	} {
		_, err := parse([]byte(text))
		require.ErrorContains(t, err, want, "%s", text)
	}
}
