package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"mneme.dev/mneme/internal/settings"
)

// healthyWithin is how long a program may take to answer /readyz. The probes of the manifests wait as long.
const healthyWithin = 5 * time.Second

// ReadyWithin is how long a store may take to answer /readyz. It leaves a second for the answer, so that a probe learns
// why the program is not ready.
const ReadyWithin = healthyWithin - time.Second

// errNotReady means that a program is not ready, or does not answer at all.
var errNotReady = errors.New("not ready")

// usage prints a program's arguments and settings.
func usage(w io.Writer, name string) error {
	if err := settings.Usage(w, name); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `
%s --healthy asks the one that runs with the same variables whether it is
ready, for health checks of containers: exit code 0 if it is, 1 if not.
`, name)
	return err
}

// healthy requests /readyz from the running program with the same environment, within five
// seconds. It returns [errNotReady] with the answer, or a [UsageError] if the settings are
// invalid or name no port.
func healthy(ctx context.Context, name string) error {
	address, secure, err := settings.ListenAddress(name)
	if err != nil {
		return &UsageError{err}
	}
	if _, port, _ := net.SplitHostPort(address); port == "0" {
		return &UsageError{fmt.Errorf("MNEME_LISTEN=%s: port 0 means that the running program chose its port, which --healthy cannot know; set a fixed port", address)}
	}
	ctx, cancel := context.WithTimeout(ctx, healthyWithin)
	defer cancel()
	// Dialing an empty address, or 0.0.0.0, reaches this machine.
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+address+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Host = "localhost"                        // a listen address such as :8420 is not an allowed host
	client := http.Client{Transport: &http.Transport{ // without the environment's proxy
		// The certificate is for the names that clients use, not for this one; nothing secret is sent.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as above
	}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	return fmt.Errorf("%w: %s: %s", errNotReady, response.Status, strings.TrimSpace(string(body)))
}
