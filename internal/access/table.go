package access

// Scope is what a route reads or changes.
type Scope string

// The scopes.
const (
	InProject Scope = "project" // one conversation, or a list of them: a token of a project may use it for that project
	InTenant  Scope = "tenant"  // everything of one tenant
	Across    Scope = "all"     // every tenant at once
)

// Audit is what the audit log keeps of the requests to a route.
type Audit string

// What is kept; docs/adr/0027-audit-log.md has the reasons.
const (
	AuditNone   Audit = "no"     // nothing: the request is about one conversation, or the log of agents has its effect
	AuditRead   Audit = "read"   // that somebody read across conversations; stored when there is time
	AuditChange Audit = "change" // that somebody changed something; stored before it takes effect
)

// Need is what a request to a route needs, and what is kept of it.
type Need struct {
	Role   Role
	Scope  Scope
	Audit  Audit
	Target []string // parameters, and members of the body, that say what an audited request is about
	Note   string   // what the handler restricts further; one sentence without a full stop
}

// Routes says what every operation of the API needs, and whether it is audited, by its id. An operation
// that is not here can't be registered. The OpenAPI document, docs/access.md and the tests over all
// routes are made from this table; nothing else decides.
var Routes = map[string]Need{
	// Events.
	"publish-events": {Role: Write, Scope: InTenant, Audit: AuditNone},
	"lookup-events":  {Role: Read, Scope: InTenant, Audit: AuditNone},
	"show-event":     {Role: Read, Scope: InTenant, Audit: AuditRead},
	"stream":         {Role: Read, Scope: InTenant, Audit: AuditRead, Target: []string{"conversation"}, Note: "of the status it shows what the operation status shows"},
	"import":         {Role: Write, Scope: InTenant, Audit: AuditNone},

	// Conversations.
	"list-conversations":       {Role: Read, Scope: InProject, Audit: AuditRead, Target: []string{"project"}},
	"show-conversation":        {Role: Read, Scope: InProject, Audit: AuditNone},
	"list-messages":            {Role: Read, Scope: InProject, Audit: AuditNone},
	"show-message":             {Role: Read, Scope: InProject, Audit: AuditNone},
	"show-embedding":           {Role: Read, Scope: InProject, Audit: AuditNone},
	"list-turns":               {Role: Read, Scope: InProject, Audit: AuditNone},
	"show-outline":             {Role: Read, Scope: InProject, Audit: AuditNone},
	"show-health":              {Role: Read, Scope: InProject, Audit: AuditNone},
	"list-events":              {Role: Read, Scope: InProject, Audit: AuditNone},
	"list-steps":               {Role: Read, Scope: InProject, Audit: AuditNone},
	"list-tool-calls":          {Role: Read, Scope: InProject, Audit: AuditNone},
	"show-tool-call":           {Role: Read, Scope: InProject, Audit: AuditNone},
	"list-summaries":           {Role: Read, Scope: InProject, Audit: AuditNone},
	"show-summary":             {Role: Read, Scope: InProject, Audit: AuditNone},
	"list-analyses":            {Role: Read, Scope: InProject, Audit: AuditNone},
	"list-files":               {Role: Read, Scope: InProject, Audit: AuditNone},
	"read-context":             {Role: Read, Scope: InProject, Audit: AuditNone, Note: "`record=true` needs the role write"},
	"list-contexts":            {Role: Read, Scope: InProject, Audit: AuditNone},
	"show-context":             {Role: Read, Scope: InProject, Audit: AuditNone},
	"search-conversation":      {Role: Read, Scope: InProject, Audit: AuditNone},
	"export-conversation":      {Role: Read, Scope: InProject, Audit: AuditRead, Target: []string{"id"}},
	"search":                   {Role: Read, Scope: InProject, Audit: AuditRead, Target: []string{"project"}},
	"similar-conversations":    {Role: Read, Scope: InTenant, Audit: AuditRead, Target: []string{"id"}},
	"conversations-about-code": {Role: Read, Scope: InTenant, Audit: AuditRead},
	"create-conversation":      {Role: Write, Scope: InTenant, Audit: AuditNone},
	"update-conversation":      {Role: Write, Scope: InTenant, Audit: AuditNone},
	"delete-conversation":      {Role: Write, Scope: InTenant, Audit: AuditChange, Target: []string{"id"}},
	"create-branch":            {Role: Write, Scope: InTenant, Audit: AuditNone},
	"summarize":                {Role: Write, Scope: InTenant, Audit: AuditChange, Target: []string{"id"}},
	"resummarize":              {Role: Write, Scope: InTenant, Audit: AuditChange, Target: []string{"id"}},
	"condense":                 {Role: Write, Scope: InTenant, Audit: AuditChange, Target: []string{"id"}},
	"analyze":                  {Role: Operate, Scope: InTenant, Audit: AuditChange, Target: []string{"project", "dry_run"}, Note: "it spends what the model costs"},
	"watch-analyze":            {Role: Operate, Scope: InTenant, Audit: AuditChange, Target: []string{"project", "dry_run"}, Note: "it spends what the model costs"},

	// Projects.
	"list-projects":             {Role: Read, Scope: InTenant, Audit: AuditRead},
	"show-project":              {Role: Read, Scope: InProject, Audit: AuditRead, Target: []string{"project"}},
	"read-project-context":      {Role: Read, Scope: InProject, Audit: AuditRead, Target: []string{"project"}},
	"search-code":               {Role: Read, Scope: InProject, Audit: AuditRead, Target: []string{"project"}},
	"conversations-about-scope": {Role: Read, Scope: InProject, Audit: AuditRead, Target: []string{"project"}},
	"list-indexed-files":        {Role: Read, Scope: InProject, Audit: AuditNone},
	"view-memory":               {Role: Read, Scope: InProject, Audit: AuditNone},
	"use-memory":                {Role: Read, Scope: InProject, Audit: AuditNone, Note: "every command but `view` needs the role write and a token of the tenant"},
	"withdraw-lesson":           {Role: Write, Scope: InTenant, Audit: AuditChange, Target: []string{"project", "seq"}},
	"read-insights":             {Role: Read, Scope: InTenant, Audit: AuditRead, Target: []string{"project", "conversation"}},
	"alias-project":             {Role: Operate, Scope: InTenant, Audit: AuditChange, Target: []string{"project", "into"}, Note: "tokens of a project see what becomes part of it"},
	"unalias-project":           {Role: Operate, Scope: InTenant, Audit: AuditChange, Target: []string{"project"}},

	// Hooks of coding agents.
	"take-hook":  {Role: Write, Scope: InTenant, Audit: AuditRead, Note: "it makes the server look at a file, and shows what is stored"},
	"list-hooks": {Role: Read, Scope: InTenant, Audit: AuditNone},

	// Operations.
	"show-access":    {Role: Read, Scope: InProject, Audit: AuditNone},
	"status":         {Role: Read, Scope: InTenant, Audit: AuditNone, Note: "texts of errors and the names of processes are shown only to tokens of all tenants"},
	"list-failed":    {Role: Operate, Scope: InTenant, Audit: AuditRead, Target: []string{"conversation"}},
	"show-failed":    {Role: Operate, Scope: InTenant, Audit: AuditRead},
	"retry-failed":   {Role: Operate, Scope: InTenant, Audit: AuditChange, Target: []string{"seq", "conversation", "all", "projection"}},
	"verify":         {Role: Operate, Scope: Across, Audit: AuditNone},
	"watch-verify":   {Role: Operate, Scope: Across, Audit: AuditNone},
	"list-settings":  {Role: Operate, Scope: Across, Audit: AuditNone},
	"doctor":         {Role: Operate, Scope: Across, Audit: AuditNone},
	"list-rebuilds":  {Role: Operate, Scope: Across, Audit: AuditNone},
	"rebuild":        {Role: Operate, Scope: Across, Audit: AuditChange, Target: []string{"projection", "force"}, Note: "`force` needs the role admin, because it can lose the last copy of events"},
	"cancel-rebuild": {Role: Operate, Scope: Across, Audit: AuditChange, Target: []string{"projection"}},
	"repair-log":     {Role: Admin, Scope: Across, Audit: AuditChange, Target: []string{"dry_run", "accept"}},
	"list-quotas":    {Role: Operate, Scope: InTenant, Audit: AuditNone},
	"list-audit":     {Role: Operate, Scope: InTenant, Audit: AuditNone, Note: "entries that are not about one tenant are shown only to tokens of all tenants"},
	"erase":          {Role: Admin, Scope: Across, Audit: AuditChange, Target: []string{"conversation", "project", "all", "before", "dry_run"}},
	"show-erasure":   {Role: Operate, Scope: Across, Audit: AuditNone},
}

// Tools says what every tool of the MCP server needs, by its name. A token that allows none of them is
// refused at each call; a tool that needs the role write is not shown to a token that only reads.
var Tools = map[string]Need{
	"memory_context":      {Role: Read, Scope: InProject, Audit: AuditRead},
	"memory_search":       {Role: Read, Scope: InProject, Audit: AuditRead},
	"memory_read":         {Role: Read, Scope: InProject, Audit: AuditNone},
	"memory_file_history": {Role: Read, Scope: InProject, Audit: AuditRead},
	"memory_remember":     {Role: Write, Scope: InTenant, Audit: AuditNone},
}

// Exporters is what an exporter of OpenTelemetry needs, on the ports of its own.
var Exporters = Need{Role: Write, Scope: InTenant}

// Open lists the paths that need no token, with the reason. They show nothing of any
// tenant. A path that ends in a slash or an asterisk stands for everything below it.
var Open = map[string]string{
	"/healthz":          "probes ask whether the process runs",
	"/readyz":           "probes ask whether it can serve",
	"/metrics":          "collectors read counts and times, which name no tenant and no conversation",
	"/":                 "the inspector page holds no data; what it shows, it asks the API for with the reader's token",
	"/page/*":           "the files of that page",
	"/session":          "the page asks how people sign in, and signs them in and out",
	"/signin":           "it sends a browser to the identity provider, if there is one for people",
	"/signin/callback":  "there the browser comes back",
	"/docs":             "the description of the API is public",
	"/docs/*":           "the files of that page",
	"/help":             "the documentation holds no data",
	"/help/*":           "its pages",
	"/openapi.json":     "the description of the API is public",
	"/openapi.yaml":     "the same",
	"/openapi-3.0.json": "the same, for older tools",
	"/openapi-3.0.yaml": "the same, for older tools",

	"/.well-known/oauth-protected-resource":     "it names the identity provider, if there is one, to clients that have no token yet (RFC 9728)",
	"/.well-known/oauth-protected-resource/mcp": "the same, for the tools for agents",
}

// Allows reports whether a grant meets a need, whatever the request names.
func (n Need) Allows(r Rights) bool {
	switch {
	case r.Role < n.Role:
		return false
	case n.Scope == Across:
		return r.AllTenants
	case r.Project != "":
		return n.Scope == InProject
	}
	return true
}
