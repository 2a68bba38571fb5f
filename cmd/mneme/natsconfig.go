package main

import (
	"fmt"
	"path/filepath"
	"strings"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access/callout"
	"mneme.dev/mneme/internal/access/natsjwt"
)

// NATSConfigCmd prints the server's configuration with the permissions.
type NATSConfigCmd struct {
	Tenants []string `help:"Tenants whose agents publish over NATS; comma separated." default:"default" placeholder:"NAME,..."`
	Seed    string   `name:"callout-seed-file" help:"Let agents connect with the tokens that mneme tokens creates, instead of with passwords. The file holds the key with which context-api answers the server; it is made if it is missing." placeholder:"FILE" xor:"with"`
	JWT     string   `name:"jwt" help:"Make a server in operator mode instead, with a credentials file for each role, into this folder." placeholder:"FOLDER" xor:"with"`
	Renew   bool     `help:"With --jwt: make all credentials again. The server refuses the old ones."`
}

func (*NATSConfigCmd) Help() string {
	return `A NATS server with this configuration lets each program, operator and agent do what its role needs, and nothing else: docs/nats-roles.md lists the roles. It includes server.conf of deploy/nats, which must be in the same folder. Each user has its password in a variable of the server's environment, such as ` + natsdeploy.PasswordVariable("ingestor") + `; the configuration names it.

Example for two teams:

    mneme nats-config --tenants team-a,team-b > permissions.conf
    nats-server -c permissions.conf

A team's agents connect as agent-team-a and receive answers under ` + natsdeploy.InboxPrefix("agent-team-a") + `, which mneme's programs do by themselves; other NATS clients have an option for the prefix of their inbox.

With --callout-seed-file an agent has no password on the server. It connects as agent-team-a with a token of its team, and the server asks context-api, whose MNEME_NATS_CALLOUT_SEED_FILE must name the same file:

    mneme nats-config --tenants team-a,team-b --callout-seed-file callout.nk > permissions.conf

With --jwt the server has no passwords: signed JWTs say who may do what. FOLDER gets ` + natsjwt.Conf + `, to put beside server.conf, and for each role a file that its program names in MNEME_NATS_CREDS_FILE, such as creds/ingestor.creds. Keep FOLDER/keys in a safe place: whoever has them can grant every right. Run it again for other tenants, or to renew credentials that somebody has seen:

    mneme nats-config --tenants team-a,team-b --jwt nats-jwt`
}

func (c *NATSConfigCmd) Run(t *terminal) error {
	if c.JWT != "" {
		return c.makeJWTs(t)
	}
	if c.Renew {
		return usageError("--renew renews the credentials of --jwt: name their folder")
	}
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

func (c *NATSConfigCmd) makeJWTs(t *terminal) error {
	folder := natsjwt.Folder(c.JWT)
	if err := folder.Make(c.Tenants, c.Renew); err != nil {
		return usageError("--jwt: %v", err)
	}
	return t.text(fmt.Sprintf("%s: the server's configuration, to put beside server.conf\n%s and so on: name each to its program in MNEME_NATS_CREDS_FILE\n%s: whoever has these keys can grant every right\n",
		filepath.Join(c.JWT, natsjwt.Conf), folder.Creds("ingestor"), filepath.Join(c.JWT, "keys")))
}

// natsRolesPages list the roles on the NATS server, each on a page.
func natsRolesPages() map[string]string {
	var index strings.Builder
	index.WriteString("# What each role may do on the NATS server\n\n" + generated)
	index.WriteString("`deploy/nats/permissions.conf`, and `mneme nats-config` for other tenants, give each user below these permissions. " +
		"The user has the name of the role, and receives answers under `" + natsdeploy.InboxPrefix("ROLE") + ".>`, where nobody else may listen. " +
		"`mneme nats-config --jwt` gives the same permissions to credentials files instead of passwords. [Security](security.md#nats) says what follows from them, and [operations](operations/access.md#permissions-on-the-nats-server) how to use them.\n\n" +
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
