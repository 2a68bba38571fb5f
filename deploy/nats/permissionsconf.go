package natsdeploy

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// PermissionsConf is [Permissions.Render] for the tenant "default", as deploy/nats/permissions.conf
// has it. docker-compose.yml uses it.
//
//go:embed permissions.conf
var PermissionsConf string

// AnswerWithin is how long a program may take to answer a request: as long as a model may take to write.
const AnswerWithin = 15 * time.Minute

// LogAccount is the account that holds the log. The agents of each tenant are in another.
const LogAccount = "MNEME"

// safeTenant matches tenants that need no quoting in the name of a user, an account or a variable.
var safeTenant = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// PasswordVariable returns the variable from which a server with [Permissions.Render] takes the password of
// a user.
func PasswordVariable(user string) string {
	return "MNEME_NATS_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_")) + "_PASSWORD"
}

// CalloutSubject is the subject on which a server asks about a connection, in the account of the log.
const CalloutSubject = "$SYS.REQ.USER.AUTH"

// Permissions says for whom the configuration of a server is made.
type Permissions struct {
	// Tenants are the tenants whose agents publish over NATS.
	Tenants []string

	// Callout is the public key of an account. With it, agents have no passwords: they send a token of the HTTP API.
	// The server asks context-api about the token; context-api has the seed of that key.
	Callout string
}

// roles returns the roles. With a callout, context-api also answers the server's questions.
func (p Permissions) roles() []Role {
	list := Roles()
	for i := range list {
		if p.Callout != "" && list[i].Name == "context-api" {
			list[i].Subscribe, list[i].Answers = append(list[i].Subscribe, CalloutSubject), true
		}
	}
	return list
}

// Render returns a configuration of nats-server that adds the roles, and the tenants' agents, to a server.conf beside it.
// It refuses a tenant whose name is not made of letters, digits, _ and -, and tenants that would share a variable.
func (p Permissions) Render() (string, error) {
	variables := map[string]string{}
	for _, tenant := range p.Tenants {
		if !safeTenant.MatchString(tenant) {
			return "", fmt.Errorf("tenant %q: only letters, digits, _ and - can be in the name of a NATS user; let its agents publish over HTTP", tenant)
		}
		variable := PasswordVariable(AgentUser(tenant))
		if other, taken := variables[variable]; taken {
			return "", fmt.Errorf("tenants %q and %q would both have their password in %s: name only one of them", other, tenant, variable)
		}
		variables[variable] = tenant
	}
	var out strings.Builder
	out.WriteString(`# Who may do what on the NATS server: nats-server -c permissions.conf
# Made by mneme nats-config; docs/nats-roles.md lists the roles. Run the command again for other tenants.
#
# Each password is in a variable of the server's environment. It must begin with a letter; it may be a
# bcrypt hash (nats server passwd). A variable that is missing keeps the server from starting.

include "server.conf"

accounts {
  # The log, and the programs and people that work with it.
  ` + LogAccount + ` {
    jetstream: enabled
    users: [
`)
	for _, r := range p.roles() {
		user(&out, "      ", r)
	}
	out.WriteString("    ]\n")
	if len(p.Tenants) > 0 {
		out.WriteString("    exports: [\n")
		for _, tenant := range p.Tenants {
			for _, subject := range AgentSubjects(tenant) {
				fmt.Fprintf(&out, "      {service: %q, accounts: [%q]}\n", subject, AgentUser(tenant))
			}
		}
		out.WriteString("    ]\n")
	}
	out.WriteString("  }\n")
	for _, tenant := range p.Tenants {
		fmt.Fprintf(&out, `
  # The agents of the tenant %s. In an account of their own they can't name a subject of the log's account
  # to be answered on, which the server would publish to without asking for permission.
  %q {
`, tenant, AgentUser(tenant))
		if p.Callout == "" {
			out.WriteString("    users: [\n")
			user(&out, "      ", Role{Name: AgentUser(tenant), Publish: AgentSubjects(tenant)})
			out.WriteString("    ]\n")
		}
		out.WriteString("    imports: [\n")
		for _, subject := range AgentSubjects(tenant) {
			fmt.Fprintf(&out, "      {service: {account: %s, subject: %q}}\n", LogAccount, subject)
		}
		out.WriteString("    ]\n  }\n")
	}
	out.WriteString("}\n")
	if p.Callout != "" {
		fmt.Fprintf(&out, `
# Who sends a token of mneme instead of a user and password of above is let in as context-api answers.
authorization {
  auth_callout {
    issuer: %q
    account: %s
    auth_users: [
`, p.Callout, LogAccount)
		for _, r := range p.roles() {
			fmt.Fprintf(&out, "      %q\n", r.Name)
		}
		out.WriteString("    ]\n  }\n}\n")
	}
	return out.String(), nil
}

// user writes a user with the permissions of a role.
func user(out *strings.Builder, indent string, r Role) {
	list := func(name string, subjects []string) {
		fmt.Fprintf(out, "%s  %s: [\n", indent, name)
		for _, s := range subjects {
			fmt.Fprintf(out, "%s    %q\n", indent, s)
		}
		fmt.Fprintf(out, "%s  ]\n", indent)
	}
	fmt.Fprintf(out, "%s{user: %q, password: $%s, permissions: {\n", indent, r.Name, PasswordVariable(r.Name))
	list("publish", r.Publish)
	list("subscribe", append(r.Subscribe[:len(r.Subscribe):len(r.Subscribe)], InboxPrefix(r.Name)+".>"))
	if r.Answers {
		fmt.Fprintf(out, "%s  allow_responses: {max: 1, expires: \"%.0fm\"}\n", indent, AnswerWithin.Minutes())
	}
	fmt.Fprintf(out, "%s}}\n", indent)
}
