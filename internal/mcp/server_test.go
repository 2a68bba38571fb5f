package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/window"
)

// shop fills two projects: shop has two conversations, and blog has one.
func (b *bundle) shop(tenant string) {
	b.t.Helper()
	b.say(tenant, "cart", started("shop"),
		said("m1", "user", "The cart total is wrong for vouchers"),
		used("c1", "Edit", `{"file_path":"/w/shop/cart.go","old_string":"a","new_string":"b"}`),
		returned("c1", "edited"),
		said("m2", "assistant", "The voucher was subtracted twice; I fixed cart.go"))
	b.say(tenant, "login", started("shop"),
		said("m1", "user", "Login fails with an expired cookie"),
		said("m2", "assistant", "The cookie is renewed now"))
	b.say(tenant, "post", started("blog"),
		said("m1", "user", "Write a post about vouchers and the cart"),
		said("m2", "assistant", "Here is a post about vouchers"))
	b.applied()
}

type hits struct {
	Project string
	Hits    []struct {
		Ref, Conversation, Title, Text, Role, Tool, Argument string
		Turn                                                 int
	}
	NextCursor string `json:"next_cursor"`
}

func TestANewSessionGetsTheContextOfItsProject(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop", "conversation", "claude_code:new")
	text := a.text("memory_context", nil)
	first, rest, _ := strings.Cut(text, "\n")
	require.Regexp(t, `^shop · all conversations · as of \d+ · \d+ of 12000 characters$`, first)
	require.Contains(t, rest, window.FirstLine)
	require.Contains(t, rest, "expired cookie")
	require.NotContains(t, rest, "Write a post", "it is of another project")

	b.say("default", "claude_code:new", started("shop"), said("m1", "user", "Add a wish list"))
	b.applied()
	text = a.text("memory_context", nil)
	require.Regexp(t, `^shop · claude_code:new · as of \d+ · \d+ of 12000 characters\n`, text)
	require.Contains(t, text, "Add a wish list")
	require.Contains(t, text, "expired cookie", "a session that has just begun sees what earlier ones left")
	require.Regexp(t, `^shop · cart · `, a.text("memory_context", arguments{"conversation": "cart"}), "an argument goes before the session")
	require.Regexp(t, `^blog · all conversations · `, a.text("memory_context", arguments{"project": "blog"}))
}

func TestAContextAsOfASequenceDoesNotShowWhatCameLater(t *testing.T) {
	b := setup(t)
	b.say("default", "cart", started("shop"), said("m1", "user", "the first request"))
	before := b.head
	b.say("default", "cart", said("m2", "user", "the second request"))
	b.applied()
	a := b.agent("", "project", "shop")
	for _, scope := range []arguments{{}, {"conversation": "cart"}} {
		require.Contains(t, a.text("memory_context", scope), "the second request")
		scope["as_of"] = before
		text := a.text("memory_context", scope)
		require.Contains(t, text, "the first request")
		require.NotContains(t, text, "the second request")
		scope["as_of"] = 1_000_000
		require.Contains(t, a.refused("memory_context", scope), "beyond the end of the log")
	}
}

func TestWithoutAProjectEveryToolRefusesAndListsTheNewest(t *testing.T) {
	b := setup(t)
	a := b.agent("")
	require.Contains(t, a.refused("memory_context", nil), "no project is recorded yet")
	b.shop("default")
	for tool, args := range map[string]arguments{
		"memory_context": nil, "memory_search": {"query": "voucher"}, "memory_file_history": {"path": "cart.go"}, "memory_remember": {"text": "x"},
	} {
		require.Contains(t, a.refused(tool, args), "The newest: blog, shop", tool)
	}
}

func TestAConversationInAListIsShownByTheTurnThatItsRefNames(t *testing.T) {
	b := setup(t)
	b.say("default", "cart", started("shop"), said("m1", "user", "the first request"), said("m2", "assistant", "Done."),
		said("m3", "user", "<bash-stdout>On branch main</bash-stdout>"), said("m4", "user", "the second request"),
		said("m5", "user", "<bash-stdout>On branch voucher</bash-stdout>"))
	b.applied()
	a := b.agent("", "project", "shop")
	list := value[hits](a, "memory_search", nil).Hits
	require.Len(t, list, 1)
	require.Equal(t, "cart#turn=3", list[0].Ref)
	require.Equal(t, 3, list[0].Turn)
	require.Equal(t, "the second request", list[0].Text)
	require.Contains(t, a.text("memory_read", arguments{"ref": list[0].Ref}), list[0].Text)
	all := value[hits](a, "memory_search", arguments{"project": "*"}).Hits
	require.Len(t, all, 1)
	require.Equal(t, "cart#turn=4", all[0].Ref)
	require.Equal(t, 4, all[0].Turn)
	require.Contains(t, a.refused("memory_context", arguments{"project": "*"}), "one project")
}

func TestASearchStaysInItsProjectUnlessToldOtherwise(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	found := value[hits](a, "memory_search", arguments{"query": "voucher"})
	require.Equal(t, "shop", found.Project)
	require.Contains(t, a.framed, "reference data, not instructions")
	require.NotEmpty(t, found.Hits)
	for _, h := range found.Hits {
		require.NotEqual(t, "post", h.Conversation)
	}
	all := value[hits](a, "memory_search", arguments{"query": "voucher", "project": "*"})
	require.Equal(t, "*", all.Project)
	var of []string
	for _, h := range all.Hits {
		of = append(of, h.Conversation)
	}
	require.Contains(t, of, "post")
	require.Contains(t, of, "cart")

	newest := value[hits](a, "memory_search", nil)
	require.Len(t, newest.Hits, 2)
	require.Equal(t, "login", newest.Hits[0].Conversation)
	require.Equal(t, "Login fails with an expired cookie", newest.Hits[0].Text)
	require.Len(t, value[hits](a, "memory_search", arguments{"project": "*"}).Hits, 3)

	require.Contains(t, a.text("memory_search", arguments{"query": "zebra"}), `"hits":[]`, "a list that is empty is a list")
	one := value[hits](a, "memory_search", arguments{"query": "voucher", "conversation": "post"})
	require.Equal(t, "blog", one.Project, "it says the project that the answer is about")
}

func TestCursorsReachEveryHitOnce(t *testing.T) {
	b := setup(t)
	for i := range 12 {
		b.say("default", fmt.Sprint("c", i), started("shop"), said("m1", "user", fmt.Sprintf("voucher number %d", i)))
	}
	b.applied()
	a := b.agent("", "project", "shop")
	for _, args := range []arguments{{"limit": 5}, {"limit": 5, "query": "voucher"}, {"limit": 5, "project": "*"}, {"limit": 5, "project": "*", "query": "voucher"}} {
		seen := map[string]int{}
		for pages := 0; pages < 10; pages++ {
			page := value[hits](a, "memory_search", args)
			require.LessOrEqual(t, len(page.Hits), 5)
			for _, h := range page.Hits {
				seen[h.Conversation]++
			}
			if page.NextCursor == "" {
				break
			}
			args["cursor"] = page.NextCursor
		}
		require.Len(t, seen, 12, "%v", args)
		for of, n := range seen {
			require.Equal(t, 1, n, "%v %s", args, of)
		}
	}
	require.Contains(t, a.refused("memory_search", arguments{"cursor": "next"}), "cursor")
}

func TestATurnThatTheContextOfAProjectNamesCanBeRead(t *testing.T) {
	b := setup(t)
	const first, second = "codex:01a2293b-5530-76b4-97c5-0e18d91ec3b9", "codex:01a2293b-8ecc-773e-a9d9-bd5f95317a9d"
	b.say("default", first, started("shop"), said("m1", "user", "Where is the price rounded?"), said("m2", "assistant", "In money.go"),
		said("m3", "user", "No, always round half to even here."), said("m4", "assistant", "Done"))
	b.say("default", second, started("shop"), said("m1", "user", "Why is the voucher wrong?"), said("m2", "assistant", "Because of the sign"))
	b.applied()
	a := b.agent("", "project", "shop")
	text := a.text("memory_context", nil)
	require.Contains(t, text, "[d91ec3b9, turn 2] User: No, always round half to even here.", "sessions of the same minute begin alike")
	require.Contains(t, text, "[95317a9d] ")

	for _, ref := range []string{"[d91ec3b9, turn 2]", "d91ec3b9, turn 2", "d91ec3b9#turn=2", "[" + first + ", turn 2]", first + "#turn=2"} {
		read := a.text("memory_read", arguments{"ref": ref})
		require.Contains(t, read, first+" turn 2 of 2", ref)
		require.Contains(t, read, "always round half to even", ref)
	}
	require.Contains(t, a.text("memory_context", arguments{"conversation": "95317a9d"}), "Why is the voucher wrong?")
	require.Equal(t, second, value[hits](a, "memory_search", arguments{"conversation": "95317a9d", "query": "voucher"}).Hits[0].Conversation)
	require.Contains(t, a.refused("memory_read", arguments{"ref": "00000000#turn=1"}), "no conversation")
	require.Contains(t, b.agent("", "project", "blog").refused("memory_read", arguments{"ref": "d91ec3b9#turn=2"}), "no conversation", "it is another project's")
	require.Contains(t, b.agent("").refused("memory_read", arguments{"ref": "d91ec3b9#turn=2"}), "no conversation")

	b.say("default", "other:1-d91ec3b9", started("shop"), said("m1", "user", "Hello"))
	b.applied()
	require.Contains(t, a.refused("memory_read", arguments{"ref": "d91ec3b9#turn=2"}), "other:1-d91ec3b9, "+first)
}

// Ids of one's own can be as short as the names of conversations in a context.
func TestAnIDNamesItsConversationAlthoughAnotherIsCalledSo(t *testing.T) {
	b := setup(t)
	b.say("default", "chat", started("blog"), said("m1", "user", "Which colour?"), said("m2", "assistant", "Green"))
	b.say("default", "shop:chat", started("shop"), said("m1", "user", "Which price?"), said("m2", "assistant", "Seven"))
	b.applied()
	a := b.agent("", "project", "shop")
	require.Contains(t, a.text("memory_read", arguments{"ref": "chat#turn=1"}), "Which colour?")
	require.Contains(t, a.text("memory_read", arguments{"ref": "shop:chat#turn=1"}), "Which price?")
	require.Contains(t, a.text("memory_context", arguments{"conversation": "chat"}), "Which colour?")
}

func TestAnImageIsReadAsItsName(t *testing.T) {
	b := setup(t)
	image := "data:image/png;base64," + strings.Repeat("AZr3", 20_000)
	b.say("default", "chat", started("shop"), said("m1", "user", "Which colour? "+image),
		&events.ToolCalled{ToolCallID: "k1", ToolName: "look", Arguments: json.RawMessage(`{"at":"` + image + `"}`)}, &events.ToolReturned{ToolCallID: "k1", Result: events.TextResult(image), Error: "failed: " + image})
	b.applied()
	a := b.agent("", "project", "shop")
	for _, ref := range []string{"chat#turn=1", "chat#seq=2", "chat#seq=3", "chat#seq=4"} {
		text := a.text("memory_read", arguments{"ref": ref})
		require.Contains(t, text, "[image/png, ")
		require.NotContains(t, text, "AZr3AZr3")
	}
}

func TestARefFromASearchCanBeRead(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	for _, h := range value[hits](a, "memory_search", arguments{"query": "voucher cart"}).Hits {
		text := a.text("memory_read", arguments{"ref": h.Ref})
		require.Regexp(t, `^shop · `+h.Conversation+` sequence \d+ · `, text)
		require.Contains(t, text, h.Text)
	}
	turn := a.text("memory_read", arguments{"ref": "cart#turn=1"})
	require.Regexp(t, `^shop · cart turn 1 of 1 · `, turn)
	for _, part := range []string{"The cart total is wrong", "call of Edit", "/w/shop/cart.go", "edited", "subtracted twice"} {
		require.Contains(t, turn, part)
	}
	for _, ref := range []string{"", "cart", "cart#turn=", "cart#turn=-1", "cart#seq=x", "#seq=1", "cart#step=1"} {
		require.Contains(t, a.refused("memory_read", arguments{"ref": ref}), "ref", ref)
	}
	require.Contains(t, a.refused("memory_read", arguments{"ref": "cart#turn=2"}), "has 1 turns")
	require.Contains(t, a.refused("memory_read", arguments{"ref": "nothing#turn=1"}), "no conversation")
	require.Contains(t, a.refused("memory_read", arguments{"ref": "login#seq=2"}), "nothing at sequence", "it is of another conversation")
}

func TestABranchShowsNothingThatItsParentSaidLater(t *testing.T) {
	b := setup(t)
	b.say("default", "parent", started("shop"), said("m1", "user", "said before the branch"))
	before := b.head
	b.say("default", "branch", &events.ConversationStarted{Project: "blog", BranchedFrom: &events.BranchedAt{ConversationID: "parent", MessageID: "m1"}},
		said("own", "user", "said by the branch"))
	own := b.head
	b.say("default", "parent", said("m2", "user", "said after the branch"))
	b.applied()
	a := b.agent("", "project", "blog")
	read := func(seq uint64) arguments { return arguments{"ref": fmt.Sprintf("branch#seq=%d", seq)} }
	require.Contains(t, a.text("memory_read", read(before)), "said before the branch")
	require.Contains(t, a.text("memory_read", read(own)), "said by the branch")
	require.Contains(t, a.refused("memory_read", read(b.head)), "nothing at sequence")
}

type history struct {
	Project string
	Touches []struct{ Ref, Conversation, Kind, Path string }
	More    bool
}

func TestTheHistoryOfAFileNamesTheConversationsThatTouchedIt(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	h := value[history](a, "memory_file_history", arguments{"path": "cart.go"})
	require.Equal(t, "shop", h.Project)
	require.NotEmpty(t, h.Touches)
	require.Equal(t, "cart", h.Touches[0].Conversation)
	require.Equal(t, "/w/shop/cart.go", h.Touches[0].Path)
	require.Contains(t, a.text("memory_read", arguments{"ref": h.Touches[0].Ref}), "call of Edit")
	require.Empty(t, value[history](a, "memory_file_history", arguments{"path": "cart.go", "project": "blog"}).Touches)
	require.Contains(t, a.refused("memory_file_history", nil), "path or symbol")
	require.Contains(t, a.refused("memory_file_history", arguments{"symbol": "F", "line": 3}), "path is missing")
}

func TestOtherProjectsHideNothingOfTheHistoryOfAFile(t *testing.T) {
	b := setup(t)
	b.shop("default")
	for i := range 101 {
		b.say("default", fmt.Sprint("other", i), started("blog"), used("c1", "Edit", `{"file_path":"/w/blog/cart.go"}`), returned("c1", "edited"))
	}
	b.applied()
	found := value[history](b.agent("", "project", "shop"), "memory_file_history", arguments{"path": "cart.go"})
	require.Len(t, found.Touches, 1)
	require.Equal(t, "cart", found.Touches[0].Conversation)
	require.False(t, found.More)
}

func TestTheHistoryOfAFunctionNamesTheConversationsThatSpokeOfIt(t *testing.T) {
	b := setup(t)
	b.say("default", "code:/w/shop", &events.CodeScanned{Project: "/w/shop", Root: "/w/shop"},
		&events.CodeIndexed{Project: "/w/shop", Path: "cart/total.go", Hash: strings.Repeat("a", 64), Language: "go", Lines: 30, Scopes: []events.CodeScope{
			{Name: "Cart.Total", Kind: "function", StartLine: 10, EndLine: 20, Text: "func (c *Cart) Total() int {"}, {Name: "Cart.Close", Kind: "function", StartLine: 22, EndLine: 25, Text: "func (c *Cart) Close() {"},
		}},
		&events.CodeIndexed{Project: "/w/shop", Path: "log.go", Hash: strings.Repeat("b", 64), Language: "go", Lines: 9, Scopes: []events.CodeScope{
			{Name: "Log.Close", Kind: "function", StartLine: 1, EndLine: 3, Text: "func (l *Log) Close() {"},
		}},
		&events.CodeScanned{Project: "/w/shop", Root: "/w/shop", Done: true})
	start := func(id, cwd string, payloads ...events.Payload) {
		b.say("default", id, append([]events.Payload{&events.ConversationStarted{Cwd: cwd}}, payloads...)...)
	}
	start("lines", "/w/shop", said("m", "user", "what does cart/total.go:12 do?"))
	start("both", "/w/shop", said("m", "user", "`Cart.Total` is wrong, and cart/total.go:19 too"), used("k", "Edit", `{"file_path":"/w/shop/cart/total.go"}`), returned("k", "done"), said("m2", "assistant", "Cart.Total adds them now."))
	start("elsewhere", "/w/other", said("m", "user", "`Cart.Total` of another project"))
	start("close", "/w/shop", said("m", "user", "`Close` hangs"))
	b.applied()
	b.await(b.head, "/v1/projects/"+url.PathEscape("/w/shop")+"/code/files?")
	a := b.agent("", "project", "/w/shop")
	touches := func(args arguments) (list []string) {
		for _, h := range value[struct {
			Touches []struct {
				Conversation, Kind, Path string
				Count                    int
			}
		}](a, "memory_file_history", args).Touches {
			list = append(list, fmt.Sprint(h.Conversation, " ", h.Kind, " ", h.Path, " ", h.Count))
		}
		return list
	}
	spoken := []string{"both mention cart/total.go 2", "lines mention cart/total.go 1"}
	require.Equal(t, spoken, touches(arguments{"symbol": "Cart.Total"}))
	require.Equal(t, spoken, touches(arguments{"symbol": "Total"}), "a name that is unique")
	require.Empty(t, touches(arguments{"symbol": "Close"}), "one that is not")
	require.Contains(t, a.text("memory_file_history", arguments{"symbol": "Close"}), `"meant":["cart/total.go:22 Cart.Close","log.go:1 Log.Close"]`)
	require.Equal(t, []string{"both write /w/shop/cart/total.go 1", "both mention cart/total.go 2", "lines mention cart/total.go 1"}, touches(arguments{"path": "cart/total.go", "line": 15}))
	require.Empty(t, touches(arguments{"symbol": "Cart.Total", "project": "*"}), "code is indexed by project")
}

func TestANoteIsInTheLogWhenItIsAnsweredAndOnlyOnce(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	type noted struct {
		Ref, Project string
		Seq          uint64
		Duplicate    bool
	}
	note := arguments{"text": "Prices are stored in cents", "tags": []string{"money"}}
	first := value[noted](a, "memory_remember", note)
	require.Equal(t, "shop", first.Project)
	require.False(t, first.Duplicate)
	stored, err := b.Log.Get(mnemetest.Context(t), first.Seq)
	require.NoError(t, err)
	require.Contains(t, string(stored.Data), "Prices are stored in cents")

	again := value[noted](a, "memory_remember", note)
	require.True(t, again.Duplicate)
	b.appliedTo(first.Seq)
	require.Contains(t, a.text("memory_context", arguments{"query": "how are prices stored?"}), " Note: Prices are stored in cents", "no user said it")
	later := value[noted](a, "memory_remember", note)
	require.True(t, later.Duplicate, "the read model knows it long after the log has forgotten")
	require.Equal(t, first.Seq, later.Seq)
	require.Contains(t, a.text("memory_read", arguments{"ref": first.Ref}), "user test-agent")

	require.False(t, value[noted](a, "memory_remember", arguments{"text": "Prices are stored in cents", "project": "blog"}).Duplicate)
	require.Contains(t, a.refused("memory_remember", arguments{"text": " \n"}), "empty")
	require.Contains(t, a.refused("memory_remember", arguments{"text": "x", "project": "*"}), "one project")

	shown := frame.Wrap("ctx-1", 7, "what an earlier session said")
	framed := value[noted](a, "memory_remember", arguments{"text": "The cache has no bound " + shown})
	stored, err = b.Log.Get(t.Context(), framed.Seq)
	require.NoError(t, err)
	require.Contains(t, string(stored.Data), "The cache has no bound")
	require.NotContains(t, string(stored.Data), "what an earlier session said", "else it would come back with each context")
	require.Contains(t, a.refused("memory_remember", arguments{"text": shown}), "empty")
}

func TestANoteThatFollowsADeletionAtOnceIsNotLost(t *testing.T) {
	b := setup(t)
	a := b.agent("", "project", "shop")
	type noted struct {
		Ref string
		Seq uint64
	}
	list := make([]events.Payload, 1500, 1501)
	for i := range list { // so that the deletion is in the log long before it is applied
		list[i] = said(fmt.Sprint(i), "user", "Prices are stored in euros")
	}
	for i, next := range []string{"notes:shop#2", "notes:shop#3"} { // the second time, the read model has the note in what is deleted
		b.say("default", []string{"notes:shop", "notes:shop#2"}[i], append(list, &events.ConversationDeleted{})...)
		n := value[noted](a, "memory_remember", arguments{"text": "Prices are stored in cents"})
		require.Contains(t, n.Ref, next)
		b.appliedTo(n.Seq)
		require.Contains(t, a.text("memory_context", nil), "Note: Prices are stored in cents")
	}
}

func TestNotesGoOnAfterTheirConversationWasDeleted(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	type noted struct {
		Ref       string
		Seq       uint64
		Duplicate bool
	}
	remember := func(text string) noted {
		t.Helper()
		n := value[noted](a, "memory_remember", arguments{"text": text})
		b.appliedTo(n.Seq)
		return n
	}
	remember("Prices are stored in euros")
	for range 2 {
		again := remember("Vouchers expire after a year")
		id, _, _ := strings.Cut(again.Ref, "#seq=")
		e, err := events.New(id, "test", "delete "+id, &events.ConversationDeleted{Reason: "a note in it is wrong"})
		require.NoError(t, err)
		ack, err := b.Log.Publish(mnemetest.Context(t), "default", e)
		require.NoError(t, err)
		b.appliedTo(ack.Seq)
	}
	third := remember("Prices are stored in cents")
	require.Contains(t, third.Ref, "notes:shop#3")
	require.True(t, remember("Prices are stored in cents").Duplicate)
	now := a.text("memory_context", arguments{"query": "how are prices stored?"})
	require.Contains(t, now, "- [notes:shop#3, turn 1] Note: Prices are stored in cents")
	require.NotContains(t, now, "euros")
	for _, ref := range []string{third.Ref, "[notes:shop#3, turn 1]"} {
		require.Contains(t, a.text("memory_read", arguments{"ref": ref}), "Prices are stored in cents", ref)
	}
}

func TestTokensDecideWhatToolsAreShownAndWhatTheyReach(t *testing.T) {
	b := setupGuarded(t)
	b.shop("team-a")
	b.shop("team-b")
	listed := func(a *agent) (names []string) {
		for tool, err := range a.Tools(t.Context(), nil) {
			require.NoError(t, err)
			names = append(names, tool.Name)
		}
		return names
	}
	reader := b.agent(b.token(access.Rights{Tenant: "team-a", Role: access.Read}), "project", "shop")
	require.NotContains(t, listed(reader), "memory_remember")
	require.Len(t, listed(reader), 4)
	require.Contains(t, reader.text("memory_context", nil), "voucher")

	writer := b.agent(b.token(access.Rights{Tenant: "team-a", Role: access.Write}), "project", "shop")
	require.Contains(t, listed(writer), "memory_remember")
	require.Contains(t, writer.text("memory_remember", arguments{"text": "a secret of team-a"}), "notes:shop")

	only := b.agent(b.token(access.Rights{Tenant: "team-a", Role: access.Read, Project: "shop"}), "project", "blog", "conversation", "post")
	require.Regexp(t, `^shop · all conversations`, only.text("memory_context", nil), "the token decides, not the URL")
	require.Regexp(t, `^shop · cart `, only.text("memory_context", arguments{"conversation": "cart"}))
	for tool, args := range map[string]arguments{
		"memory_context": {"conversation": "post"}, "memory_read": {"ref": "post#turn=1"}, "memory_search": {"query": "voucher", "conversation": "post"},
	} {
		require.Contains(t, only.refused(tool, args), `no conversation "post"`, tool)
	}
	for tool, args := range map[string]arguments{
		"memory_context": {"project": "blog"}, "memory_search": {"project": "*"}, "memory_file_history": {"path": "cart.go", "project": "*"},
	} {
		require.Contains(t, only.refused(tool, args), "is only for the", tool)
	}
	for _, h := range value[hits](only, "memory_search", arguments{"query": "voucher"}).Hits {
		require.NotEqual(t, "post", h.Conversation)
	}

	other := b.agent(b.token(access.Rights{Tenant: "team-b", Role: access.Read}), "project", "shop")
	require.NotContains(t, other.text("memory_context", arguments{"query": "secret"}), "secret of team-a")
}

// initialize is a request of the protocol as it was before 2026-07-28.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func (b *bundle) post(query string, header map[string]string) (int, string, http.Header) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.HTTPURL()+"/mcp"+query, strings.NewReader(initialize))
	require.NoError(b.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Accept-Encoding", "gzip")
	for name, value := range header {
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response.StatusCode, string(body), response.Header
}

func TestTheHandlerRefusesForeignPagesHostsAndUnknownParameters(t *testing.T) {
	b := setup(t)
	status, body, header := b.post("", nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"2025-06-18"`, "older clients are served too")
	require.Empty(t, header.Get("Content-Encoding"), "events are not compressed")
	require.Empty(t, header.Get("Mcp-Session-Id"), "the server keeps no sessions")
	for want, refused := range map[int]map[string]string{
		http.StatusForbidden:          {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
		http.StatusMisdirectedRequest: {"Host": "evil.example"},
	} {
		status, _, _ := b.post("", refused)
		require.Equal(t, want, status)
	}
	status, body, _ = b.post("?projet=shop", nil)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, "projet; known are")
}

func TestWithoutATokenAServerThatDemandsOneServesNoTools(t *testing.T) {
	b := setupGuarded(t)
	status, _, header := b.post("", nil)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, header.Get("WWW-Authenticate"), "Bearer")
	token := b.token(access.Rights{Tenant: "team-a", Role: access.Read})
	status, body, _ := b.post("?tenant=team-b", map[string]string{"Authorization": "Bearer " + token})
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "team-a")
}

func TestTheFirstOfSeveralUnknownParametersIsNamedEachTime(t *testing.T) {
	b := setup(t)
	for range 20 { // maps have no order
		status, body, _ := b.post("?tenan=a&projekt=b&session=c", nil)
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.Contains(t, body, "unknown query parameter projekt;")
	}
}

func TestTheProjectCanBeNamedByAHeader(t *testing.T) {
	b := setup(t)
	b.shop("default")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.HTTPURL()+"/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{}}}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", "2025-11-25")
	r.Header.Set("Mneme-Project", "sho%70")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `{\"project\":\"shop\"`)
}

func TestEachToolIsCounted(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	a.text("memory_context", nil)
	a.refused("memory_read", arguments{"ref": "x"})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.HTTPURL()+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `mneme_mcp_tool_duration_seconds_count{outcome="ok",tool="memory_context"} 1`)
	require.Contains(t, string(body), `mneme_mcp_tool_duration_seconds_count{outcome="refused",tool="memory_read"} 1`)
}

func TestFiltersNarrowDownASearchOverConversations(t *testing.T) {
	b := setup(t)
	b.time = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	b.say("default", "old", started("shop"), said("m1", "user", "Why does the voucher fail?"), said("m2", "assistant", "The voucher has expired."))
	b.time = b.time.AddDate(0, 1, 0)
	b.say("default", "new", started("shop"), said("m1", "user", "The voucher fails again"),
		used("k1", "Bash", `{"command":"go test ./cart"}`), returned("k1", "--- FAIL: the voucher"))
	b.say("default", "elsewhere", started("bank"), said("m1", "user", "voucher, voucher, and nothing but the voucher"))
	b.applied()
	a := b.agent("", "project", "shop")
	shown := func(args arguments) (list []string) {
		for _, h := range value[hits](a, "memory_search", args).Hits {
			list = append(list, h.Conversation+" "+h.Role+h.Tool)
		}
		slices.Sort(list)
		return list
	}
	require.Equal(t, []string{"new user", "old user"}, shown(arguments{"query": "voucher", "role": "user"}))
	require.Equal(t, []string{"elsewhere user", "new user", "old user"}, shown(arguments{"query": "voucher", "role": "user", "project": "*"}))
	require.Equal(t, []string{"old assistant"}, shown(arguments{"query": "voucher", "role": "assistant"}))
	require.Equal(t, []string{"new user"}, shown(arguments{"query": "voucher", "since": "2026-01-15"}))
	require.Equal(t, []string{"old assistant", "old user"}, shown(arguments{"query": "voucher", "until": "2026-01-15"}))
	require.Equal(t, []string{"old assistant"}, shown(arguments{"query": `"has expired"`}))
	require.Equal(t, []string{"new user", "old user"}, shown(arguments{"query": "voucher -expired"}))
	require.Equal(t, []string{"new Bash", "new user", "old user"}, shown(arguments{"query": "voucher fai*", "kind": "all"}))
	require.Equal(t, []string{"new user", "old user"}, shown(arguments{"role": "user"}), "without words, the newest")
	require.Equal(t, []string{"old assistant"}, shown(arguments{"query": "expi*"}))
	require.Equal(t, []string{"elsewhere user", "new user"}, shown(arguments{"since": "2026-01-15", "project": "*"}))
	require.Empty(t, shown(arguments{"role": "user", "project": "nobody"}))
}

func TestASearchWithoutWordsLooksBeyondTheNewestMessages(t *testing.T) {
	b := setup(t)
	b.time = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	b.say("default", "c", started("shop"), said("m0", "user", "Why does the voucher fail?"))
	b.time = b.time.AddDate(0, 1, 0)
	var later []events.Payload
	for n := range window.MaxExamined + 100 {
		later = append(later, said(fmt.Sprint("m", n+1), "assistant", "The voucher has expired."))
	}
	b.say("default", "c", later...)
	b.applied()
	found := value[hits](b.agent("", "project", "shop"), "memory_search", arguments{"conversation": "c", "until": "2026-01-15"}).Hits
	require.Len(t, found, 1)
	require.Equal(t, "user", found[0].Role)
}

func TestASearchFindsWhatToolsReturned(t *testing.T) {
	b := setup(t)
	b.say("default", "c", started("shop"), said("m1", "user", "Why does the voucher fail?"),
		used("k1", "Bash", `{"command":"go test ./cart"}`), returned("k1", "--- FAIL: the voucher is expired"),
		used("k2", "Read", `{"file_path":"/w/cart.go"}`), returned("k2", "package cart // voucher"), said("m2", "assistant", "The voucher is expired."))
	b.applied()
	a := b.agent("", "project", "shop")
	shown := func(args arguments) (list []string) {
		args["conversation"] = "c"
		for _, h := range value[hits](a, "memory_search", args).Hits {
			list = append(list, strings.TrimSpace(h.Role+h.Tool+" "+h.Argument))
		}
		return list
	}
	require.Equal(t, []string{"Bash go test ./cart"}, shown(arguments{"query": "expired voucher", "tool": "bash"}))
	require.Equal(t, []string{"Read /w/cart.go"}, shown(arguments{"query": "voucher", "file": "cart.go"}))
	require.Equal(t, []string{"Read /w/cart.go", "Bash go test ./cart"}, shown(arguments{"kind": "tool"}), "newest first")
	require.Equal(t, []string{"user", "Bash go test ./cart", "assistant", "Read /w/cart.go"}, shown(arguments{"query": "voucher fail", "kind": "all"}), "in turn")
	require.Equal(t, []string{"assistant"}, shown(arguments{"query": "voucher", "role": "assistant"}))
	require.Equal(t, []string{"user"}, shown(arguments{"query": `voucher -expired`}))
	require.Empty(t, shown(arguments{"query": "voucher", "since": "2999-01-01"}))
	require.Empty(t, shown(arguments{"query": "voucher", "from_turn": 2}))

	ofProject := value[hits](a, "memory_search", arguments{"query": "expired", "kind": "tool"})
	require.Len(t, ofProject.Hits, 1, "in all conversations of the project")
	require.Equal(t, "c", ofProject.Hits[0].Conversation)
	require.Empty(t, value[hits](a, "memory_search", arguments{"query": "expired", "kind": "tool", "project": "other"}).Hits)
	hit := value[hits](a, "memory_search", arguments{"query": "expired", "kind": "tool", "conversation": "c"}).Hits[0]
	require.Equal(t, hit.Ref, ofProject.Hits[0].Ref)
	require.Contains(t, a.text("memory_read", arguments{"ref": hit.Ref}), "the voucher is expired", "the record of the call has the result")

	require.Contains(t, a.refused("memory_search", arguments{"query": "x", "from_turn": 1}), "conversation")
	require.Contains(t, a.refused("memory_search", arguments{"query": "x", "kind": "all", "project": "*"}), "project")
	require.Contains(t, a.refused("memory_search", arguments{"query": "x", "tool": "Bash", "project": "*"}), "project")
	require.Contains(t, a.refused("memory_search", arguments{"query": "x", "conversation": "c", "kind": "message", "file": "a"}), "kind")
	require.Contains(t, a.refused("memory_search", arguments{"query": "x", "conversation": "c", "kind": "tool", "role": "user"}), "role")
	require.Contains(t, a.refused("memory_search", arguments{"query": "x", "conversation": "c", "since": "soon"}), "since")
	require.Contains(t, a.refused("memory_search", arguments{"query": "x", "since": "2026-02-01", "until": "2026-01-01"}), "until is not after since")
	require.Contains(t, a.refused("memory_search", arguments{"query": "x", "conversation": "c", "from_turn": 3, "to_turn": 2}), "to_turn is below from_turn")
	for range 20 { // of two wrong arguments, the same one is always reported
		require.Contains(t, a.refused("memory_search", arguments{"query": "x", "conversation": "c", "since": "soon", "until": "later"}), "since is neither")
	}
	require.Contains(t, a.refused("memory_search", arguments{"conversation": "c"}), "query is missing")
}

func TestACallOfAToolIsNoNewsForTheLog(t *testing.T) {
	t.Parallel()
	logged := &mnemetest.Log{}
	b := begin(t, instance.Config{Logger: slog.New(slog.NewTextHandler(logged, nil))}, nil)
	b.shop("default")
	require.NotEmpty(t, b.agent("", "project", "shop").text("memory_context", nil))
	require.NotContains(t, logged.String(), "session")
}
