package natsdeploy

import (
	"slices"
	"strings"

	"mneme.dev/mneme/events"
)

// A Role says what a program, or the person who runs it, may do on the NATS server. All who have a role connect as the
// user with the role's name and receive answers under [InboxPrefix] of that name, where no other role may listen.
type Role struct {
	Name      string   // also the name of the user
	Purpose   string   // a sentence for the table in docs/nats-roles.md
	Publish   []string // subjects, with wildcards
	Subscribe []string // subjects, with wildcards; the role's inbox is added

	// Answers is true for programs that answer requests: each once, to the process that asked.
	Answers bool
}

// InboxPrefix returns the prefix of the subjects under which a user receives answers. With the client's usual prefix,
// _INBOX, every user could read the answers to others.
func InboxPrefix(user string) string { return "_INBOX_" + user }

// agentKinds are the kinds of events that an agent may publish. Summaries, condensed results, deletions, aliases of
// projects and withdrawals of lessons are not among them, because others' contexts depend on those. Only the server knows
// which contexts were served. It also serializes the changes of a memory's files. Indexes of code are published over HTTP.
var agentKinds = []string{
	events.Kind(events.TypeConversationStarted), events.Kind(events.TypeConversationUpdated), events.Kind(events.TypeMessageCreated),
	events.Kind(events.TypeToolCalled), events.Kind(events.TypeToolReturned), "other",
}

// AgentUser returns the user name with which the agents of a tenant connect.
func AgentUser(tenant string) string { return "agent-" + tenant }

// AgentSubjects returns the subjects to which the agents of a tenant may publish.
func AgentSubjects(tenant string) (list []string) {
	for _, kind := range agentKinds {
		list = append(list, strings.Join([]string{"mneme", events.Escape(tenant), "*", kind}, "."))
	}
	return list
}

// Roles returns the roles of the programs and of their operators, but not of agents. Each has the least permissions
// that it needs, see docs/adr/0024-nats-permissions.md.
func Roles() []Role {
	list := roles()
	for i := range list {
		slices.Sort(list[i].Publish)
		list[i].Publish = slices.Compact(list[i].Publish)
	}
	return list
}

func roles() []Role {
	return []Role{
		{
			Name: "ingestor", Purpose: "The program ingestor. It also creates the log.", Answers: true,
			Publish:   slices.Concat(worker("graph", "projects", "code"), []string{api("STREAM.CREATE", Stream)}),
			Subscribe: requests("graph", "projects", "code"),
		},
		{
			Name: "file-tracker", Purpose: "The program file-tracker.", Answers: true,
			Publish: worker("files", "insight"), Subscribe: requests("files", "insight"),
		},
		{
			Name: "summarizer", Purpose: "The program summarizer. It publishes insights, summaries, chapters of stories, condensed results and titles for every tenant.", Answers: true,
			Publish: slices.Concat(worker("summaries", "embeddings"), kinds(events.TypeSummaryWritten, events.TypeToolCondensed, events.TypeConversationUpdated, events.TypeInsightWritten, events.TypeStoryWritten,
				events.TypeStoryWithdrawn)),
			Subscribe: slices.Concat(requests("summaries", "embeddings"), []string{
				"mneme-summarize.*", "mneme-progress.graph.*", "mneme-progress.files.*", "mneme-progress.summaries.*", "mneme-progress.projects.*",
			}),
		},
		{
			Name: "context-api", Purpose: "The program context-api. It publishes what its clients may publish by their tokens, asks for repairs and rebuilds, erases, and writes the audit log.",
			Publish: slices.Concat(follow(), announce(), bucket(ControlBucket), bucket(TokenBucket), audits("*"), consume(AuditStream), []string{
				events.PublishFilter,
				"mneme-request.>", "mneme-clean.>", "mneme-summarize.*",
				key(ControlBucket, "rebuild.*.*"), key(ControlBucket, "erasure"), key(LeaseBucket, "exclusive.erase"), key(TokenBucket, "used.*"),
				api("STREAM.UPDATE", Stream), api("STREAM.MSG.DELETE", Stream),
			}),
			Subscribe: []string{"mneme-progress.*.*"},
		},
		{
			Name: "operator", Purpose: "Whoever runs mneme tail, tokens and doctor, or imports over NATS.",
			Publish: slices.Concat(follow(), bucket(TokenBucket), audits(AuditTokensCreate, AuditTokensRevoke), []string{
				events.PublishFilter, key(TokenBucket, ">"), api("STREAM.INFO", "KV_"+ControlBucket), api("STREAM.INFO", "KV_"+LeaseBucket),
			}),
		},
		{
			Name: "backup", Purpose: "Whoever runs mneme backup.",
			Publish: []string{api("STREAM.INFO", Stream), api("STREAM.SNAPSHOT", Stream), "$JS.SNAPSHOT.ACK." + Stream + ".>"},
		},
		{
			Name: "admin", Purpose: "Whoever runs mneme restore, or changes stream and buckets with the tool nats. It may do everything.",
			Publish: []string{">"}, Subscribe: []string{">"},
		},
	}
}

func api(call, stream string) string { return "$JS.API." + call + "." + stream }

func key(bucket, keys string) string { return "$KV." + bucket + "." + keys }

// kinds are the subjects of events of these types, in every tenant.
func kinds(types ...string) (list []string) {
	for _, t := range types {
		list = append(list, "mneme.*.*."+events.Kind(t))
	}
	return list
}

// consume returns the permissions to read a stream through one's own consumers.
func consume(stream string) []string {
	return []string{
		api("STREAM.INFO", stream),
		api("CONSUMER.CREATE", stream) + ".>",
		api("CONSUMER.INFO", stream) + ".*",
		api("CONSUMER.MSG.NEXT", stream) + ".*",
		api("CONSUMER.DELETE", stream) + ".*",
	}
}

// follow returns the permissions to read the log.
func follow() []string { return append(consume(Stream), api("STREAM.MSG.GET", Stream)) }

// bucket returns the permissions to read and watch a bucket, and to create it if it is missing. To write, a role also needs
// permissions for the keys.
func bucket(name string) []string {
	stream := "KV_" + name
	return append(consume(stream),
		"$JS.API.INFO", // the client asks for it before it creates a bucket
		api("STREAM.CREATE", stream),
		api("STREAM.MSG.GET", stream),
		api("DIRECT.GET", stream)+"."+key(name, ">"),
		"$JS.FC."+stream+".>")
}

// audits returns the permissions to write entries about these actions into the audit log, and to create it if it is missing.
func audits(actions ...string) []string {
	list := []string{api("STREAM.INFO", AuditStream), api("STREAM.CREATE", AuditStream)}
	for _, a := range actions {
		list = append(list, AuditSubject("*", a))
	}
	return list
}

// announce returns the permissions to be listed among the processes, and to list them.
func announce() []string { return append(bucket(LeaseBucket), key(LeaseBucket, "process.*")) }

// worker returns the permissions to drive these projections.
func worker(projections ...string) []string {
	list := slices.Concat(follow(), announce(), bucket(ControlBucket))
	for _, p := range projections {
		list = append(list,
			"mneme-progress."+p+".*",
			key(LeaseBucket, "lease.*."+p+".*.*"), key(LeaseBucket, "member.*."+p+".*.*"), key(LeaseBucket, "exclusive.discard-"+p),
			key(ControlBucket, "rebuild.*."+p))
	}
	return list
}

// requests are the subjects on which the projectors of these projections take requests.
func requests(projections ...string) (list []string) {
	for _, p := range projections {
		list = append(list, "mneme-request.*."+p+".>", "mneme-clean.*."+p+".>")
	}
	return list
}
