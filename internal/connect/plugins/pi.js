// pi gives each session an instance of its own. A session without a file is one that its user does not want kept, or a subagent.
export default function (pi) {
  let source = "" // why the session's context must be shown at the next prompt, "" once it was shown
  const tell = (name, { cwd, sessionManager }, more) =>
    hook({ hook_event_name: name, session_id: sessionManager.getSessionId(), transcript_path: sessionManager.getSessionFile(), cwd, ...more })
  const isKept = ({ sessionManager }) => Boolean(sessionManager.getSessionFile())

  pi.on("session_start", ({ reason }, { sessionManager }) => {
    const continues = sessionManager.getEntries().some(({ type }) => type === "message")
    if (reason !== "reload") source = continues ? "resume" : "startup"
  })

  pi.on("session_compact", () => {
    source = "compact"
  })

  // In a message of the user's, which pi keeps: in the system prompt, whoever wrote a recorded text would speak with the
  // authority of the system.
  pi.on("before_agent_start", async ({ prompt }, context) => {
    if (!prompt || !isKept(context)) return // another extension starts the model, or nothing is recorded
    const texts = []
    const why = source
    source = "" // before anything is waited for: a compaction may come
    if (why) texts.push(await tell("SessionStart", context, { source: why }))
    texts.push(await tell("UserPromptSubmit", context, { prompt }))
    const content = texts.filter(Boolean).join("\n\n")
    if (content) return { message: { customType: "mneme", content, display: false } }
  })

  pi.on("agent_end", (_, context) => {
    if (isKept(context)) void tell("Stop", context)
  })

  pi.on("session_shutdown", async (_, context) => {
    if (isKept(context)) await tell("SessionEnd", context)
  })
}
