package main

import (
	"fmt"
	"strings"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access/callout"
)

// NATSConfigCmd prints the server's configuration with the permissions.
type NATSConfigCmd struct {
	Tenants []string `help:"Tenants whose agents publish over NATS; comma separated." default:"default" placeholder:"NAME,..."`
	Seed    string   `name:"callout-seed-file" help:"Let agents connect with tokens of mneme tokens instead of passwords. The file holds the key with which context-api answers the server; it is made if it is missing." placeholder:"FILE"`
}

// Help implements kong.HelpProvider.
func (*NATSConfigCmd) Help() string {
	return `A NATS server with this configuration lets each program, operator and agent do what its role needs, and nothing else: docs/nats-roles.md lists the roles. It includes server.conf of deploy/nats, which must be in the same folder. Each user has its password in a variable of the server's environment, such as ` + natsdeploy.PasswordVariable("ingestor") + `; the configuration names it.

Example for two teams:

    mneme nats-config --tenants team-a,team-b > permissions.conf
    nats-server -c permissions.conf

A team's agents connect as agent-team-a and receive answers under ` + natsdeploy.InboxPrefix("agent-team-a") + `, which mneme's programs do by themselves; other NATS clients have an option for the prefix of their inbox.

With --callout-seed-file an agent has no password on the server. It connects as agent-team-a with a token of its team, and the server asks context-api, to which MNEME_NATS_CALLOUT_SEED_FILE names the same file:

    mneme nats-config --tenants team-a,team-b --callout-seed-file callout.nk > permissions.conf`
}

// Run prints it.
func (c *NATSConfigCmd) Run(t *terminal) error {
	of := natsdeploy.Permissions{Tenants: c.Tenants}
	if c.Seed != "" {
		key, err := callout.MakeSeed(c.Seed)
		if err != nil {
			return usageError("--callout-seed-file: %v", err)
		}
		if of.Callout, err = key.PublicKey(); err != nil {
			return err
		}
	}
	text, err := of.Render()
	if err != nil {
		return usageError("--tenants: %v", err)
	}
	return t.text(text)
}

// natsRolesPages list the roles on the NATS server, each on a page.
func natsRolesPages() map[string]string {
	var index strings.Builder
	index.WriteString("# What each role may do on the NATS server\n\n" + generated)
	index.WriteString("`deploy/nats/permissions.conf`, and `mneme nats-config` for other tenants, give each user below these permissions. " +
		"The user has the name of the role, and receives answers under `" + natsdeploy.InboxPrefix("ROLE") + ".>`, where nobody else may listen. " +
		"[Security](security.md#nats) says what follows from them, and [operations](operations/access.md#permissions-on-the-nats-server) how to use them.\n\n" +
		"| role | | its password is in |\n|---|---|---|\n")
	agent := natsdeploy.Role{
		Name: natsdeploy.AgentUser("TENANT"), Purpose: "The agents of a tenant, in an account of their own. They read nothing.", Publish: natsdeploy.AgentSubjects("TENANT"),
	}
	pages := map[string]string{}
	for _, r := range append([]natsdeploy.Role{agent}, natsdeploy.Roles()...) {
		path := "nats-roles/" + r.Name + ".md"
		fmt.Fprintf(&index, "| [%s](%s) | %s | `%s` |\n", r.Name, path, cellText(r.Purpose), natsdeploy.PasswordVariable(r.Name))
		pages[path] = natsRolePage(r)
	}
	pages["nats-roles.md"] = index.String()
	return pages
}

func natsRolePage(r natsdeploy.Role) string {
	text := fmt.Sprintf("# %s on the NATS server\n\n%s%s [All roles](../nats-roles.md).\n\n", r.Name, generated, r.Purpose)
	text += fmt.Sprintf("Publishes to:\n\n```text\n%s\n```\n\n", strings.Join(r.Publish, "\n"))
	if len(r.Subscribe) > 0 {
		text += fmt.Sprintf("Subscribes to:\n\n```text\n%s\n```\n\n", strings.Join(r.Subscribe, "\n"))
	}
	if r.Answers {
		text += "It answers each request once.\n\n"
	}
	return text
}
