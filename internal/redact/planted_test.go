package redact

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	alnum   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	hexa    = "0123456789abcdef"
	upper32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// random returns n characters of an alphabet.
func random(r *rand.Rand, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// forms are the shapes that secrets have, each around a secret that r makes. Prefixes are split, so that
// scanners don't take this file for a leak.
var forms = []func(r *rand.Rand) (text, secret string){
	alone("AK"+"IA", upper32, 16), alone("AS"+"IA", upper32, 16), alone("gh"+"p_", alnum, 36), alone("gh"+"o_", alnum, 36), alone("gh"+"s_", alnum, 36),
	func(r *rand.Rand) (string, string) {
		s := "github_" + "pat_" + random(r, alnum, 22) + "_" + random(r, alnum, 59)
		return s, s
	},
	alone("gl"+"pat-", alnum, 20), alone("gl"+"rt-", alnum, 20), alone("xo"+"xb-2345678901-", alnum, 24), alone("xo"+"xp-2345678901-", alnum, 32), alone("xa"+"pp-1-A0123-", alnum, 40),
	around("curl https://hooks.sla"+"ck.com/services/", "T0123ABCD/B0123ABCD/", alnum, 24, ""),
	alone("sk"+"_live_", alnum, 24), alone("rk"+"_live_", alnum, 24), alone("wh"+"sec_", alnum, 32), alone("sk"+"-ant-api03-", alnum, 93), alone("sk"+"-proj-", alnum, 48), alone("sk"+"-", alnum, 48),
	alone("AI"+"za", alnum, 35), alone("ya"+"29.", alnum, 60), alone("GOC"+"SPX-", alnum, 28), alone("np"+"m_", alnum, 36), alone("py"+"pi-AgEIcHlwaS5vcmc", alnum, 60), alone("h"+"f_", letters, 34),
	func(r *rand.Rand) (string, string) {
		s := "S" + "G." + random(r, alnum, 22) + "." + random(r, alnum, 43)
		return s, s
	},
	alone("mne"+"me_", alnum, 49), alone("lin"+"_api_", alnum, 40), around("curl -s -u admin:", "", alnum, 16, " https://api.internal"),
	alone("dop"+"_v1_", hexa, 64), alone("dck"+"r_pat_", alnum, 27), alone("hv"+"s.", alnum, 90),
	func(r *rand.Rand) (string, string) {
		part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		s := part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(`{"sub":"`+random(r, alnum, 12)+`"}`) + "." + random(r, alnum, 43)
		return s, s
	},
	pem("RSA PRIVATE KEY"), pem("OPENSSH PRIVATE KEY"), pem("PRIVATE KEY"),
	alone("ghs"+"_Ab12_eyJ"+"abcdefghij0.ey"+"Jabcdefghij0.", alnum, 40), alone("glw"+"t-", alnum, 20), alone("GR13"+"48941", alnum, 20), alone("xo"+"xc-2345678901-", hexa, 64), alone("xo"+"xd-", alnum, 120), alone("sk_"+"org_live_", alnum, 60),
	alone("AQ"+".Ab8", alnum, 48), alone("1"+"//0g", alnum, 98), alone("api"+"_org_", alnum, 34), alone("AB"+"SK", alnum, 109), alone("tsk"+"ey-auth-k123456CNTRL-", alnum, 32), alone("HRK"+"U-AA", alnum, 58),
	alone("fm"+"2_", alnum, 200), alone("rn"+"d_", alnum, 32), alone("nf"+"p_", alnum, 36), alone("vc"+"p_", alnum, 56), alone("cfu"+"t_", alnum, 40), alone("pu"+"l-", hexa, 40),
	around("", "aB3dE5gH7jK9mN.atl"+"asv1.", alnum, 64, ""), around("", "aB38"+"Q~", alnum, 34, ""), alone("xa"+"i-", alnum, 80), alone("pp"+"lx-", alnum, 48), alone("r"+"8_", alnum, 37), alone("cs"+"k-", "abcdefghij0123456789", 48),
	alone("nva"+"pi-", alnum, 64), alone("tg"+"p_v1_", alnum, 43), alone("tvl"+"y-dev-", alnum, 32), alone("f"+"c-", hexa, 32), alone("s"+"k_", hexa, 48), alone("pcs"+"k_aB3dE_", alnum, 63), alone("jin"+"a_", alnum, 60), alone("sb"+"p_", hexa, 40),
	alone("nap"+"i_", "abcdefghij0123456789", 64), alone("psca"+"le_tkn_", alnum, 43), alone("da"+"pi", hexa, 32), alone("gl"+"c_eyJ", alnum, 100), alone("NR"+"AK-", upper32, 27), alone("sntr"+"yu_", hexa, 64), alone("ph"+"x_", alnum, 43),
	alone("bk"+"ua_", hexa, 40), alone("sq"+"p_", hexa, 40), alone("AK"+"Cp", alnum, 69), alone("oy"+"2", "abcdefghij0123456789", 43), alone("rubyg"+"ems_", hexa, 48), alone("CLOJ"+"ARS_", hexa, 60), alone("dp"+".pt.", alnum, 43),
	alone("ops"+"_eyJ", alnum, 300), alone("xkey"+"sib-"+strings.Repeat("0a1b2c3d", 8)+"-", alnum, 16), alone("ke"+"y-", hexa, 32), alone("ATAT"+"T3", alnum, 180), alone("AT"+"BB", alnum, 40), alone("nt"+"n_12345678901", alnum, 35),
	alone("fig"+"d_", alnum, 40), alone("sq"+"0csp-", alnum, 43), alone("MT"+"E5ODYyMjQ4MzQ3MTkyNTI0OA.Cl2FMQ.", alnum, 27), alone("EA"+"AA", alnum, 60), alone("S"+"UA", upper32, 55), alone("S"+"OA", upper32, 55), around("https://discord.com/api/webhooks/1234567890123456789/", "", alnum, 68, ""),
	around("https://eth-mainnet.g.alchemy.com/v2/", "", alnum, 32, ""), around("https://api:", "", alnum, 20, "@registry.internal"),
	around("postgres://app:", "", alnum, 16, "@db.internal:5432/app"), around("git clone https://oauth2:", "", alnum, 20, "@git.internal/x.git"),
	around(`curl -H "Authorization: Bearer `, "", alnum, 40, `" https://api.internal`), around("authorization: Basic ", "", alnum, 28, ""),
	around("DB_PASSWORD=", "", alnum, 16, "\n"), around(`"api_key": "`, "", alnum, 32, `"`), around("client_secret: '", "", alnum, 32, "'"), around("aws_secret_access_key = \"", "", alnum, 40, "\""),
}

func alone(prefix, alphabet string, n int) func(*rand.Rand) (string, string) {
	return around("", prefix, alphabet, n, "")
}

func around(before, prefix, alphabet string, n int, behind string) func(*rand.Rand) (string, string) {
	return func(r *rand.Rand) (string, string) {
		secret := prefix + random(r, alphabet, n)
		return before + secret + behind, secret
	}
}

func pem(kind string) func(*rand.Rand) (string, string) {
	return func(r *rand.Rand) (string, string) {
		secret := random(r, alnum, 64)
		return "-----BEG" + "IN " + kind + "-----\n" + random(r, alnum, 64) + "\n" + secret + "\n-----E" + "ND " + kind + "-----\n", secret
	}
}

// secrets returns n secrets, of each form in turn.
func secrets(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]string, n)
	for i := range list {
		list[i], _ = forms[i%len(forms)](r)
	}
	return list
}

// TestPlantedSecretsAreFound plants a secret of each form in texts as people, programs and tools write them.
func TestPlantedSecretsAreFound(t *testing.T) {
	places := []string{"%", "my key is %, keep it", "$ cat .env\n%\n$", "\t12→%\n", "```\n%\n```"}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range len(forms) * len(places) {
		text, secret := forms[i%len(forms)](r)
		in := strings.ReplaceAll(places[i/len(forms)], "%", text)
		out, _ := Default().Text(in)
		if strings.Contains(out, secret) {
			t.Errorf("form %d, place %d: missed in %q", i%len(forms), i/len(forms), in)
		}
	}
	t.Logf("%d secrets of %d forms", len(forms)*len(places), len(forms))
}

func allGates() (list []string) {
	for _, r := range defaults {
		list = append(list, r.gates...)
	}
	return list
}

func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{
		"prose":  strings.Repeat("The upload test fails because the server closes the connection before the body is read; see server.go, line 42.\n", 9_000),
		"code":   strings.Repeat("\tif token := r.Header.Get(\"X-Token\"); token == \"\" { return errors.New(\"no token: pass key=value\") }\n", 10_000),
		"curl":   strings.Repeat("curl -sS https://svc-users.internal:8443/v1/users/42 -H 'Accept: application/json' -o out.json, and more after curl in it\n", 8_000),
		"gates":  strings.Repeat("-"+strings.Join(allGates(), "aaaaaaaaaaa-"), 2_000),
		"hashes": strings.Repeat("github.com/stretchr/testify v1.12.1 h1:7s2iGBzp5EwR7/aIZr8ao5+dra3wiQyKjjFuvgVKu7U=\n", 12_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Default().Text(text)
			}
		})
	}
}
