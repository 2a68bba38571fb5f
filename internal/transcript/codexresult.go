package transcript

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

// codexResult reads the output of a call. Codex has written it as JSON in a string with the exit code beside the text,
// as a text with a head that names the exit code, as a list of parts, and as an object with content and success. Any
// other output is a text that does not show whether the call succeeded.
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
	var texts codexTexts
	if len(raw) > 0 && raw[0] != '{' && json.Unmarshal(raw, &texts) != nil || len(raw) > 0 && raw[0] == '{' {
		texts = codexTexts{string(plain(raw))}
	}
	content := texts.join()

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
	head, _, ok := strings.Cut(content, "\nOutput:")
	if !ok || len(head) > maxResultHead {
		return ended(content, nil, nil)
	}
	var code *int
	var seconds *float64
	if m := exitCode.FindStringSubmatch(head); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			code = &n
		}
	}
	if m := wallTime.FindStringSubmatch(head); m != nil {
		if s, err := strconv.ParseFloat(m[1], 64); err == nil {
			seconds = &s
		}
	}
	return ended(content, code, seconds)
}

// maxResultHead is the longest head of an output, in bytes: a few lines of figures.
const maxResultHead = 512

var (
	exitCode = regexp.MustCompile(`(?m)^(?:Exit code:|Process exited with code) (-?\d{1,9})$`)
	wallTime = regexp.MustCompile(`(?m)^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$`)
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
		ms := math.Round(*seconds*1e6) / 1e3
		p.DurationMS = &ms
	}
	return p
}
