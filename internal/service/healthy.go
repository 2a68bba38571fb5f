package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"mneme.dev/mneme/internal/settings"
)

// healthyWithin is how long a program may take to answer whether it is ready.
const healthyWithin = 5 * time.Second

// errNotReady says that a program runs but is not ready, or does not answer at all.
var errNotReady = errors.New("not ready")

// usage prints what a program is configured by and which arguments it has.
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

// healthy asks the program that runs with the same environment for /readyz, within five
// seconds. It returns [errNotReady] with what was answered, or a [UsageError] if the
// settings can't be used or name no port.
func healthy(ctx context.Context, name string) error {
	address, err := settings.ListenAddress(name)
	if err != nil {
		return &UsageError{err}
	}
	if _, port, _ := net.SplitHostPort(address); port == "0" {
		return &UsageError{fmt.Errorf("MNEME_LISTEN=%s: the port is chosen when the program starts, nobody else knows it", address)}
	}
	ctx, cancel := context.WithTimeout(ctx, healthyWithin)
	defer cancel()
	// A dial to no address, or to 0.0.0.0, is one to this machine.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Host = "localhost"                          // an address to listen on, such as :8420, is no name to be asked by
	client := http.Client{Transport: &http.Transport{}} // not by a proxy of the environment
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
