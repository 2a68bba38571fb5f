package settings

import (
	"errors"
	"strings"
)

// OTLP configures where exporters of OpenTelemetry are answered.
type OTLP struct {
	Listen string `name:"otlp-listen" envconfig:"MNEME_OTLP_LISTEN" placeholder:"ADDRESS,…" desc:"addresses that accept OpenTelemetry logs and traces, each over HTTP and gRPC, separated by commas, such as 127.0.0.1:4317,127.0.0.1:4318; empty for none; loopback, unless a token is required"`
}

// Addresses returns the addresses to listen on.
func (s *OTLP) Addresses() []string {
	var list []string
	for one := range strings.SplitSeq(s.Listen, ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}

// Check reports an invalid address by its variable.
func (s *OTLP) Check(access *Access) error {
	var errs []error
	for _, address := range s.Addresses() {
		errs = append(errs, access.Listen("MNEME_OTLP_LISTEN", address, false))
	}
	return errors.Join(errs...)
}
