package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/capture"
	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/internal/hook/ring"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/settings"
)

// agents checks the coding agents that are connected on this machine.
func (e *examination) agents(ctx context.Context) {
	states := slices.DeleteFunc(connect.Inspect(e.Project), func(s connect.State) bool { return !s.Asked() })
	if len(states) == 0 {
		e.add("agents", OK, "no coding agent is connected on this machine; mneme connect claude-code, for example, connects one", "")
		return
	}
	for i := range states {
		e.agent(ctx, &states[i])
	}
	e.spools(ring.UserSpools())
}

// agent checks the settings of an agent, the program that its hooks run, when a hook last called, and whether the agent
// has received what it was shown.
func (e *examination) agent(ctx context.Context, s *connect.State) {
	check, sound := "agent "+s.Agent, true
	report := func(level Level, detail, remedy string) {
		sound = false
		e.add(check, level, detail, remedy)
	}
	called, runs := "when one last called is not known, because the server does not answer", "its hooks run "+s.Hook
	if len(s.Command) > 0 && !s.Broken() {
		o, _ := ring.FromArguments(s.Command[1:])
		elsewhere := strings.TrimRight(o.URL, "/") != strings.TrimRight(e.Client.URL, "/")
		// Whoever wrote a repository also chose what its settings name: which program runs, and which server gets a token.
		foreign := s.Project != "" && !isOurs(s.Command[0])
		if foreign {
			report(Warning, fmt.Sprintf("%s runs %s, which is not the mneme-hook of this machine, so it was not tried", s.Project, s.Command[0]),
				"look at the file before you let the agent run it; mneme connect "+s.Agent+" --project-dir . names the right program")
		} else if s.ToolsOnly {
			called, runs = "it is shown nothing by hooks", "it gets the tools of "+s.Command[0]
		} else if err := tryHook(ctx, s.Command); err != nil {
			report(Failed, fmt.Sprintf("%s does not run: %v", s.Hook, err), "install mneme-hook again, in the folder of mneme, then mneme connect "+s.Agent)
		}
		if foreign || s.Project != "" && elsewhere {
			// nobody is asked
		} else if _, err := os.Stat(o.TokenFile); o.TokenFile != "" && err != nil {
			report(Failed, "the token of its hooks can't be read: "+err.Error(), "correct the path, then mneme connect "+s.Agent+" --token-file PATH")
		} else if why := denied(ctx, o, s); why != "" {
			report(Failed, "the server takes no event of its hooks: "+why, "put a token of the role write into a file, for example by mneme tokens create, then mneme connect "+s.Agent+" --token-file PATH")
		}
		if e.answers && !s.ToolsOnly {
			calls, err := e.calls(ctx, o.Tenant)
			last := hook.Newest(calls, s.Agent)
			switch {
			case err != nil:
				called = "when one last called is not known: " + err.Error()
			case last != nil:
				s.Heard(last)
				seen, wrong := delivered(ctx, s, calls, e.now())
				if called = "one called at " + last.Local().Format(time.DateTime) + "; " + seen; wrong != "" {
					report(Warning, wrong, "begin a session and run mneme doctor again; if it is so again, this version of "+connect.Title(s.Agent)+" drops what hooks print: update it")
				}
			case elsewhere:
				report(Warning, fmt.Sprintf("its hooks call %s, and this examines %s", settings.Redacted(o.URL), settings.Redacted(e.Client.URL)),
					"mneme doctor --url URL with the URL of the hooks, or mneme connect "+s.Agent+" --url URL with that of the server")
			default:
				s.Heard(nil)
			}
		}
	}
	for _, l := range s.Missing {
		switch {
		case l.Weight == connect.Breaks && len(s.Files) > 0:
			report(Failed, l.What, l.Remedy)
		case l.Weight != connect.Optional: // a broken file may never have named the hook
			report(Warning, l.What, l.Remedy)
		}
	}
	if sound {
		e.add(check, OK, runs+"; "+called, "")
	}
}

// denied returns why the server takes nothing from an agent's hooks, "" if it does.
func denied(ctx context.Context, o ring.Options, s *connect.State) string {
	if s.ToolsOnly {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return ring.Denied(ctx, o, s.Agent)
}

// isOurs reports whether a program is the hook that belongs to this one, or the one in PATH.
func isOurs(program string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	var ours []string
	if mneme, err := os.Executable(); err == nil {
		if hook, err := connect.FindHook(mneme); err == nil {
			ours = append(ours, hook)
		}
	}
	if hook, err := exec.LookPath("mneme-hook"); err == nil {
		ours = append(ours, hook)
	}
	return slices.ContainsFunc(ours, func(hook string) bool {
		known, err := os.Stat(hook)
		return err == nil && os.SameFile(known, info)
	})
}

// tryHook runs the program of a hook so that it does nothing.
func tryHook(ctx context.Context, command []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), ring.Off+"=off")
	return cmd.Run()
}

// calls asks the server for the sessions whose hooks have reached it since it started, the newest first.
func (e *examination) calls(ctx context.Context, tenant string) ([]hook.Fired, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query := url.Values{}
	if tenant != "" {
		query.Set("tenant", tenant)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(e.Client.URL, "/")+"/v1/hooks?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	client, err := e.client()
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", response.Status)
	}
	var hooks httpapi.Hooks
	if err := json.NewDecoder(response.Body).Decode(&hooks); err != nil {
		return nil, err
	}
	return hooks.Sessions, nil
}

// spools checks whether events of hooks wait because a server did not answer.
func (e *examination) spools(list []ring.Spool) {
	var waiting []string
	for _, s := range list {
		n, err := s.Waiting()
		if err != nil {
			e.add("hooks", Warning, err.Error(), "give this user access to it")
			return
		}
		if n > 0 {
			waiting = append(waiting, fmt.Sprintf("%d, in %s", n, s))
		}
	}
	if len(waiting) == 0 {
		e.add("hooks", OK, "no event of a hook waits to be sent", "")
		return
	}
	e.add("hooks", Warning, "events that wait because the server did not answer hooks in time: "+strings.Join(waiting, "; "),
		"the next events of an agent send them along to the server that they were for; if the number grows, check that the server runs where mneme connected says; "+
			"a file for a server that no agent is connected to any more can be deleted")
}

// recent is how long the last problem with a transcript counts: an older one may have been solved.
const recent = 24 * time.Hour

// JudgeTranscripts returns what of the transcripts could not be read, "" for nothing, and what to do.
func JudgeTranscripts(c *httpapi.Captured, now time.Time) (what, remedy string) {
	switch {
	case c == nil:
	case c.LastError != "" && now.Sub(c.LastErrorTime) < recent:
		what = "a transcript was not read, at " + c.LastErrorTime.Local().Format(time.DateTime) + ": " + c.LastError
		remedy = "correct what the message names; the next hook of that session tries again, as does mneme import FILE"
		if strings.Contains(c.LastError, capture.ErrPath.Error()) { // a status holds only the text of the error
			remedy = "start mneme up with the same CLAUDE_CONFIG_DIR or CODEX_HOME as the agent, or bring the file in with mneme import FILE"
		}
	case c.RefusedLines > 0:
		what = fmt.Sprintf("lines of transcripts that were refused: %d; the others were recorded", c.RefusedLines)
		remedy = "mneme import ~/.claude/projects ~/.codex/sessions names the lines"
	}
	return what, remedy
}

// JudgeOTLP returns which spans and log records cannot be recorded or were refused lately, "" for none, and what to do.
func JudgeOTLP(s *httpapi.Exported, now time.Time) (what, remedy string) {
	if s != nil && s.Waits != "" && now.Sub(s.WaitsSince) < recent {
		return fmt.Sprintf("what exporters of OpenTelemetry sent at %s could not be recorded, and they were asked to send it again: %s", s.WaitsSince.Local().Format(time.DateTime), s.Waits), "correct what the message names; nothing is lost while the exporters try again, which most do for some minutes"
	}
	if s == nil || s.LastError == "" || now.Sub(s.LastErrorTime) >= recent {
		return "", ""
	}
	last := s.LastErrorTime.Local().Format(time.DateTime) + ": " + s.LastError
	what = fmt.Sprintf("of what exporters of OpenTelemetry sent, spans and log records were not recorded: %d; the last one at %s", s.Refused, last)
	if s.Refused == 0 { // only whole requests, whose spans nobody counted
		what = "requests of exporters of OpenTelemetry were not recorded, the last one at " + last
	}
	return what, "correct the exporter's settings as the message says"
}

// told summarizes what exporters of OpenTelemetry sent.
func told(s *httpapi.Exported) string {
	left := uint64(0)
	for _, n := range s.LeftOut {
		left += n
	}
	return fmt.Sprintf("exporters of OpenTelemetry are answered at %s; spans and log records since the server started: %d new, %d known, %d without content of a conversation", strings.Join(s.Listen, ", "), s.Recorded, s.Known, left)
}
