package transcript

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

// codexResult reads the output of a call. Codex has written it as JSON in a string with the exit code beside the text,
// as a text with a head that names the exit code, as a list of parts, and as an object with content and success. Instead
// of a tool Codex itself may have answered, see codexFailed. Any other output is a text that does not show whether the call
// succeeded.
func codexResult(raw json.RawMessage) *events.ToolReturned {
	var shape struct {
		Content codexTexts `json:"content"`
		Success *bool      `json:"success"`
	}
	if len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &shape) == nil && shape.Content != nil {
		p := &events.ToolReturned{Success: shape.Success, Result: events.TextResult(shape.Content.join())}
		if shape.Success != nil && !*shape.Success {
			p.Error = shape.Content.join()
		}
		return p
	}
	content := codexText(raw)

	var packed struct {
		Output   *string `json:"output"`
		Metadata struct {
			ExitCode *int     `json:"exit_code"`
			Seconds  *float64 `json:"duration_seconds"`
		} `json:"metadata"`
	}
	if strings.HasPrefix(content, "{") && json.Unmarshal([]byte(content), &packed) == nil && packed.Output != nil {
		return ended(*packed.Output, packed.Metadata.ExitCode, packed.Metadata.Seconds)
	}
	if codexFailed.MatchString(content) {
		failed := false
		p := ended(content, nil, codexSeconds(content))
		p.Success, p.Error = &failed, content
		return p
	}
	head, _, ok := strings.Cut(content, "\nOutput:")
	if !ok || len(head) > maxResultHead {
		return ended(content, nil, nil)
	}
	var code *int
	if m := exitCode.FindStringSubmatch(head); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			code = &n
		}
	}
	return ended(content, code, codexSeconds(head))
}

// codexText returns the text of an output.
func codexText(raw json.RawMessage) string {
	var texts codexTexts
	if len(raw) > 0 && raw[0] != '{' && json.Unmarshal(raw, &texts) != nil || len(raw) > 0 && raw[0] == '{' {
		return string(plain(raw))
	}
	return texts.join()
}

// codexSeconds returns the time that the head of an output names.
func codexSeconds(head string) *float64 {
	if m := wallTime.FindStringSubmatch(head); m != nil {
		if s, err := strconv.ParseFloat(cmp.Or(m[1], m[2]), 64); err == nil {
			return &s
		}
	}
	return nil
}

// maxResultHead is the longest head of an output, in bytes: a few lines of figures.
const maxResultHead = 512

var (
	exitCode = regexp.MustCompile(`(?m)^(?:Exit code:|Process exited with code) (-?\d{1,9})$`)
	wallTime = regexp.MustCompile(`(?m)^(?:Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds|aborted by user after (\d{1,9}(?:\.\d{1,9})?)s)$`)
	// codexFailed matches what Codex answers if the user stopped a call, or if it could not make it. What a command has
	// written stands behind a head.
	codexFailed = regexp.MustCompile(`^(?:Wall time: [\d.]+ seconds\naborted by user$|aborted by user after [\d.]+s$|` +
		`unsupported (?:custom tool )?call: \S+$|failed to parse function arguments: |write_stdin failed: |apply_patch verification failed: )`)
)

// ended returns the result of a program. An absent exit code or time is unknown.
func ended(content string, code *int, seconds *float64) *events.ToolReturned {
	p := &events.ToolReturned{Result: events.TextResult(content)}
	if code != nil {
		success := *code == 0
		p.Success = &success
		if !success {
			p.Error = "exit " + strconv.Itoa(*code)
		}
	}
	if seconds != nil && *seconds >= 0 {
		p.DurationMS = new(math.Round(*seconds*1e6) / 1e3)
	}
	return p
}
