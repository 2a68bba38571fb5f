package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Version is the version of the rules in this package. It grows whenever a text can be redacted
// differently than before.
const Version = "11"

// rule finds secrets of one kind.
type rule struct {
	kind string
	// gates are texts of which one must occur before the expression runs; none means that it always runs.
	gates []string
	// find matches the secret, or a text around its only group. Nil means assignments.
	find *pattern
	// before is set if every match begins at a gate: it says whether one may, after this text. The expression then runs at
	// gates only, with ^ at its beginning, which spares it the rest of a long text. It must not read far where it fails,
	// because the next gate can be close.
	before func(text string) bool
	// within accepts a match that begins at a gate by all of the text before it; nil accepts all.
	within func(text string) bool
	// extend returns the end of the secret that begins with a match; the end of the match means that it is none. Nil: the
	// match is the secret.
	extend func(text string, end int) int
	// parts returns where the secrets are in a match; nil: the match is the secret.
	parts func(match string) [][2]int
	// plausible distinguishes a secret from what only looks like one; nil accepts all.
	plausible func(secret string) bool
}

// pattern is a regular expression that is compiled when it is first needed: most texts have no gate of most rules, and
// every start of a program would wait for more than a hundred expressions.
type pattern struct {
	text string
	re   func() *regexp.Regexp
}

func match(text string) *pattern {
	return &pattern{text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// prefixed returns the rule of secrets that begin with one of the gates and are no part of a longer word. RE2 has no
// look-around, so the secret is a group.
func prefixed(kind, pattern string, gates ...string) rule {
	return rule{kind: kind, gates: gates, find: match(`^(` + pattern + `)` + wordEnd), before: noWord, plausible: varied}
}

// unprefixed is as prefixed, of secrets that have a gate elsewhere, or of which much must be read to see that it is none.
func unprefixed(kind, pattern string, gates ...string) rule {
	return rule{kind: kind, gates: gates, find: match(`(?:^|[^A-Za-z0-9_]|\\[nrt]|\x1b\[[0-9;]*m|%[0-9A-Fa-f]{2})(` + pattern + `)` + wordEnd), plausible: varied}
}

const wordEnd = `(?:$|[^A-Za-z0-9_])`

// noWord accepts the end of a text that is not within a word.
func noWord(text string) bool {
	return text == "" || !isWordByte(text[len(text)-1]) || escaped.MatchString(text[max(0, len(text)-20):])
}

// escaped matches what ends with a letter or digit and is no word: an escape of JSON or of a URL, and the colour of a
// terminal.
var escaped = regexp.MustCompile(`(?:\\[nrt]|%[0-9A-Fa-f]{2}|(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)\[[0-9;]{0,12}m)$`)

func isWordByte(c byte) bool { return c == '_' || isAlphanumeric(c) }

func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// scheme accepts a text that ends with the scheme of a URL: a letter and 1 to 30 letters, digits, plus, dot or hyphen.
func scheme(text string) bool {
	for i := len(text) - 1; i >= max(0, len(text)-31); i-- {
		switch c := text[i]; {
		case isLetter(c) && i < len(text)-1:
			return true
		case !isAlphanumeric(c) && c != '+' && c != '.' && c != '-':
			return false
		}
	}
	return false
}

// maxCommand is how many characters of a command are read, back from an option to the name of the program.
const maxCommand = 300

// command accepts a text that ends in the middle of a command of one of these programs. A command ends with its line, and
// at the signs ; and | and && and at a & before a space.
func command(programs ...string) func(text string) bool {
	return func(text string) bool {
		// Most options belong to other programs: it is faster to look for a name first. At most every other character is a &.
		near := text[max(0, len(text)-2*utf8.UTFMax*maxCommand):]
		if !slices.ContainsFunc(programs, func(name string) bool { return strings.Contains(near, name) }) {
			return false
		}
		isName := func(text, behind string) bool {
			return slices.ContainsFunc(programs, func(name string) bool {
				before, ok := strings.CutSuffix(text, name+behind)
				return ok && noWord(before)
			})
		}
		if isName(text, "") {
			return true
		}
		next := ' ' // the character after what is left of the text
		for n := 0; n <= maxCommand; {
			if strings.HasSuffix(text, " ") && isName(text, " ") {
				return true
			}
			c, size := utf8.DecodeLastRuneInString(text)
			switch {
			case size == 0 || strings.ContainsRune("\n|;", c):
				return false
			case c != '&':
				n++
			case strings.ContainsRune(" \t\n\f\r|;&", next):
				return false
			}
			text, next = text[:len(text)-size], c
		}
		return false
	}
}

func anywhere(string) bool { return true }

// The names that secrets have in settings, commands and JSON.
const secretName = `[a-z0-9]*pass(?:word|wd)|pass(?:phrase|code)?|(?:mysql_)?pwd|(?:client|app|shared|signing|webhook|jwt|session)[_-]?secret|secret[_-]?(?:access[_-]?)?key|` +
	`api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|encryption[_-]?key|(?:master|app|application|signing|admin|license|auth|service[_-]?role)[_-]?key|secret[_-]?key[_-]?base|` +
	`(?:auth|access|refresh|bearer|api|secret|session|deploy|bot|personal)[_-]?token|npm_token|[a-z0-9]+_token|[a-z0-9]+_secret|secret|token`

// curlUser matches the option of curl before USER:PASSWORD, also after options without a value, as in -sSu.
const curlUser = `(?:-[aBfgGiIjJklLMnNOpqRsSvZ#0-46]*u[ \t=]*|--user[ \t=]+)`

const privateTag = "<private>"

var private = match(`(?s)<private>.*?</private>`)

// inFiles are what stands for the rule private in whole files: tags in one line, and tags that stand alone on their
// lines, apart from the signs of a comment.
var inFiles = []rule{
	{kind: "private", gates: []string{privateTag}, find: match(`<private>[^\n]*?</private>`)},
	{kind: "private", gates: []string{privateTag}, find: match(`(?m)^[ \t/#*;%!<{-]*(<private>[ \t*/>}-]*\r?\n(?s:.*?)^[ \t/#*;%!<{-]*</private>)[ \t*/>}-]*\r?$`)},
}

// defaults are the rules, the most specific first: where two match, the first counts.
var defaults = slices.Concat(prefixes, providers, filePlaces, headerPlaces, commandPlaces, []rule{{kind: "password"}})

var prefixes = []rule{
	{kind: "private", gates: []string{privateTag}, find: private},
	// Five dashes are in no key: a key that was cut doesn't reach to the end of the next one.
	{kind: "private-key", gates: []string{"-----BEGIN "}, find: match(`^` + beginKey + `(?:[^-]|-{1,4}[^-])*-?` + endKey), before: anywhere, plausible: block},
	{kind: "private-key", gates: []string{"-----BEGIN "}, find: match(`^` + beginKey), before: anywhere, extend: cutKey, plausible: varied},

	prefixed("aws-key", `(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}`, "AKIA", "ASIA", "ABIA", "ACCA"),
	prefixed("github-token", `gh[pousr]_[A-Za-z0-9]{36,251}|ghs_[A-Za-z0-9]{1,20}_eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
	prefixed("gitlab-token", `gl(?:pat|dt|rt|soat|ptt|ft|cbt|agent|imt|oas|wt)-[A-Za-z0-9_.-]{19,}[A-Za-z0-9_]|GR1348941[A-Za-z0-9_-]{20,}`, "glpat-", "gldt-", "glrt-", "glsoat-", "glptt-", "glft-", "glcbt-", "glagent-", "glimt-", "gloas-", "glwt-", "GR1348941"),
	prefixed("slack-token", `xox[abcdeoprs]-[A-Za-z0-9%-]{10,}[A-Za-z0-9]|xoxe\.xox[bp]-[A-Za-z0-9-]{20,}[A-Za-z0-9]|xapp-\d-[A-Za-z0-9-]{20,}[A-Za-z0-9]`, "xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.xox", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
	{kind: "slack-webhook", gates: []string{"hooks.slack.com/"}, find: match(`https://hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/+-]{40,120})`), plausible: varied},
	prefixed("stripe-key", `(?:[sr]k_(?:live|test)|sk_org_(?:live|test)|whsec)_[A-Za-z0-9]{16,}`, "sk_org_live_", "sk_org_test_", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
	prefixed("anthropic-key", `sk-ant-[A-Za-z0-9-]{2,20}-[A-Za-z0-9_-]{20,}[A-Za-z0-9_]`, "sk-ant-"),
	prefixed("openrouter-key", `sk-or-v1-[0-9a-f]{64}`, "sk-or-v1-"),
	prefixed("openai-key", `sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}[A-Za-z0-9_]|sk-[A-Za-z0-9]{32,64}`, "sk-"),
	prefixed("google-key", `AIza[A-Za-z0-9_-]{35}|AQ\.Ab[A-Za-z0-9_-]{40,}`, "AIza", "AQ.Ab"),
	prefixed("google-oauth", `ya29\.[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{60,}|GOCSPX-[A-Za-z0-9_-]{28}`, "ya29.", "1//0", "GOCSPX-"),
	prefixed("npm-token", `npm_[A-Za-z0-9]{36}`, "npm_"),
	prefixed("pypi-token", `pypi-[A-Za-z0-9_-]{50,}[A-Za-z0-9_]`, "pypi-"),
	prefixed("huggingface-token", `(?:hf|api_org)_[A-Za-z0-9]{34}`, "hf_", "api_org_"),
	prefixed("sendgrid-key", `SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`, "SG."),
	prefixed("digitalocean-token", `do[opr]_v1_[0-9a-f]{64}`, "dop_v1_", "doo_v1_", "dor_v1_"),
	prefixed("docker-token", `dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,60}`, "dckr_"),
	prefixed("groq-key", `gsk_[A-Za-z0-9]{50,60}`, "gsk_"),
	prefixed("vault-token", `hv[sb]\.[A-Za-z0-9_-]{24,}`, "hvs.", "hvb."),
	prefixed("shopify-token", `shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`, "shpat_", "shpca_", "shppa_", "shpss_"),
	unprefixed("telegram-token", `\d{8,10}:AA[A-Za-z0-9_-]{33}`, ":AA"),
	{kind: "discord-token", gates: discordGates, find: match(`^((?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})` + wordEnd), before: noWord, plausible: botToken},
	prefixed("age-key", `AGE-SECRET-KEY-1[0-9A-Z]{58}`, "AGE-SECRET-KEY-1"),
	prefixed("linear-key", `lin_(?:api|oauth)_[A-Za-z0-9]{32,64}`, "lin_api_", "lin_oauth_"),
	prefixed("mneme-token", `mneme_[0-9A-Za-z]{49}`, "mneme_"),
	unprefixed("jwt", `eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}`, "eyJ"),
}

// discordGates are the base64 of the digits 1 to 9 before another digit.
var discordGates = []string{"MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"}

// ofSecret reports whether a name is that of a secret.
func ofSecret(name string) bool { return memberName.MatchString(name) && !stage.MatchString(name) }

// stage matches names of the passes of a renderer or compiler, but not settings, as FIRST_PASS.
var stage = regexp.MustCompile(`(?:^|[_.-])(?i:render|shader|shadow|depth|color|colour|light|lighting|geometry|gbuffer|raster|compute|post|blit|bloom|blur|deferred|forward|backward|scene|draw|` +
	`compiler?|optimi[sz]ation|opt|analysis|lowering|transform|codegen|first|second|final|single|multi)[_.-][Pp]ass$`)

// memberName matches the name of a member of a JSON object that holds a secret.
var memberName = regexp.MustCompile(`(?i)^[._-]*(?:[a-z0-9]+[_.-])*(?:(?-i:[A-Z0-9]+(?:SECRET|TOKEN|APIKEY))|[a-z0-9]*(?-i:[a-z0-9](?:Password|Passphrase|Secret|Token|ApiKey|AccessKey))|` + secretName + `)$`)

// varied refuses placeholders for secrets in documents and tests: few different characters, as in xxxx or 0000, or an
// ellipsis.
func varied(s string) bool {
	if notElided(s) && !strings.Contains(strings.ToLower(s), "example") {
		seen := map[rune]bool{}
		for _, c := range s[len(s)/2:] {
			seen[c] = true
		}
		return len(seen) >= 4 || len(s) < 12
	}
	return false
}

func notElided(s string) bool {
	return !strings.Contains(s, "...") && !strings.Contains(s, "…")
}

// block accepts the armour of a key with at least as much content as the shortest key has, which is one of Ed25519.
func block(s string) bool { return len(s) >= 118 && len(s) <= 20_000 && notElided(s) }

// standIns occur in values that stand for a secret.
var standIns = []string{
	"example", "changeme", "change_me", "change-me", "placeholder", "your", "dummy", "redacted", "xxx", "***", "...", "…", "${", "$(", "{{", "%s", "%v",
	"process.env", "os.environ", "os.getenv", "env.", "getenv", "secrets.", "not-a-real", "insert", "<", "localhost", "undefined", "null",
}

func standIn(s string) bool {
	lower := strings.ToLower(s)
	for _, w := range standIns {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return s[0] == '+' && !mixed(s) || strings.Contains(s, "),") || s[0] == '$' || s[0] == '%' || s[0] == '@' || strings.Count(s, s[:1]) == len(s)
}

// kinds of characters in a text.
func classes(s string) (lower, upper, digit, sign bool) {
	for _, c := range s {
		switch {
		case 'a' <= c && c <= 'z':
			lower = true
		case 'A' <= c && c <= 'Z':
			upper = true
		case '0' <= c && c <= '9':
			digit = true
		default:
			sign = true
		}
	}
	return lower, upper, digit, sign
}

// password accepts a value that somebody wrote in quotes, or in a URL: with letters and digits, or with signs that no
// name has.
func password(s string) bool {
	if standIn(s) {
		return false
	}
	lower, upper, digit, _ := classes(s)
	return mixed(s) || (lower || upper) && digit || (lower || upper) && strings.ContainsAny(s, "!#$%^&*+=~?") || digit && !lower && !upper && len(s) >= 12
}

// phrase accepts a value of several words in quotes. Because descriptions have the names of secrets too, as in
// password: "Enter the password of 2024", one of the words must be more than a word of a sentence.
func phrase(s string) bool {
	if len(s) > maxPhrase || standIn(s) {
		return false
	}
	words := strings.Fields(s)
	return len(words) > 0 && first(words[0], words[1:]) || slices.ContainsFunc(words, strong)
}

// first accepts the first word of a value in quotes. A word such as SHA256 or hunter2 can be a password as well as the
// beginning of a sentence: the words that follow tell which.
func first(word string, rest []string) bool {
	return len(word) >= 6 && password(word) && !(sentence([]string{word}) && sentence(rest))
}

// strong accepts a word that no sentence has.
func strong(w string) bool {
	w = strings.TrimRight(w, ".,;:")
	return len(w) >= 8 && !strings.ContainsAny(w, bareStop) && bare(w) && !plain(w)
}

// term matches words of technical texts with at most one number in them: OAuth2.0, SHA256, base64url-encoded,
// X509Certificate, 128-bit, actions/checkout@v4.
var term = regexp.MustCompile(`^(?:\d{1,4}-)?[A-Za-z]+(?:[-_/.'][A-Za-z]+)*(?:-?\d{1,3}(?:\.\d{1,2}){0,2}(?:[A-Z][A-Za-z]*|url|s)?(?:[-_/.'][A-Za-z]+)*)?(?:/[A-Za-z]+(?:[-_.][A-Za-z]+)*@(?:v?\d+(?:\.\d+){0,3}|[0-9a-f]{40}))?$`)

// camel matches words that are joined by their capital letters, as HashiCorp1Vault.
var camel = regexp.MustCompile(`^(?:OAuth|IPv|API|AWS|EC|GCP|HMAC|HTTPS?|ID|JSON|JWT|SHA|SSH|TLS|URL|[KSVX]|[A-Z]{2,6}(?:[^A-Za-z]|$)|[A-Z]?[a-z]{2,}|[^A-Za-z]+|[@-]v)+$`)

// plain accepts words as sentences have them.
func plain(w string) bool {
	lower, upper, digit, _ := classes(w)
	return term.MatchString(w) && (camel.MatchString(w) || !mixed(w) && !(lower && upper && digit))
}

// numeral matches numbers, and names of standards, as RFC6749.
var numeral = regexp.MustCompile(`^(?:[A-Z]{2,6}-?)?[v+-]?\d{1,6}(?:[.,]\d{1,6})*%?$`)

// sentence accepts words as they are in a text, at least one of letters.
func sentence(words []string) bool {
	letters := false
	for _, w := range words {
		w = strings.TrimRight(strings.Trim(w, ".,;:()[]{}<>\"'`\\“”‘’§"), "?")
		switch {
		case plain(w):
			letters = true
		case numeral.MatchString(w):
			letters = letters || w[0] >= 'A'
		case len(w) <= 1 || strings.Trim(w, "-–—&|/=+*→…") == "":
		default:
			return false
		}
	}
	return letters
}

// credential accepts a value after the name of a scheme.
func credential(s string) bool {
	lower, upper, digit, _ := classes(s)
	return !standIn(s) && varied(s) && (digit || lower && upper) && (lower || upper) && !strings.EqualFold(s, "authorization") // a header in a header
}

// mixed accepts more capital letters among small ones than the words of a name have.
func mixed(s string) bool {
	large, small := 0, 0
	for _, c := range s {
		if 'A' <= c && c <= 'Z' {
			large++
		} else if 'a' <= c && c <= 'z' {
			small++
		}
	}
	return len(s) >= 12 && large >= len(s)/4 && small >= len(s)/4
}

// code matches expressions of a program and paths of files.
var code = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+$|^[./~]|://|::|->|:=|==`)

// operator matches what no secret has.
var operator = regexp.MustCompile(`://|::|->|:=|==.`)

// named matches a variable that holds a secret.
var named = regexp.MustCompile(`^[A-Za-z_]+(?:[Kk]ey|KEY|[Tt]oken|TOKEN|[Ss]ecret|SECRET|[Pp]assword|PASSWORD)$`)

// bare accepts a value without quotes, which must look less like a name or an expression.
func bare(s string) bool {
	if s[0] == '=' || standIn(s) || named.MatchString(s) || code.MatchString(strings.TrimRight(s, "=")) && (!scattered(s) || operator.MatchString(s)) {
		return false
	}
	lower, upper, digit, _ := classes(s)
	if !digit || !lower && !upper {
		return mixed(s)
	}
	// A word with a number at its end, as variable2 or sha256, is a name.
	stem := strings.TrimRight(s, "0123456789")
	if l, u, d, sign := classes(stem); !d && !sign && (l != u) && len(s)-len(stem) <= 3 {
		return false
	}
	return len(s) >= 12 || upper && lower || strings.ContainsAny(s, "!#$%^*+=~?@")
}
