package redact

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSecretsAreReplaced(t *testing.T) {
	key := "AKIA" + "IOSFODNN7QRSTUVW"
	for in, want := range map[string]string{
		"key " + key + ".":                              "key [redacted:aws-key].",
		key + "," + key:                                 "[redacted:aws-key],[redacted:aws-key]",
		"postgres://app:" + "s3cr3t-pw@db:5432/x":       "postgres://app:[redacted:url-password]@db:5432/x",
		"Authorization: Bearer " + "abcDEF123456abcDEF": "Authorization: Bearer [redacted:authorization]",
		`"password": "` + `hunter2!"`:                   `"password": "[redacted:password]"`,
		"DB_PASSWORD=" + "Tr0ub4dor&x":                  "DB_PASSWORD=[redacted:password]&x",
		"a <private>my address</private> b":             "a [redacted:private] b",
		"curl -sS --user 'admin:" + "hunter22secret' x": "curl -sS --user 'admin:[redacted:password]' x",
	} {
		got, kinds := Default().Text(in)
		assert.Equal(t, want, got)
		assert.NotEmpty(t, kinds)
	}
}

func TestPasswordsOfCurlAreReplaced(t *testing.T) {
	const secret, gone = "hunter22" + "secret", "[redacted:password]"
	for _, s := range []string{
		"curl -u admin:%", "curl -uadmin:% x", "curl -su admin:% x", "curl -fsSLu 'admin:%' x", "curl -s -X POST --user me@x.org:% x", "curl --user=admin:% x", `curl \"https://x\" -u \"admin:%\"`,
		"curl -s; curl https://svc-users.internal:8443/v1/users?a=1&b=2 -u admin:%", "make && curl -k  -u  admin:% && ls",
	} {
		got, kinds := Default().Text(strings.ReplaceAll(s, "%", secret))
		assert.Equal(t, strings.ReplaceAll(s, "%", gone), got)
		assert.Equal(t, []string{"password"}, kinds, s)
	}
	for _, s := range []string{
		"curl https://svc-users.internal:8443/v1/users/42", "curl https://my-ubuntu.example.com:8443/v2/catalog", "curl https://auth-user.prod.internal:8443/oauth2/token",
		"curl -s x docker.io/b-utils:v1.2.3-beta", "curl -s x && docker run -u web:staff2024x y", "curl -s x & docker run -u web:staff2024x y", "curl -s x; docker run -u web:staff2024x y",
		"curl -s x | sudo -u web:staff2024x y", "curl -s x\ndocker run -u web:staff2024x y", "curl -s -u https://x.internal:8443/v1/users", "curl --user-agent mozilla:v1.2.3-beta x", "curl -output:v1.2.3-beta x",
	} {
		got, _ := Default().Text(s)
		assert.Equal(t, s, got)
	}
}

func TestPasswordsOfBothOptionsOfACurlAreReplaced(t *testing.T) {
	got, kinds := Default().Text("curl -u web:" + "hunter22secret https://a.example -u admin:" + "Tr0ub4dor3x")
	require.Equal(t, "curl -u web:[redacted:password] https://a.example -u admin:[redacted:password]", got)
	require.Len(t, kinds, 2)
}

func TestPasswordsOfCurlAreFoundNearItsName(t *testing.T) {
	for between, found := range map[string]bool{
		strings.Repeat("é", maxCommand):                             true,
		strings.Repeat("é", maxCommand+1):                           false,
		"https://a.example/?" + strings.Repeat("&a", maxCommand-19): true, // an & and what follows count as one
	} {
		_, kinds := Default().Text("curl " + between + " -u admin:" + "hunter22secret")
		require.Equal(t, found, len(kinds) == 1, between)
	}
}

func TestSecretsOfAlignedAssignmentsAndOfSeveralWordsAreReplaced(t *testing.T) {
	for in, want := range map[string]string{
		"API_TOKEN        = \"" + `q7Rw2Lm9Xk"`:           "API_TOKEN        = \"[redacted:password]\"",
		"api_key\t\t= " + "q7Rw2Lm9Xk4T":                  "api_key\t\t= [redacted:password]",
		`"db_password"     : "` + `hunter2!"`:             `"db_password"     : "[redacted:password]"`,
		`password = "` + `correct Tr0ub4dor3 horse" # x`:  `password = "[redacted:password]" # x`,
		`passphrase: '` + "hunter2! and\tmore'":           "passphrase: '[redacted:password]'",
		`{\"password\": \"` + `my Tr0ub4dor3\", \"n\": 1`: `{\"password\": \"[redacted:password]\", \"n\": 1`,
		`password = "` + "hunter2! is open\n":             "password = \"[redacted:password] is open\n",
	} {
		got, kinds := Default().Text(in)
		assert.Equal(t, want, got)
		assert.Equal(t, []string{"password"}, kinds)
	}
}

func TestALongFirstWordOfAQuotedValueIsReplaced(t *testing.T) {
	got, _ := Default().Text(`token: "` + strings.Repeat("aB3dE5gH", 20) + ` and more"`)
	assert.Equal(t, `token: "[redacted:password] and more"`, got)
}

func TestAPrivateKeyWithoutItsEndIsReplaced(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	begin, end := "-----BEG"+"IN RSA PRIVATE KEY-----", "-----E"+"ND RSA PRIVATE KEY-----"
	line := func() string { return random(r, alnum+"+/", 64) }
	body := line() + "\n" + line() + "\n" + random(r, alnum, 20)
	const gone = "[redacted:private-key]"
	for in, want := range map[string]string{
		"$ head -4 key.pem\n" + begin + "\n" + body:                                                                 "$ head -4 key.pem\n" + gone,
		begin + "\n" + body + "...\nand then more":                                                                  gone + "...\nand then more",
		begin + "\n" + line() + "\n" + line() + "\n... [output truncated]\n":                                        gone + "\n... [output truncated]\n",
		begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n" + body:                                     gone,
		"     1→" + begin + "\n     2→" + strings.ReplaceAll(body, "\n", "\n     3→") + "\n":                        "     1→" + gone + "\n",
		`key: "` + begin + `\n` + strings.ReplaceAll(body, "\n", `\n`) + `"`:                                        `key: "` + gone + `"`,
		"cut:\n" + begin + "\n" + body + "\nwhole, in a diff:\n-" + begin + "\n-" + line() + "\n-" + end + "\ndone": "cut:\n" + gone + "\nwhole, in a diff:\n-" + gone + "\ndone",
	} {
		got, _ := Default().Text(in)
		assert.Equal(t, want, got)
	}
	short := "-----BEG" + "IN PRIVATE KEY-----\n" + line() + "\n-----E" + "ND PRIVATE KEY-----" // of Ed25519
	got, _ := Default().Text(short + "\n")
	assert.Equal(t, gone+"\n", got)
	for _, s := range []string{
		"A file with " + begin + " holds a key,\nwhich begins like this:\n" + begin + "\nMIIEpAIBAAKCAQEA...\n", begin + "\n" + strings.Repeat("x", 64) + "\n" + strings.Repeat("x", 64),
		"if !strings.Contains(s, \"" + begin + "\") {\n\treturn errors.New(\"" + strings.Repeat("no key ", 20) + "\")\n}",
	} {
		got, _ := Default().Text(s)
		assert.Equal(t, s, got)
	}
}

func TestTextsThatOnlyMentionSecretsStay(t *testing.T) {
	for _, s := range []string{
		"password = os.environ['DB_PASSWORD']", "api_key: string", "const token = await getToken(user.id)", "password=$PASSWORD", "export TOKEN=${GITHUB_TOKEN}",
		`apiKey: "your-api-key-1"`, "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN", "AKIAIOSFODNN7EXAMPLE", "sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxx",
		"https://user:password@example.com", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "input_tokens: 1234567", "max_tokens=4096000",
		"key: value1", "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", "token: config.token2", "APIKey:     PostHogAPIKey,", `[]byte(\"secret: \"+aSecret9), 0o644)`, "secret_name: my-secret", "http://127.0.0.1:8080/a@b",
		`password: "Must have 8 characters, or sha256 of them."`, `output_token: "NextMarker || Contents[-1].Key"`, `"token": "Returned by ListMultiplexes in version2"`, "token    = readToken()",
	} {
		got, kinds := Default().Text(s)
		assert.Equal(t, s, got)
		assert.Empty(t, kinds)
	}
}

// sentences have a word of letters and digits, as descriptions in JSON schemas and of OpenAPI have.
var sentences = []string{
	"OAuth2 access token", "SHA256 digest", "Base64 encoded password of the user", "Set by actions/checkout@v4 step", "managed by HashiCorp1Vault", "OAuth2.0 token (RFC6749).", "The base64url-encoded key",
	"Keycloak24 token", "PKCS12 or X509Certificate, at most 4096 bytes", "OAuth2 user's token?", "RFC6749 token", "128-bit key", "S3Bucket key", "Set by docker/build-push-action@v5.1.0", "HS256 - signed with the key", "Name of the KubernetesV1Secret", "an OAuth2APIToken",
}

func TestSentencesAreNoSecrets(t *testing.T) {
	for _, s := range sentences {
		for _, text := range []string{`{"auth_token": "` + s + `"}`, `secret: "` + s + `"`, `{\"password\": \"` + s + `\", \"n\": 1}`, `secret: "` + s + strings.Repeat(" and so on", 60) + `"`, `secret = "` + s + " \n"} {
			got, _ := Default().Text(text)
			assert.Equal(t, text, got)
		}
		_, secret := Default().Member("token", s)
		assert.False(t, secret, s)
	}
	text := `secret: "OAuth2 \"bearer\" token"`
	got, _ := Default().Text(text)
	assert.Equal(t, text, got)
	for _, s := range []string{
		"hunter2 x9!k", "hunter2 & 4711", "hunter2! and more", "a1b2c3d4 is it", "a1B2c3 is it", "correct Tr0ub4dor3 horse", "Tr0ub4dor3 is the password", "my Passw0rdX now", "use aB3dE5gH/kL7mN9pQ here", "it is abcd-1234-efgh-5678", "Set to xKqBzRtYpLm3WFdS",
	} {
		_, secret := Default().Member("token", s)
		assert.True(t, secret, s)
		got, _ := Default().Text(`secret: "` + s + `"`)
		assert.Equal(t, `secret: "[redacted:password]"`, got)
	}
}

func TestAMemberOfAnObjectIsJudgedByItsName(t *testing.T) {
	_, secret := Default().Member("db_password", "hunter2x")
	assert.True(t, secret)
	_, secret = Default().Member("db_password", "correct Tr0ub4dor3 horse")
	assert.True(t, secret)
	for name, value := range map[string]string{"tokens": "hunter2x", "password": "string", "secret": "ask for the password of 2024", "path": "hunter2x", "api_key": "${KEY1}"} {
		_, secret := Default().Member(name, value)
		assert.False(t, secret, name)
	}
}

func TestInFilesTagsThatAreTextsOfAProgramHideNothing(t *testing.T) {
	for in, want := range map[string]string{
		"const a = \"<private>\"\nfunc f() {}\nconst b = \"</private>\"\n": "const a = \"<private>\"\nfunc f() {}\nconst b = \"</private>\"\n",
		"s = \"<private>x</private>\"\n":                                   "s = \"[redacted:private]\"\n",
		"a\n<private>\nx\n</private>\nb\n":                                 "a\n[redacted:private]\n\n\nb\n",
		"a\r\n\t// <private>\r\n\t// x\r\n\t// </private>\r\nb":            "a\r\n\t// [redacted:private]\n\n\r\nb",
		"<!-- <private> -->\nx\n<!-- </private> -->\n":                     "<!-- [redacted:private]\n\n -->\n",
		"/* <private> */\nx\n/* </private> */":                             "/* [redacted:private]\n\n */",
		"token: \"" + "q7Rw2Lm9Xk\"":                                       "token: \"[redacted:password]\"",
	} {
		got, _ := Default().ForFiles().Lines(in)
		assert.Equal(t, want, got)
	}
}

func TestRulesOfOnesOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(s string) { require.NoError(t, os.WriteFile(path, []byte(s), 0o600)) }
	write("rules:\n  - kind: employee\n    pattern: 'EMP-(\\d{6})'\n    any: [EMP-]\n  - kind: word\n    pattern: 'redacted|employee'\n")
	r, err := Load(path)
	require.NoError(t, err)
	assert.Regexp(t, `^`+Version+`\+[0-9a-f]{8}$`, r.Version())
	got, kinds := r.Text("EMP-123456")
	assert.Equal(t, "EMP-[redacted:employee]", got, "what was replaced is not matched again")
	assert.Equal(t, []string{"employee"}, kinds)
	write("rules: [{kind: blank, pattern: '\\s+'}]")
	r, err = Load(path)
	require.NoError(t, err)
	got, _ = r.Lines("a \n\nb")
	assert.Equal(t, "a[redacted:blank]\n\nb", got)
	for bad, says := range map[string]string{
		"":                                    "has no rules",
		"rules: []":                           "has no rules",
		"rules: [{kind: a b, pattern: x}]":    "rule 1: kind",
		"rules: [{kind: a}]":                  "pattern: is missing",
		"rules: [{kind: a, pattern: '('}]":    "missing closing",
		"rules: [{kind: a, pattern: 'x*'}]":   "empty text",
		"rules: [{kind: a, pattern: (a)(b)}]": "more than one group",
		"rules: [{kind: a, regex: b}]":        "regex",
	} {
		write(bad)
		_, err := Load(path)
		assert.ErrorContains(t, err, says, bad)
	}
}

// pieces draws texts that are likely to hold secrets.
func pieces() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom(append([]string{
		"password=", `"`, "'", " ", "\n", "Bearer ", "://u:", "@h", "token: ", "[redacted:", "]", "[redacted:x]", "<private>", "</private>", "eyJ", "sk-", "abc123DEF456", "curl ", " -u ", "secret: \"", "OAuth2 ", "Tr0ub4dor3 ", "words ", `\"`,
		"Cookie: a=", "; b=", "Authorization: ", "machine h login u password ", " --token ", "mysql -p", "<password>", "</password>", "&sig=", "auth\": \"", "\x1b[32m", `\n`, "%20", "==", "aB3dE5gH7jK9mN2pQ4sT", "| password |", "|--|--|\n", "|", `"set-cookie": ["`,
	}, secrets(len(forms))...)))
	return rapid.Map(rapid.SliceOfN(piece, 0, 10), func(s []string) string { return strings.Join(s, "") })
}

// Rules that look at gates only would miss a match that begins elsewhere.
func TestAMatchOfARuleThatRunsAtGatesBeginsWithOne(t *testing.T) {
	for _, r := range defaults {
		if r.before == nil {
			continue
		}
		assert.True(t, strings.HasPrefix(r.find.text, "^"), "%s: %s", r.kind, r.find.text)
		matches := rapid.StringMatching(r.find.text)
		rapid.Check(t, func(t *rapid.T) {
			match := matches.Draw(t, r.kind)
			assert.True(t, slices.ContainsFunc(r.gates, func(gate string) bool { return strings.HasPrefix(match, gate) }), "%q", match)
		})
	}
}

func TestARedactedTextStaysAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkText(t, pieces().Draw(t, "text")) })
}

// Each replacement shows one more key before it, so that the rounds must have an end.
func TestATextThatShowsKeyAfterKeyIsReplacedAsAWhole(t *testing.T) {
	long := strings.Repeat("GOCS"+"PX-", 20_000)
	got, kinds := Default().Text("before " + long + "\nafter")
	require.Equal(t, "before [redacted:google-oauth]\nafter", got)
	require.Len(t, kinds, maxRounds+1)
	checkText(t, "before "+long+"\nafter")
}

func checkText(t require.TestingT, s string) {
	once, kinds := Default().Text(s)
	if len(kinds) == 0 {
		require.Equal(t, s, once)
	}
	again, more := Default().Text(once)
	require.Equal(t, once, again)
	require.Empty(t, more)
	lines, _ := Default().Lines(s)
	require.Equal(t, strings.Count(s, "\n"), strings.Count(lines, "\n"))
	last := 0
	for _, f := range Default().Find(s) {
		require.LessOrEqual(t, last, f.Start)
		require.Less(t, f.Start, f.End)
		last = f.End
	}
}

func FuzzText(f *testing.F) {
	for _, s := range secrets(len(forms)) {
		f.Add("say " + s + " and password: '" + s + "'")
	}
	f.Fuzz(func(t *testing.T, s string) { checkText(t, s) })
}
