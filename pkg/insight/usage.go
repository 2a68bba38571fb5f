package insight

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Tokens are what one answer of a model used. Each token is in one of the four counts.
type Tokens struct {
	Input      int64 `json:"i,omitempty"` // read by the model without its cache: neither from it nor into it
	CacheRead  int64 `json:"r,omitempty"` // read from the cache
	CacheWrite int64 `json:"w,omitempty"` // read, and written into the cache
	Output     int64 `json:"o,omitempty"` // written by the model, its reasoning included
}

// In is all that the model read: the size of its context.
func (t Tokens) In() int64 { return t.Input + t.CacheRead + t.CacheWrite }

func (t *Tokens) add(o Tokens) {
	t.Input += o.Input
	t.CacheRead += o.CacheRead
	t.CacheWrite += o.CacheWrite
	t.Output += o.Output
}

// maxTokens is the largest believable count of one answer.
const maxTokens = 1_000_000_000

// usage is the object that a provider gives, with the members that [TokensOf] reads in all of its forms.
type usage struct {
	PromptTokenCount        jsontext.Value `json:"promptTokenCount"`
	CandidatesTokenCount    jsontext.Value `json:"candidatesTokenCount"`
	ToolUsePromptTokenCount jsontext.Value `json:"toolUsePromptTokenCount"`
	CachedContentTokenCount jsontext.Value `json:"cachedContentTokenCount"`
	ThoughtsTokenCount      jsontext.Value `json:"thoughtsTokenCount"`

	PromptTokens         jsontext.Value `json:"prompt_tokens"`
	CompletionTokens     jsontext.Value `json:"completion_tokens"`
	PromptTokensDetails  jsontext.Value `json:"prompt_tokens_details"`
	PromptCacheHitTokens jsontext.Value `json:"prompt_cache_hit_tokens"`

	InputTokens              jsontext.Value `json:"input_tokens"`
	OutputTokens             jsontext.Value `json:"output_tokens"`
	InputTokensDetails       jsontext.Value `json:"input_tokens_details"`
	CachedInputTokens        jsontext.Value `json:"cached_input_tokens"`
	CacheWriteInputTokens    jsontext.Value `json:"cache_write_input_tokens"`
	CacheReadInputTokens     jsontext.Value `json:"cache_read_input_tokens"`
	CacheCreationInputTokens jsontext.Value `json:"cache_creation_input_tokens"`

	Inputs            jsontext.Value `json:"inputTokens"`
	Outputs           jsontext.Value `json:"outputTokens"`
	InputDetails      jsontext.Value `json:"inputTokenDetails"`
	CachedInputs      jsontext.Value `json:"cachedInputTokens"`
	CacheReadInputs   jsontext.Value `json:"cacheReadInputTokens"`
	CacheWrittenInput jsontext.Value `json:"cacheWriteInputTokens"`

	Input      jsontext.Value `json:"input"`
	Output     jsontext.Value `json:"output"`
	Reasoning  jsontext.Value `json:"reasoning"`
	Cached     jsontext.Value `json:"cached"`
	Thoughts   jsontext.Value `json:"thoughts"`
	Tool       jsontext.Value `json:"tool"`
	Cache      jsontext.Value `json:"cache"`
	CacheRead  jsontext.Value `json:"cacheRead"`
	CacheWrite jsontext.Value `json:"cacheWrite"`
}

// asEver makes decoding work as in encoding/json, except that names must match in case.
var asEver = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.MatchCaseInsensitiveNames(false))

// count returns a member if it is a believable count.
func count(member jsontext.Value) (n int64, ok bool) {
	if f, err := strconv.ParseFloat(string(member), 64); err == nil && f >= 0 && f <= maxTokens {
		return int64(f), true
	}
	return 0, false
}

// within returns a member of an inner object as a count.
func within(object jsontext.Value, name string) (n int64, ok bool) {
	var inner map[string]jsontext.Value
	if len(object) == 0 || json.Unmarshal(object, &inner, asEver) != nil {
		return 0, false
	}
	return count(inner[name])
}

// TokensOf reads the usage of a message. It knows the forms of Anthropic, OpenAI (both APIs), Gemini, Bedrock, the
// Vercel SDK, Codex, Gemini CLI, opencode and Pi. Some of these include cached tokens in the tokens read; the result
// never does. ok is false if the form is unknown or a count is not believable.
func TokensOf(raw []byte) (t Tokens, ok bool) {
	var u usage
	if len(raw) == 0 || json.Unmarshal(raw, &u, asEver) != nil {
		return t, false
	}
	var in, cached int64
	var hasIn, hasOut bool
	inclusive := true // in includes what was read from the cache and written into it
	switch {
	case u.PromptTokenCount != nil || u.CandidatesTokenCount != nil: // Gemini
		in, hasIn = count(u.PromptTokenCount)
		tools, _ := count(u.ToolUsePromptTokenCount)
		in += tools
		cached, _ = count(u.CachedContentTokenCount)
		t.Output, hasOut = count(u.CandidatesTokenCount)
		thoughts, _ := count(u.ThoughtsTokenCount)
		t.Output += thoughts
	case u.PromptTokens != nil || u.CompletionTokens != nil: // OpenAI, chat completions
		in, hasIn = count(u.PromptTokens)
		if cached, ok = within(u.PromptTokensDetails, "cached_tokens"); !ok {
			cached, _ = count(u.PromptCacheHitTokens)
		}
		t.CacheWrite, _ = within(u.PromptTokensDetails, "cache_write_tokens")
		t.Output, hasOut = count(u.CompletionTokens)
	case u.InputTokens != nil || u.OutputTokens != nil:
		in, hasIn = count(u.InputTokens)
		t.Output, hasOut = count(u.OutputTokens)
		if cached, ok = within(u.InputTokensDetails, "cached_tokens"); ok { // OpenAI, responses
			t.CacheWrite, _ = within(u.InputTokensDetails, "cache_write_tokens")
			break
		}
		if cached, ok = count(u.CachedInputTokens); ok { // Codex
			t.CacheWrite, _ = count(u.CacheWriteInputTokens)
			break
		}
		inclusive = false // Anthropic
		cached, _ = count(u.CacheReadInputTokens)
		t.CacheWrite, _ = count(u.CacheCreationInputTokens)
	case u.Inputs != nil || u.Outputs != nil:
		in, hasIn = count(u.Inputs)
		t.Output, hasOut = count(u.Outputs)
		t.CacheWrite, _ = within(u.InputDetails, "cacheWriteTokens")
		if cached, ok = count(u.CachedInputs); ok { // Vercel, as is the next one
			break
		}
		if cached, ok = within(u.InputDetails, "cacheReadTokens"); ok {
			break
		}
		inclusive = false // Bedrock
		cached, _ = count(u.CacheReadInputs)
		t.CacheWrite, _ = count(u.CacheWrittenInput)
	case u.Cached != nil && u.Input != nil: // Gemini CLI
		in, hasIn = count(u.Input)
		tools, _ := count(u.Tool)
		in += tools
		cached, _ = count(u.Cached)
		t.Output, hasOut = count(u.Output)
		thoughts, _ := count(u.Thoughts)
		t.Output += thoughts
	case u.Input != nil || u.Output != nil: // Pi, opencode
		inclusive = false
		in, hasIn = count(u.Input)
		t.Output, hasOut = count(u.Output)
		thoughts, _ := count(u.Reasoning)
		t.Output += thoughts
		if cached, ok = within(u.Cache, "read"); !ok {
			cached, _ = count(u.CacheRead)
		}
		if t.CacheWrite, ok = within(u.Cache, "write"); !ok {
			t.CacheWrite, _ = count(u.CacheWrite)
		}
	}
	if !hasIn && !hasOut {
		return Tokens{}, false
	}
	if inclusive {
		cached = min(cached, in)
		t.CacheWrite = min(t.CacheWrite, in-cached)
		in -= cached + t.CacheWrite
	}
	t.Input, t.CacheRead = in, cached
	return t, true
}
