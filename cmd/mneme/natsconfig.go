package main

import (
	"fmt"
	"strings"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// NATSConfigCmd prints the server's configuration with the permissions.
type NATSConfigCmd struct {
	Tenants []string `help:"Tenants whose agents publish over NATS; comma separated." default:"default" placeholder:"NAME,..."`
}

// Help implements kong.HelpProvider.
func (*NATSConfigCmd) Help() string {
	return `A NATS server with this configuration lets each program, operator and agent do what its role needs, and nothing else: docs/nats-roles.md lists the roles. It includes server.conf of deploy/nats, which must be in the same folder. Each user has its password in a variable of the server's environment, such as ` + natsdeploy.PasswordVariable("ingestor") + `; the configuration names it.

Example for two teams:

    mneme nats-config --tenants team-a,team-b > permissions.conf
    nats-server -c permissions.conf

A team's agents connect as agent-team-a and receive answers under ` + natsdeploy.InboxPrefix("agent-team-a") + `, which mneme's programs do by themselves; other NATS clients have an option for the prefix of their inbox.`
}

// Run prints it.
func (c *NATSConfigCmd) Run(t *terminal) error {
	text, err := natsdeploy.RenderPermissions(c.Tenants...)
	if err != nil {
		return usageError("--tenants: %v", err)
	}
	return t.text(text)
}

// natsRolesPage lists the roles on the NATS server.
func natsRolesPage() string {
	var out strings.Builder
	out.WriteString("# What each role may do on the NATS server\n\n" + generated)
	out.WriteString("`deploy/nats/permissions.conf`, and `mneme nats-config` for other tenants, give each user below these permissions. " +
		"The user has the name of the role, and receives answers under `" + natsdeploy.InboxPrefix("ROLE") + ".>`, where nobody else may listen. " +
		"[Security](security.md#nats) says what follows from them, and [operations](operations.md#permissions-on-the-nats-server) how to use them.\n\n")
	roles := natsdeploy.Roles()
	agent := natsdeploy.Role{
		Name: natsdeploy.AgentUser("TENANT"), Purpose: "The agents of a tenant, in an account of their own. They read nothing.", Publish: natsdeploy.AgentSubjects("TENANT"),
	}
	for _, r := range append([]natsdeploy.Role{agent}, roles...) {
		fmt.Fprintf(&out, "## %s\n\n%s Its password is in `%s`.\n\n", r.Name, r.Purpose, natsdeploy.PasswordVariable(r.Name))
		fmt.Fprintf(&out, "Publishes to:\n\n```text\n%s\n```\n\n", strings.Join(r.Publish, "\n"))
		if len(r.Subscribe) > 0 {
			fmt.Fprintf(&out, "Subscribes to:\n\n```text\n%s\n```\n\n", strings.Join(r.Subscribe, "\n"))
		}
		if r.Answers {
			out.WriteString("It answers each request once.\n\n")
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}
