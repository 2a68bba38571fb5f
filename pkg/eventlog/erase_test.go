package eventlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/netlink"
)

func TestTheConversationsOfALargeTenantAreListedHoweverLongItTakes(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	const conversations = 300
	var list []events.Event
	for n := range conversations {
		list = append(list, b.events(fmt.Sprint(strings.Repeat("long-", 50), n), 1, "x")...)
	}
	_, err := b.log.PublishAll(mnemetest.Context(t), "t", list)
	require.NoError(t, err)
	link, err := netlink.New(strings.TrimPrefix(b.server.ClientURL(), "nats://"))
	require.NoError(t, err)
	t.Cleanup(link.Close)
	conn, err := nats.Connect("nats://"+link.Address(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	log, err := Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	link.Rate(8 << 10) // the list, of 80 KiB, takes longer than the answer to another question may
	held, err := log.Held(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, held, conversations)
}
