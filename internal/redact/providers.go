package redact

// providers are the keys that begin with a prefix of their provider and that have no kind of their own: [redacted:api-key].
var providers = []rule{
	// Clouds and hosting.
	apiKey(`ABSK[A-Za-z0-9+/]{100,}={0,2}|bedrock-api-key-[A-Za-z0-9+/=_-]{60,}`, "ABSK", "bedrock-api-key-"),
	apiKey(`tskey-[a-z]{3,10}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}`, "tskey-"),
	apiKey(`HRKU-[A-Za-z0-9_-]{36,}`, "HRKU-"),
	apiKey(`fm[12][ar]?_[A-Za-z0-9+/=_-]{60,}|fo1_[A-Za-z0-9_-]{40,}`, "fm1", "fm2", "fo1_"),
	apiKey(`rnd_[A-Za-z0-9]{28,40}`, "rnd_"),
	apiKey(`nf[pcobu]_[A-Za-z0-9]{36,40}`, "nfp_", "nfc_", "nfo_", "nfb_", "nfu_"),
	apiKey(`vc[pcirak]_[A-Za-z0-9]{40,64}`, "vcp_", "vcc_", "vci_", "vcr_", "vca_", "vck_"),
	apiKey(`v1\.0-[0-9a-f]{24}-[0-9a-f]{146}|cf[uak]t?_[A-Za-z0-9_-]{40,}`, "v1.0-", "cfut_", "cfat_", "cfk_", "cfu_", "cfa_", "cfkt_"),
	apiKey(`pul-[0-9a-f]{40}`, "pul-"),
	apiKey(`K10[0-9a-f]{64}::[a-z0-9.:-]{1,40}:[0-9a-f]{32}`, "K10"),
	apiKey(`token-[a-z0-9]{5}:[a-z0-9]{54}`, "token-"),
	unprefixed("api-key", `[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}`, ".atlasv1."),
	unprefixed("azure-key", `[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}`, "Q~"),
	unprefixed("azure-key", `[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}|[A-Za-z0-9]{52}JQQJ9[9D][A-Za-z0-9]{26}`, "AZDO", "JQQJ9"),

	// Models.
	apiKey(`xai-[A-Za-z0-9]{70,90}`, "xai-"),
	apiKey(`pplx-[A-Za-z0-9]{40,64}`, "pplx-"),
	apiKey(`r8_[A-Za-z0-9]{37}`, "r8_"),
	apiKey(`fw_[A-Za-z0-9]{22,32}`, "fw_"),
	apiKey(`csk-[a-z0-9]{40,60}`, "csk-"),
	apiKey(`nvapi-[A-Za-z0-9_-]{40,}`, "nvapi-"),
	apiKey(`tgp_v1_[A-Za-z0-9_-]{40,50}`, "tgp_v1_"),
	apiKey(`lsv2_[ps][tk]_[0-9a-f]{32}_[0-9a-f]{10}`, "lsv2_"),
	apiKey(`sk-lf-[0-9a-f]{8}-[0-9a-f-]{27}`, "sk-lf-"),
	apiKey(`tvly-(?:dev-|prod-)?[A-Za-z0-9_-]{30,}`, "tvly-"),
	apiKey(`fc-[0-9a-f]{32}`, "fc-"),
	apiKey(`sk_[0-9a-f]{48}`, "sk_"),
	apiKey(`pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,70}`, "pcsk_"),
	apiKey(`pa-[A-Za-z0-9_-]{43}`, "pa-"),
	apiKey(`jina_[A-Za-z0-9]{50,64}`, "jina_"),
	apiKey(`key_[0-9a-f]{64}`, "key_"),
	apiKey(`sess-[A-Za-z0-9]{40}`, "sess-"),

	// Data, and what watches programs.
	apiKey(`sbp_(?:v0_)?[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{28,40}`, "sbp_", "sb_secret_"),
	apiKey(`napi_[a-z0-9]{60,70}`, "napi_"),
	apiKey(`pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}`, "pscale_"),
	apiKey(`dapi[0-9a-f]{32}(?:-\d)?`, "dapi"),
	apiKey(`glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_eyJ[A-Za-z0-9+/]{40,}={0,2}`, "glsa_", "glc_eyJ"),
	apiKey(`NRAK-[A-Z0-9]{27}|NRJS-[0-9a-f]{19}|NRI[IQ]-[A-Za-z0-9_-]{32}`, "NRAK-", "NRJS-", "NRII-", "NRIQ-"),
	unprefixed("api-key", `[0-9a-f]{36}NRAL`, "NRAL"),
	apiKey(`sntrys_eyJ[A-Za-z0-9+/=_-]{60,}|sntryu_[0-9a-f]{64}`, "sntrys_eyJ", "sntryu_"),
	apiKey(`hca?[ik]k_[A-Za-z0-9]{40,64}`, "hcaik_", "hcakk_", "hcik_", "hckk_"),
	apiKey(`phx_[A-Za-z0-9]{40,50}`, "phx_"),

	// Building and packages.
	apiKey(`CCI(?:PAT|PRJ)_[A-Za-z0-9]{20,24}_[0-9a-f]{40}`, "CCIPAT_", "CCIPRJ_"),
	apiKey(`bk[ua]a_[0-9a-f]{40}`, "bkua_", "bkaa_"),
	apiKey(`sq[upa]_[0-9a-f]{40}`, "squ_", "sqp_", "sqa_"),
	apiKey(`AKCp[A-Za-z0-9]{69}|cmVmdGtu[A-Za-z0-9]{50,60}`, "AKCp", "cmVmdGtu"),
	apiKey(`oy2[a-z0-9]{43}`, "oy2"),
	apiKey(`rubygems_[0-9a-f]{48}`, "rubygems_"),
	apiKey(`cio[A-Za-z0-9]{32}`, "cio"),
	apiKey(`CLOJARS_[0-9a-f]{60}`, "CLOJARS_"),

	// Secrets, mail, payment, and the tools of offices.
	apiKey(`dp\.(?:pt|ct|sa|scim|audit)\.[A-Za-z0-9]{40,44}|dp\.st\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}`, "dp.pt.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit.", "dp.st."),
	apiKey(`ops_eyJ[A-Za-z0-9+/]{200,}={0,3}`, "ops_eyJ"),
	apiKey(`st\.[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}`, "st."),
	apiKey(`re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}`, "re_"),
	apiKey(`x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}`, "xkeysib-", "xsmtpsib-"),
	apiKey(`key-[0-9a-f]{32}`, "key-"),
	apiKey(`ATATT3[A-Za-z0-9_=-]{150,}|ATCTT3[A-Za-z0-9_=-]{150,}|ATBB[A-Za-z0-9]{32,40}`, "ATATT3", "ATCTT3", "ATBB"),
	apiKey(`secret_[A-Za-z0-9]{43}|ntn_\d{11}[A-Za-z0-9]{35}`, "secret_", "ntn_"),
	apiKey(`pat[A-Za-z0-9]{14}\.[0-9a-f]{64}`, "pat"),
	apiKey(`[12]/1\d{15}/\d{16}:[0-9a-f]{32}`, "1/1", "2/1"),
	apiKey(`fig[dou]r?_[A-Za-z0-9_-]{40}`, "figd_", "figo_", "figu_", "figdr_", "figor_", "figur_"),
	apiKey(`EAAA[A-Za-z0-9_-]{60}|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}`, "EAAA", "sq0"),
	apiKey(`EAA[MC][A-Za-z0-9]{100,}`, "EAAM", "EAAC"),
	apiKey(`[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}`, "xprv", "yprv", "zprv", "tprv"),
	// Twitter.
	apiKey(`A{20,24}[A-Za-z0-9%]{20,80}%3D[A-Za-z0-9]{30,80}`, "AAAAAAAAAAAAAAAAAAAA"),
	// Addresses that are a secret as a whole.
	{kind: "webhook", gates: []string{"/webhooks/"}, find: match(`^/webhooks/\d{17,20}/([A-Za-z0-9_-]{60,80})`), before: anywhere, plausible: varied},
	{kind: "webhook", gates: []string{"/IncomingWebhook/"}, find: match(`^/IncomingWebhook/([0-9a-f]{32}/[0-9a-f-]{36}(?:/[A-Za-z0-9_-]+)?)`), before: anywhere, plausible: varied},
	{kind: "api-key", gates: []string{".g.alchemy.com/v", ".infura.io/v"}, find: match(`^\.(?:g\.alchemy\.com|infura\.io)/v\d/([A-Za-z0-9_-]{32})`), before: anywhere, plausible: keyed},

	// The seeds of keys of NATS: operators, accounts, users, servers and curves.
	{kind: "nats-seed", gates: []string{"SU", "SA", "SO", "SN", "SC", "SX"}, find: match(`^(S[UAONCX][A-Z2-7]{56})` + wordEnd), before: noWord, plausible: keyed},
}

// apiKey is as prefixed, of a key that has letters and digits.
func apiKey(pattern string, gates ...string) rule {
	r := prefixed("api-key", pattern, gates...)
	r.plausible = keyed
	return r
}

func keyed(s string) bool {
	lower, upper, digit, _ := classes(s)
	return varied(s) && digit && (lower || upper)
}
