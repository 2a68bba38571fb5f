package access

// Scope is what a route reads or changes.
type Scope string

// The scopes.
const (
	InProject Scope = "project" // one conversation, or a list of them: a token of a project may use it for that project
	InTenant  Scope = "tenant"  // everything of one tenant
	Across    Scope = "all"     // every tenant at once
)

// Need is what a request to a route needs.
type Need struct {
	Role  Role
	Scope Scope
	Note  string // what the handler restricts further; one sentence without a full stop
}

// Routes says what every operation of the API needs, by its id. An operation that is not
// here can't be registered. The OpenAPI document, docs/access.md and the tests over all
// routes are made from this table; nothing else decides.
var Routes = map[string]Need{
	// Events.
	"publish-events": {Role: Write, Scope: InTenant},
	"lookup-events":  {Role: Read, Scope: InTenant},
	"show-event":     {Role: Read, Scope: InTenant},
	"stream":         {Role: Read, Scope: InTenant, Note: "of the status it shows what the operation status shows"},
	"import":         {Role: Write, Scope: InTenant},

	// Conversations.
	"list-conversations":       {Role: Read, Scope: InProject},
	"show-conversation":        {Role: Read, Scope: InProject},
	"list-messages":            {Role: Read, Scope: InProject},
	"show-message":             {Role: Read, Scope: InProject},
	"show-embedding":           {Role: Read, Scope: InProject},
	"list-turns":               {Role: Read, Scope: InProject},
	"show-outline":             {Role: Read, Scope: InProject},
	"list-events":              {Role: Read, Scope: InProject},
	"list-steps":               {Role: Read, Scope: InProject},
	"list-tool-calls":          {Role: Read, Scope: InProject},
	"show-tool-call":           {Role: Read, Scope: InProject},
	"list-summaries":           {Role: Read, Scope: InProject},
	"show-summary":             {Role: Read, Scope: InProject},
	"list-files":               {Role: Read, Scope: InProject},
	"read-context":             {Role: Read, Scope: InProject, Note: "`record=true` needs the role write"},
	"list-contexts":            {Role: Read, Scope: InProject},
	"show-context":             {Role: Read, Scope: InProject},
	"search-conversation":      {Role: Read, Scope: InProject},
	"export-conversation":      {Role: Read, Scope: InProject},
	"search":                   {Role: Read, Scope: InTenant},
	"similar-conversations":    {Role: Read, Scope: InTenant},
	"conversations-about-code": {Role: Read, Scope: InTenant},
	"create-conversation":      {Role: Write, Scope: InTenant},
	"update-conversation":      {Role: Write, Scope: InTenant},
	"delete-conversation":      {Role: Write, Scope: InTenant},
	"create-branch":            {Role: Write, Scope: InTenant},
	"summarize":                {Role: Write, Scope: InTenant},
	"resummarize":              {Role: Write, Scope: InTenant},
	"condense":                 {Role: Write, Scope: InTenant},

	// Projects.
	"list-projects":        {Role: Read, Scope: InTenant},
	"show-project":         {Role: Read, Scope: InProject},
	"read-project-context": {Role: Read, Scope: InProject},
	"view-memory":          {Role: Read, Scope: InProject},
	"use-memory":           {Role: Read, Scope: InProject, Note: "every command but `view` needs the role write and a token of the tenant"},
	"alias-project":        {Role: Operate, Scope: InTenant, Note: "tokens of a project see what becomes part of it"},
	"unalias-project":      {Role: Operate, Scope: InTenant},

	// Hooks of coding agents.
	"take-hook":  {Role: Write, Scope: InTenant, Note: "it makes the server look at a file, and shows what is stored"},
	"list-hooks": {Role: Read, Scope: InTenant},

	// Operations.
	"show-access":    {Role: Read, Scope: InProject},
	"status":         {Role: Read, Scope: InTenant, Note: "texts of errors and the names of processes are shown only to tokens of all tenants"},
	"list-failed":    {Role: Operate, Scope: InTenant},
	"show-failed":    {Role: Operate, Scope: InTenant},
	"retry-failed":   {Role: Operate, Scope: InTenant},
	"verify":         {Role: Operate, Scope: Across},
	"watch-verify":   {Role: Operate, Scope: Across},
	"list-settings":  {Role: Operate, Scope: Across},
	"doctor":         {Role: Operate, Scope: Across},
	"list-rebuilds":  {Role: Operate, Scope: Across},
	"rebuild":        {Role: Operate, Scope: Across, Note: "`force` needs the role admin, because it can lose the last copy of events"},
	"cancel-rebuild": {Role: Operate, Scope: Across},
	"repair-log":     {Role: Admin, Scope: Across},
	"erase":          {Role: Admin, Scope: Across},
	"show-erasure":   {Role: Operate, Scope: Across},
}

// Tools says what every tool of the MCP server needs, by its name. A token that allows none of them is
// refused at each call; a tool that needs the role write is not shown to a token that only reads.
var Tools = map[string]Need{
	"memory_context":      {Role: Read, Scope: InProject},
	"memory_search":       {Role: Read, Scope: InProject},
	"memory_read":         {Role: Read, Scope: InProject},
	"memory_file_history": {Role: Read, Scope: InProject},
	"memory_remember":     {Role: Write, Scope: InTenant},
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
	"/docs":             "the description of the API is public",
	"/docs/*":           "the files of that page",
	"/help":             "the documentation holds no data",
	"/help/*":           "its pages",
	"/openapi.json":     "the description of the API is public",
	"/openapi.yaml":     "the same",
	"/openapi-3.0.json": "the same, for older tools",
	"/openapi-3.0.yaml": "the same, for older tools",
	"/schemas/*":        "the same",

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
