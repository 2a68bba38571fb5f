package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Places where secrets stand that have no form of their own: headers, URLs, options of commands, and files of passwords.

// setName matches a variable that holds a secret, and flagName an option.
const (
	setName  = `[A-Za-z0-9_]{0,60}(?:PASSWORD|PASSWD|PASS|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|AUTH_KEY|SECRET_KEY_BASE)`
	flagName = `(?:[a-z0-9]{1,20}-){0,3}(?:password|passwd|passphrase|pass|token|secret|api-?key|access-key|secret-key|private-key)`
	quoted   = `\\?["']?`
)

// jsonBlanks and jsonText are parts of a list in JSON, also of one that is itself in a text of JSON.
const (
	jsonBlanks = `(?:\s|\\[nrt])*`
	jsonText   = `\\?["'][^"'\\\r\n]*\\?["']`
)

// commandPlaces are secrets among the arguments of commands.
var commandPlaces = []rule{
	{kind: "password", gates: []string{" -", "\t-"}, find: match(`^[ \t]` + curlUser + quoted + `[^\s:/"'\\]{1,64}:(/?[^\s/"'\\][^\s"'\\]{5,199})`), before: anywhere, within: command("curl"), plausible: password},
	{kind: "password", gates: []string{" -p"}, find: match(`^ -p` + quoted + `([^\s"'\\]{6,200})`), before: anywhere, within: command("mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump"), plausible: password},
	{kind: "password", gates: []string{" -p", " -a"}, find: match(`^ -[pa][ =]?` + quoted + `([^\s"'\\]{6,200})`), before: anywhere, within: command("sshpass", "docker login", "podman login", "redis-cli"), plausible: password},
	{kind: "password", gates: []string{" --", "\t--"}, find: match(`^[ \t]--` + flagName + `[ \t]+` + quoted + `([^\s"'` + "`" + `\\-][^\s"'` + "`" + `\\,;<>(){}\[\]|&]{7,})`), before: anywhere, plausible: bare},
	{kind: "password", gates: []string{"set -", "setx ", "ENV "}, find: match(`^(?:set(?: -[A-Za-z]{1,4}){1,3}[ \t]|setx |ENV )[ \t]*` + setName + `[ \t]+` + quoted + `([^\s"'\\;&|]{8,})`), before: noWord, plausible: bare},
}

// filePlaces are secrets in the files of programs that have forms of their own.
var filePlaces = []rule{
	{kind: "password", gates: []string{"machine ", "machine\t", "default login"}, find: match(`^(?:machine[ \t]+\S{1,200}\s+|default )login\s+\S{1,200}\s+password\s+"?([^\s"]{6,200})`), before: noWord, plausible: password},
	{kind: "password", gates: []string{":5432:"}, find: match(`^:5432:[^\s:]{1,63}:[^\s:]{1,63}:([^\s:]{6,200})(?:\s|$)`), before: anywhere, plausible: password},
	{kind: "password", gates: []string{"assword>", "asswd>", "ecret>", "oken>", "piKey>", "pi_key>", "essKey>"}, find: match(`(?i)(?:password|passwd|secret|token|api_?key|accesskey)>([^<>\s]{6,})</`), plausible: password},
	{kind: "password", gates: []string{`key="`}, find: match(`^key="(?i:[a-z0-9_.:-]{0,60}(?:password|secret|token|api_?key|accesskey))"\s{1,4}value="([^"\s]{6,})"`), before: noWord, plausible: password},
	{kind: "password", gates: []string{"define("}, find: match(`^define\(\s{0,4}["']` + setName + `["']\s{0,4},\s{0,4}["']([^"'\s]{6,200})["']`), before: noWord, plausible: password},
	{kind: "password", gates: []string{"alue:", `alue"`, `alue\"`, "alue'"}, find: match(`^alue(?:\\?"|')?:[ \t]*` + quoted + `([^\s"'\\,{}]{6,})`), before: inPair, plausible: bare},
	{kind: "password", gates: []string{"alue:", `alue"`, `alue\"`, "alue'"}, find: match(`^alue(?:\\?"|')?:[ \t]*` + quoted + `([^\s"'\\,{}]{6})`), before: anywhere, extend: throughName, parts: namedAfter},
	{kind: "password", gates: []string{"IDENTIFIED BY ", "identified by "}, find: match(`^(?:IDENTIFIED BY|identified by) +(?:PASSWORD +|password +)?["']([^"'\s]{6,200})["']`), before: noWord, plausible: password},
	{kind: "password", gates: []string{"PASSWORD '"}, find: match(`^PASSWORD '([^'\s]{6,200})'`), before: noWord, plausible: password},
	{kind: "password", gates: []string{"password '"}, find: match(`^password '([^'\s]{8,200})'`), before: noWord, plausible: strong},
	{kind: "private-key", gates: []string{"Private-Lines: "}, find: match(`^Private-Lines: \d{1,3}\r?\n((?:[A-Za-z0-9+/=]{4,64}(?:\r?\n|$))+)`), before: anywhere, plausible: varied},
	{kind: "private-key", gates: []string{`"kty"`}, find: match(`"(?:d|p|q|dp|dq|qi|k)"\s*:\s*"([A-Za-z0-9_-]{22,})"`), plausible: varied},
	{kind: "private-key", gates: []string{base64Begin}, find: match(`^` + base64Begin + `[A-Za-z0-9+/]{60,}={0,2}`), before: anywhere, plausible: encodedKey},
	{kind: "authorization", gates: []string{`auth"`, `auth\"`, "_auth=", "_auth ="}, find: match(`^(?:auth\\?"\s{0,4}:|_auth ?=)\s{0,4}` + quoted + `([A-Za-z0-9+/]{8,500}={0,2})`), before: anywhere, plausible: basic},
}

// headerPlaces are secrets in the headers and addresses of requests.
var headerPlaces = []rule{
	{kind: "url-password", gates: []string{"://"}, find: match(`^://[^\s/:@"'<>\[\]{}()` + "`" + `]{0,100}:([^\s/:@"'<>` + "`" + `]{3,200})@[A-Za-z0-9\[]`), before: scheme, plausible: password},
	{kind: "url-password", gates: []string{"://"}, find: match(`^://([A-Za-z0-9_-]{24,255})@[A-Za-z0-9\[]`), before: scheme, plausible: scattered},
	{kind: "signature", gates: []string{"X-Amz-Signature=", "X-Goog-Signature=", "X-Amz-Security-Token="}, find: match(`^X-(?:(?:Amz|Goog)-Signature|Amz-Security-Token)=([A-Za-z0-9%+/=_-]{32,})`), before: anywhere, plausible: varied},
	{kind: "signature", gates: []string{"?sig=", "&sig=", ";sig="}, find: match(`^[?&;]sig=([A-Za-z0-9%+/=_-]{40,})`), before: anywhere, plausible: keyed},
	{kind: "authorization", gates: authorization, find: match(`^(?:uthorization|UTHORIZATION)(?i:\\?["']?\s*[:=]\s*\\?["']?(?:bearer|basic|token)\s+(?:authorization\s*[:=]\s*(?:bearer|basic|token)\s+)?)([A-Za-z0-9+/=_.~-]{12,})`), before: anA, plausible: credential},
	{kind: "authorization", gates: authorization, find: match(`^(?:uthorization|UTHORIZATION)(?i:\\?["']?\s*[:=]\s*\\?["']?(?:[a-z][a-z0-9_-]{1,30} +)?)([A-Za-z0-9+/=_~-]{20,})`), before: anA, plausible: scattered},
	{kind: "authorization", gates: []string{"Bearer ", "bearer ", "BEARER ", "Bearer%20", "SSWS "}, find: match(`^(?:(?:Bearer|bearer|BEARER|SSWS) +|Bearer%20)([A-Za-z0-9+/=_.~-]{20,})`), before: noWord, plausible: credential},
	{kind: "cookie", gates: []string{"ookie:", `ookie":`, `ookie\":`, `ookie':`}, find: match(`^ookie(?:\\?"|')?:[ \t]*(\[` + jsonBlanks + `(?:,?` + jsonBlanks + jsonText + jsonBlanks + `)+|` + quoted + `[^\r\n"'\\]{16,})`), before: anywhere, parts: cookies},
}

// inPair accepts a text that ends with the v of a pair's value, if the name of the pair is that of a secret, as in
// {"name": "DB_PASSWORD", "value": "…"} and in the environment of a container in YAML.
func inPair(text string) bool {
	const between = " \t\r\n,\"'\\"
	text = strings.TrimRight(text[:max(0, len(text)-1)], between)
	name := nameBefore(text)
	if name == "" || !ofSecret(name) {
		return false
	}
	text, ok := strings.CutSuffix(strings.TrimRight(text[:len(text)-len(name)], between), ":")
	text = strings.TrimRight(text, between)
	return ok && (strings.HasSuffix(text, "ame") || strings.HasSuffix(text, "ey")) // name, Name, key, Key
}

// nameAfter matches what follows the value of a pair that begins with it, as in {"value": "…", "name": "DB_PASSWORD"}.
var nameAfter = regexp.MustCompile(`^` + quoted + `[\s,]{1,40}` + quoted + `(?:[Nn]ame|[Kk]ey)` + quoted + `:[ \t]*` + quoted + `[A-Za-z0-9_.-]{1,80}`)

// endOfValue are the characters that end the value of such a pair.
const endOfValue = " \t\r\n\f\"'\\,{}"

// throughName returns the end of the name after a value, or else the end of the value: a text of nothing but beginnings of
// pairs would otherwise be read again from each of them.
func throughName(text string, end int) int {
	if n := strings.IndexAny(text[end:], endOfValue); n >= 0 {
		end += n
	} else {
		return len(text)
	}
	if m := nameAfter.FindStringIndex(text[end:min(len(text), end+200)]); m != nil {
		end += m[1]
	}
	return end
}

// namedAfter returns where the value of a pair is that begins with it, if the name is that of a secret.
func namedAfter(pair string) (places [][2]int) {
	n := strings.IndexAny(pair, endOfValue)
	if n < 0 { // no name follows
		return nil
	}
	name := nameBefore(pair)
	if value := pair[:n]; len(value) <= maxValue && name != "" && ofSecret(name) && bare(value) {
		places = append(places, [2]int{0, n})
	}
	return places
}

// authorization is the rest of the name of the header, after its A.
var authorization = []string{"uthorization", "UTHORIZATION"}

// anA accepts a text that ends with an A which begins a word.
func anA(text string) bool {
	end := len(text) - 1
	return end >= 0 && (text[end] == 'a' || text[end] == 'A') && noWord(text[:end])
}

// cookies returns where the values of a header Cookie or Set-Cookie, or of a list of such headers, are that can be the key of
// a session.
func cookies(headers string) (places [][2]int) {
	for at := 0; at < len(headers); {
		end := len(headers)
		if n := strings.IndexAny(headers[at:], `;"'\`); n >= 0 {
			end = at + n
		}
		name, value, ok := strings.Cut(headers[at:end], "=")
		if n := strings.IndexAny(value, " \t,"); n >= 0 {
			value = value[:n] // a value has neither, so more than the header is in the line
		}
		if start := at + len(name) + 1; ok && len(value) >= 16 && credential(value) {
			places = append(places, [2]int{start, start + len(value)})
		}
		at = end + 1
	}
	return places
}

// base64Begin is how the BEGIN line of PEM begins in base64, as in the settings of kubectl.
const base64Begin = "LS0tLS1CRUdJTi"

// encodedKey accepts the base64 of a private key, not of a certificate.
func encodedKey(s string) bool {
	head, _ := base64.StdEncoding.DecodeString(s[:56])
	return strings.Contains(string(head), "PRIVATE KEY-----")
}

// botToken accepts a token of Discord by its first part, the base64 of the number of an account.
func botToken(s string) bool {
	id, _, _ := strings.Cut(s, ".")
	raw, err := base64.RawStdEncoding.DecodeString(id)
	return err == nil && len(strings.Trim(string(raw), "0123456789")) == 0 && varied(s)
}

// basic accepts the base64 of a user and a password.
func basic(s string) bool {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return false
	}
	user, secret, ok := strings.Cut(string(raw), ":")
	return ok && user != "" && len(secret) >= 3 && strings.IndexFunc(string(raw), func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// scattered accepts what looks drawn by chance: capital letters and digits among lower-case letters.
func scattered(s string) bool {
	digits := 0
	for _, c := range s {
		if '0' <= c && c <= '9' {
			digits++
		}
	}
	return len(s) >= 20 && digits >= 3 && mixed(s) && !standIn(s)
}
