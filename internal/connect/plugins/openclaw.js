import { homedir } from "node:os"
import { join, resolve } from "node:path"

// Where OpenClaw keeps the sessions of an agent. It runs a copy of this file, which is elsewhere.
const inHome = (path, home) => path.trim().replace(/^~(?=$|[\\/])/, home)
const home = inHome(process.env.OPENCLAW_HOME || "~", homedir())
const folder = resolve(inHome(process.env.OPENCLAW_STATE_DIR || "~/.openclaw", home))
const database = (agent) => join(folder, "agents", agent, "agent", "openclaw-agent.sqlite")

const shown = new Map() // what belongs to the start of a session, by its id
const remembered = 1000 // sessions

const tell = (name, { sessionId, agentId = "main", workspaceDir }, more) =>
  hook({ hook_event_name: name, session_id: sessionId, transcript_path: database(agentId), cwd: workspaceDir, ...more })

// A turn of the user's, and not one that a timer or another agent has begun.
const isOfUser = ({ trigger = "user", sessionKey = "", inputProvenance }) =>
  trigger === "user" && !sessionKey.includes(":subagent:") && (inputProvenance?.kind ?? "external_user") === "external_user"

export default {
  id: "mneme",
  name: "mneme",
  register(api) {
    // Before the prompt, and not in the system prompt: there, whoever wrote a recorded text would speak with the authority of
    // the system. OpenClaw does not keep what is added, so what belongs to the start is added to each prompt.
    api.on("before_prompt_build", async (event, context) => {
      const session = context.sessionId
      if (!session || !isOfUser(context)) return
      if (!shown.has(session)) {
        if (shown.size >= remembered) shown.delete(shown.keys().next().value)
        shown.set(session, await tell("SessionStart", context, { source: event.messages?.length ? "resume" : "startup" }))
      }
      const found = await tell("UserPromptSubmit", context, { prompt: event.currentUserMessage ?? event.prompt })
      const prependContext = [shown.get(session), found].filter(Boolean).join("\n\n")
      if (prependContext) return { prependContext }
    })

    api.on("after_compaction", async (_, context) => {
      const session = context.sessionId
      if (session && shown.has(session)) shown.set(session, await tell("SessionStart", context, { source: "compact" }))
    })

    api.on("agent_end", async (_, context) => {
      if (context.sessionId) await tell("Stop", context)
    })

    api.on("session_end", async (event, context) => {
      const sessionId = context.sessionId ?? event.sessionId
      shown.delete(sessionId)
      if (sessionId) await tell("SessionEnd", { ...context, sessionId })
    })
  },
}
