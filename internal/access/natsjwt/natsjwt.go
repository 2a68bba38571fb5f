// Package natsjwt makes the files of a NATS server in operator mode, where keys and signed JWTs say who may do what
// instead of passwords in the server's configuration: an account for the log, one for the agents of each tenant, and
// a credentials file for each role of [natsdeploy.Roles].
//
// See docs/adr/0033-nats-jwts.md, and https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt
// for operator mode.
package natsjwt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/writefile"
)

// Conf is the name of the server's configuration.
const Conf = "jwt.conf"

// systemAccount is the account for the server's own messages, which has no users.
const systemAccount = "SYS"

// Folder is where the files are: [Conf], the keys of operator and accounts in keys, and the credentials in creds. The
// keys can grant every right, so keep them only where files are made.
type Folder string

// Creds returns the path of a user's credentials file.
func (f Folder) Creds(user string) string { return filepath.Join(string(f), "creds", user+".creds") }

func (f Folder) key(name string) string { return filepath.Join(string(f), "keys", name+".nk") }

// Make makes the files for these tenants. Existing keys stay, and so do credentials that say what the role needs.
// Others are made again, and the server refuses the old ones; with renew, all are made again.
func (f Folder) Make(tenants []string, renew bool) error {
	if _, err := (natsdeploy.Permissions{Tenants: tenants}).Render(); err != nil {
		return err // names that cannot be users
	}
	for _, dir := range []string{"keys", "creds"} {
		if err := os.MkdirAll(filepath.Join(string(f), dir), 0o700); err != nil {
			return err
		}
	}
	operator, err := f.openKey("operator", nkeys.CreateOperator)
	if err != nil {
		return err
	}
	keys := map[string]nkeys.KeyPair{}
	for _, name := range append([]string{systemAccount, natsdeploy.LogAccount}, agentAccounts(tenants)...) {
		if keys[name], err = f.openKey("account-"+name, nkeys.CreateAccount); err != nil {
			return err
		}
	}
	accounts, err := f.accounts(tenants, keys, renew)
	if err != nil {
		return err
	}
	text, err := f.render(operator, accounts)
	if err != nil {
		return err
	}
	return writefile.Write(filepath.Join(string(f), Conf), strings.NewReader(text))
}

func agentAccounts(tenants []string) (list []string) {
	for _, tenant := range tenants {
		list = append(list, natsdeploy.AgentUser(tenant))
	}
	return list
}

// accounts makes the credentials of all users, and returns the claims of the accounts.
func (f Folder) accounts(tenants []string, keys map[string]nkeys.KeyPair, renew bool) (map[string]*jwt.AccountClaims, error) {
	all, public := map[string]*jwt.AccountClaims{}, map[string]string{}
	for name, key := range keys {
		id, err := key.PublicKey()
		if err != nil {
			return nil, err
		}
		public[name], all[name] = id, jwt.NewAccountClaims(id)
		all[name].Name = name
	}
	all[natsdeploy.LogAccount].Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	members := map[string][]natsdeploy.Role{natsdeploy.LogAccount: natsdeploy.Roles()}
	for _, tenant := range tenants {
		account := natsdeploy.AgentUser(tenant)
		members[account] = []natsdeploy.Role{{Name: account, Publish: natsdeploy.AgentSubjects(tenant)}}
		for _, subject := range natsdeploy.AgentSubjects(tenant) {
			subject := jwt.Subject(subject)
			all[natsdeploy.LogAccount].Exports.Add(&jwt.Export{Subject: subject, Type: jwt.Service, TokenReq: true})
			activation := jwt.NewActivationClaims(public[account])
			activation.ImportSubject, activation.ImportType = subject, jwt.Service
			token, err := activation.Encode(keys[natsdeploy.LogAccount])
			if err != nil {
				return nil, err
			}
			all[account].Imports.Add(&jwt.Import{Subject: subject, Account: public[natsdeploy.LogAccount], Token: token, Type: jwt.Service})
		}
	}
	for name, roles := range members {
		oldest := int64(math.MaxInt64)
		for _, r := range roles {
			user, err := f.user(r, keys[name], renew)
			if err != nil {
				return nil, err
			}
			oldest = min(oldest, user.IssuedAt)
			all[name].RevokeAt(user.Subject, time.Unix(user.IssuedAt-1, 0))
		}
		all[name].RevokeAt(jwt.All, time.Unix(oldest-1, 0))
	}
	return all, nil
}

// user makes the credentials of a role, unless the existing ones say what it needs.
func (f Folder) user(r natsdeploy.Role, account nkeys.KeyPair, renew bool) (*jwt.UserClaims, error) {
	path := f.Creds(r.Name)
	key, old, err := readCreds(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = nkeys.CreateUser()
	}
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	issuer, err := account.PublicKey()
	if err != nil {
		return nil, err
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = r.Name
	claims.Pub.Allow.Add(r.Publish...)
	claims.Sub.Allow.Add(append(slices.Clone(r.Subscribe), natsdeploy.InboxPrefix(r.Name)+".>")...)
	if r.Answers {
		claims.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: natsdeploy.AnswerWithin}
	}
	if !renew && old != nil && old.Issuer == issuer && reflect.DeepEqual(old.Permissions, claims.Permissions) {
		return old, nil
	}
	token, err := claims.Encode(account)
	if err != nil {
		return nil, err
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, err
	}
	text, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		return nil, err
	}
	return claims, writefile.Write(path, bytes.NewReader(text))
}

// readCreds reads a credentials file.
func readCreds(path string) (nkeys.KeyPair, *jwt.UserClaims, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	key, err := nkeys.ParseDecoratedUserNKey(text)
	var token string
	if err == nil {
		token, err = nkeys.ParseDecoratedJWT(text)
	}
	var claims *jwt.UserClaims
	if err == nil {
		claims, err = jwt.DecodeUserClaims(token)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s holds no credentials of a NATS user; remove it, and new ones are made: %w", path, err)
	}
	return key, claims, nil
}

// openKey reads a key, or makes it.
func (f Folder) openKey(name string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
	path := f.key(name)
	text, err := os.ReadFile(path)
	if err == nil {
		key, err := nkeys.FromSeed(bytes.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s holds no key of NATS: restore it from a copy; a new key would invalidate every credentials file and start an empty log", path)
		}
		return key, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := create()
	if err != nil {
		return nil, err
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, err
	}
	return key, writefile.Write(path, strings.NewReader(string(seed)+"\n"))
}

// operatorToken returns the operator's JWT. It never changes, because a running server accepts no other.
func (f Folder) operatorToken(operator nkeys.KeyPair, system string) (string, error) {
	path := filepath.Join(string(f), "keys", "operator.jwt")
	public, err := operator.PublicKey()
	if err != nil {
		return "", err
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if claims, err := jwt.DecodeOperatorClaims(string(old)); err == nil && claims.Issuer == public && claims.SystemAccount == system {
		return string(old), nil
	}
	claims := jwt.NewOperatorClaims(public)
	claims.Name = "mneme"
	claims.SystemAccount = system
	token, err := claims.Encode(operator)
	if err != nil {
		return "", err
	}
	return token, writefile.Write(path, strings.NewReader(token))
}

// render returns the configuration of the server.
func (f Folder) render(operator nkeys.KeyPair, accounts map[string]*jwt.AccountClaims) (string, error) {
	system := accounts[systemAccount].Subject
	token, err := f.operatorToken(operator, system)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# Who may do what on the NATS server, by signed JWTs: nats-server -c %s
# Made by mneme nats-config --jwt; docs/nats-roles.md lists the roles. Run the command again for other tenants. The
# server reads the file again at nats-server --signal reload.

include "server.conf"

operator: %s
system_account: %s
resolver: MEMORY
resolver_preload: {
`, Conf, token, system)
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		token, err := accounts[name].Encode(operator)
		if err != nil {
			return "", fmt.Errorf("account %s: %w", name, err)
		}
		fmt.Fprintf(&out, "  # %s\n  %s: %s\n", name, accounts[name].Subject, token)
	}
	out.WriteString("}\n")
	return out.String(), nil
}
