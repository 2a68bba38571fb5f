package redact

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSecretsInTheirPlacesAreReplaced has a secret that no prefix shows in each place that the rules know.
func TestSecretsInTheirPlacesAreReplaced(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	const word, sign = "hunter22" + "Secret", "kB3dE5gH7jK9mN2pQ4sT6vW8yZ" + "aC1eF0gI5k"
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct{ text, secret string }{
		{"machine api.example.org login me@example.org password %\n", word},
		{"machine api.example.org\n  login me\n  password %\n", word},
		{"default login me password %", word},
		{"db.internal:5432:app:appuser:%\n", word},
		{"mysql -u root -p% -h db", word},
		{"sshpass -p '%' ssh me@host", word},
		{"docker login -u me -p % registry.internal", word},
		{"redis-cli -h cache -a % ping", word},
		{"deploy --password % --yes", word},
		{"deploy --api-key \"%\"", word},
		{"gh auth --with-token % x", sign},
		{"set -gx API_TOKEN %", word},
		{"ENV DB_PASSWORD %\n", word},
		{"PGPASSWORD=% psql -h db", word},
		{"AccountName=x;AccountKey=%;EndpointSuffix=core.windows.net", encoded(sign + word)},
		{"data:\n  password: %\n", encoded("my" + word + "1")},
		{"export AWS_SESSION_TOKEN=%\n", random(r, alnum+"/+", 900) + "=="},
		{"\"SecretAccessKey\": \"+%\"", random(r, alnum+"/", 39)},
		{"//registry.npmjs.org/:_authToken=%\n", "c1f40ad5-b03a-4e28-a7b8-10cd8627c13e"},
		{"_auth=%\n", encoded("me:" + word)},
		{`{"auths": {"registry.internal": {"auth": "%"}}}`, encoded("me:" + word)},
		{"os.environ[\"OPENAI_API_KEY\"] = \"%\"", word},
		{`{\\\"password\\\": \\\"%\\\"}`, word},
		{"<password>%</password>", word},
		{`<add key="ServiceApiKey" value="%" />`, word},
		{"Cookie: theme=dark; sessionid=%; lang=en", sign},
		{"Set-Cookie: connect.sid=s%3A%; Path=/; HttpOnly", sign},
		{`"Cookie": "sid=%"`, sign},
		{"> Cookie: sid=% \n", sign},
		{"Cookie: sid=%, b=c", sign},
		{"Cookie: sid=% User-Agent: curl", sign},
		{`"set-cookie": ["theme=dark; Path=/", "sid=%; HttpOnly"]`, sign},
		{"'Set-Cookie': [\n  'a=b',\n  'sid=%; Path=/'\n]", sign},
		{`{\"set-cookie\":[\n\"sid=%\"]}`, sign},
		{"map[Set-Cookie:[sid=%; Path=/]]", sign},
		{"DISCORD=%\n", "MT" + "E5ODYyMjQ4MzQ3MTkyNTI0OA." + "Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs"},
		{"| Name | Value |\n|---|---|\n| `DB_PASSWORD` | `%` |\n", word},
		{"| Setting | Value | Note |\n| --- | --- | --- |\n| **API key** | % | new |", word},
		{"| User | Password |\n|:-----|---------:|\n| ada | % |", word},
		{" id |  access_token  \n----+----------------\n  1 | %\n(1 row)\n", word},
		{"+------+--------+\n| user | secret |\n+------+--------+\n| ada  | %  |\n+------+--------+\n", word},
		{"     1→| user | password |\n     2→|---|---|\n     3→| ada | % |\n", word},
		{"│ DB_PASSWORD │ % │\n", word},
		{"┏━━━━━━┳━━━━━━━━━━┓\n┃ user ┃ password ┃\n┡━━━━━━╇━━━━━━━━━━┩\n│ ada  │ % │\n└──────┴──────────┘\n", word},
		{"╔══════╦════════╗\n║ user ║ secret ║\n╠══════╬════════╣\n║ ada  ║ % ║\n", word},
		{" id │ access_token \n────┼──────────────\n  1 │ %\n", word},
		{"| Setting | Notes |\n|---|---|\n| DB_PASSWORD | % |\n", word},
		{"| Type | Name | Value |\n|---|---|---|\n| env | DB_PASSWORD | % |\n", word},
		{"DB_PASSWORD=%(the old one)", "Summer2024"},
		{"FIRST_PASS=%", word},
		{"export ANALYSIS_PASS='%'", word},
		{"last_pass: %", word},
		{"created the secret: password='%'", word},
		{"pass: token: %", word},
		{"Reset the password: https://app.internal/reset?token=%", sign},
		{"SMTP_PASS=%\n", word},
		{"auth: { user: 'me', pass: '%' }", word},
		{"SECRET_KEY_BASE=%\n", random(r, hexa, 128)},
		{"deploy --pass % --yes", word},
		{"define( 'DB_PASSWORD', '%' );", word},
		{"env:\n  - name: DB_PASSWORD\n    value: \"%\"\n", word},
		{"env:\n  - name: API_TOKEN\n    value: %\n", word},
		{`{"name": "DB_PASSWORD", "value": "%"}`, word},
		{`[{\"Key\": \"api_key\", \"Value\": \"%\"}]`, word},
		{`{"value":"%","name":"DB_PASSWORD"}`, word},
		{`[{\"Value\": \"%\", \"Key\": \"api_key\"}]`, word},
		{"- value: '%'\n  name: DB_PASSWORD\n", word},
		{`{"name": "AWS_SESSION_TOKEN", "value": "%"}`, random(r, alnum, 900)},
		{"- name: AWS_SESSION_TOKEN\n  value: %\n", random(r, alnum, 900)},
		{"<SessionToken>%</SessionToken>", random(r, alnum, 900)},
		{`<add key="SessionToken" value="%" />`, random(r, alnum, 900)},
		{"deploy --session-token % --yes", random(r, alnum, 900)},
		{"ENV AWS_SESSION_TOKEN %\n", random(r, alnum, 900)},
		{"CREATE USER me IDENTIFIED BY '%';", word},
		{"ALTER ROLE me WITH LOGIN PASSWORD '%';", word},
		{"DB_PASSWORD=s3cret%(w0rd", word},
		{"password: \"=%\"", word},
		{`SECRET='{"user":"bob","password":"%","note":"` + strings.Repeat("x, ", 3000) + `"}'`, word},
		{`TOKEN='{"note":"f(x),` + strings.Repeat("y ", 300) + `","password":"%"}'`, word},
		{"Authorization: ApiKey %", sign},
		{`{"sent": "GET / HTTP/1.1\nAuthorization: Basic %\r\n"}`, sign},
		{"Authorization: %", sign},
		{"Authorization: Bearer Authorization: Bearer %", sign},
		{"Authorization: Bearer Authorization: Basic %", encoded("me:" + word)},
		{"Authorization: SSWS %", sign},
		{"https://%@git.internal/x.git", sign},
		{"https://x.blob.core.windows.net/c?sv=2022-11-02&sig=%%3D", sign + "aBcD"},
		{"https://b.s3.amazonaws.com/k?X-Amz-Signature=%", random(r, hexa, 64)},
		{"client-key-data: %\n", encoded("-----BEG" + "IN RSA PRIVATE KEY-----\n" + random(r, alnum, 400))},
		{"Private-Lines: 2\n%\n", random(r, alnum, 64) + "\n" + random(r, alnum, 20)},
		{`{"kty":"EC","crv":"P-256","d":"%"}`, random(r, alnum+"-_", 43)},
	} {
		text := strings.Replace(c.text, "%", c.secret, 1)
		if strings.Contains(c.text, "s%3A%") {
			text = strings.Replace(c.text, "s%3A%", "s%3A"+c.secret, 1)
		}
		got, kinds := Default().Text(text)
		assert.NotContains(t, got, c.secret, c.text)
		assert.Len(t, kinds, 1, c.text)
	}
}

// A tool's output has the colours of a terminal, and is often JSON in a text, or part of a URL.
func TestSecretsBehindEscapesAreReplaced(t *testing.T) {
	key := "gh" + "p_" + random(rand.New(rand.NewPCG(4, 2)), alnum, 36)
	for _, before := range []string{"\x1b[32m", "\x1b[1;32m", `A=1\n`, `\t`, `\u001b[32m`, `\033[0;32m`, "?q=%20", "%3D"} {
		got, _ := Default().Text(before + key)
		assert.Equal(t, before+"[redacted:github-token]", got)
	}
	got, _ := Default().Text("\x1b[32mapi_key\x1b[0m: \x1b[33m" + "q7Rw2Lm9Xk4T" + "\x1b[0m")
	assert.Equal(t, "\x1b[32mapi_key\x1b[0m: \x1b[33m[redacted:password]\x1b[0m", got)
	for _, before := range []string{`A=1\n`, `\t`, `\\r\\n`, "%0A", "a=b%26", `C:\`} {
		for _, name := range []string{"api_key=", "token: ", "secret=", `pwd = \"`} {
			got, _ = Default().Text(before + name + "q7Rw2Lm9Xk4T")
			assert.Equal(t, before+name+"[redacted:password]", got)
		}
	}
	jwt := "eyJ" + strings.Repeat("a1B2", 5)
	got, _ = Default().Text(`\n` + jwt + "." + jwt + "." + jwt)
	assert.Equal(t, `\n[redacted:jwt]`, got)
}

func TestPlacesWithoutSecretsStay(t *testing.T) {
	certificate := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\n" + random(rand.New(rand.NewPCG(1, 1)), alnum, 400)))
	for _, s := range []string{
		"docker run -p 8080:80 -e A=1 web2024image", "mysql -u root -p -h db-server-2024", "deploy --token-file /run/secrets/token2", "deploy --password-stdin < file1234",
		"deploy --token $TOKEN2024", "deploy --token <your-token-1>", "see --password below, and version2 of it", "ENV PATH /usr/local/go1.26/bin", "set -e TOKEN_FILE /tmp/x1y2z3",
		"Cookie: theme=dark; lang=en-GB", "Cookie: a=b", "Set-Cookie: id=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "Authorization: required", "Authorization: AWS4-HMAC-SHA256",
		"authorization = request.headers.get('x')", "https://some-organization-name-2024@dev.azure.com/x", "https://653a6628f2a9740bf8bc66306b7afffb@o1.ingest.sentry.io/1",
		"client-certificate-data: " + certificate, "signingKey := hmacSHA256(secret, date)", "token = utils.GetOAuth2Token(x)", "<token>string</token>", `"auth": "oauth2"`, `auth="` + "aHVudGVyMjJzZWNyZXQ" + `"`,
		"if token == 'a' {", "machine learning login page password reset", "secret_name_of_a_thing_that_is_as_long_as_a_key_is", "path/to/pat12345678901234.txt", "key-value", "re_compile_12345678_abcdefgh", "SUMMARY OF THE SUCCESSFUL CASES",
		"SessionToken: c.SessionToken2,", `{"name": "DB_PASSWORD", "valueFrom": "arn2024:x"}`, "--- PASS: TestTypeCheck2 (2.28s)\nPASS: TestOAuth2TokenIsRead", "| Test | Pass |\n|---|---|\n| a | TestOAuth2TokenIsRead |", `{"name": "title", "value": "hunter22Secret"}`, "- name: DB_PASSWORD\n  value: $(DB_PASSWORD_2)", "bypass = variant2Renderer", "no password 'SHA256' here",
		"define('DB_NAME', 'wordpress2024')", "IDENTIFIED BY 'your-password-1'", "| token | createdAt2024 |\n|---|---|\n| the | 12 |", "echo $TOKEN | base64url2Text | wc -l |", "type Credential =\n  | ApiKey | OAuth2Token\n  | Password | Pkcs12Bundle",
		"| password | string | at least 8 characters |", "| secret | `secrets.DB_PASSWORD_2` |", "| user | password |\n\n| ada | hunter22Secret |", "| token | input_tokens |\n|---|---|\n| word2vec | 99 |",
		"render_pass: 'gbuffer2'", `"shadow_pass": "depth32float"`, "opt_pass = 'inline2Simplify'", "Authorization: Bearer Authorization: none",
		"| Name | Type | Description |\n|---|---|---|\n| api_key | OAuth2Token | the key |", "│ Field │ Description │\n├───┼───┤\n│ token │ OAuth2Token │", "├── src\n│   ├── token\n│   │   └── hunter22Secret\n",
		`{"value": "hunter22Secret", "name": "title"}`, `[{"value": "hunter22Secret"}, {"name": "DB_PASSWORD"}]`, `{"value": "hunter22Secret", "name": "password_hint"}`,
		`"set-cookie": ["theme=dark", "lang=en-GB"]`, "MT" + strings.Repeat("aB3dE5", 4) + "." + "Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs", "keys: pa-" + strings.Repeat("-", 43),
	} {
		got, kinds := Default().Text(s)
		assert.Equal(t, s, got)
		assert.Empty(t, kinds)
	}
}

func TestARowOfVeryManyCellsIsNoneOfATable(t *testing.T) {
	const secret = "hunter22" + "Secret"
	row := "| DB_PASSWORD | " + secret + " |"
	wide := row + strings.Repeat(" x |", maxCells)
	for text, want := range map[string]string{
		row + "\n":               "| DB_PASSWORD | [redacted:password] |\n",
		wide + "\n":              wide + "\n",
		wide + "\n" + row + "\n": wide + "\n| DB_PASSWORD | [redacted:password] |\n",
	} {
		got, _ := Default().Text(text)
		require.Equal(t, want, got)
	}
}

// A value of any length after a name is read once, however many names are in it.
// To read the whole text from each beginning would take many minutes.
func TestATextOfBeginningsOfPairsIsReadOnce(t *testing.T) {
	for _, begin := range []string{"alue:", `alue:x"`, "alue: abcdef,", `alue":"abcdef`, "value:abcdef" + strings.Repeat(" ", 30)} {
		many := strings.Repeat(begin, 40_000)
		got, kinds := Default().Text(many + ` {"value":"hunter22Secret","name":"DB_PASSWORD"}`)
		require.Equal(t, many+` {"value":"[redacted:password]","name":"DB_PASSWORD"}`, got)
		require.Equal(t, []string{"password"}, kinds)
	}
}

func TestAValueThatIsTooLongIsNoSecret(t *testing.T) {
	long := "token=" + strings.Repeat("aB3dE5gH", maxValue/8+1)
	got, _ := Default().Text(long)
	require.Equal(t, long, got)
	got, _ = Default().Text(long + " token=" + "q7Rw2Lm9Xk4T")
	require.Equal(t, long+" token=[redacted:password]", got)
}
