
export const Mneme = async ({ directory }) => {
  const fresh = new Set() // sessions that began since the agent started
  const children = new Set() // sessions of subagents: their prompts are not the user's
  const shown = new Map() // what the model is shown in a session: { start, prompts: those of its messages, by id }
  const tell = (name, session, more) => 
    hook({ hook_event_name: name, session_id: session, transcript_path: database, cwd: directory, ...more })

  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      const session = event.properties?.sessionID ?? info?.id
      switch (event.type) {
        case "session.created":
          ;(info?.parentID ? children : fresh).add(session)
          break
        case "session.deleted":
          for (const sessions of [fresh, children, shown]) sessions.delete(session)
          break
        case "session.idle":
          void tell("Stop", session)
          break
        case "session.compacted":
          const of = shown.get(session) // changed, not replaced: a prompt may just be adding its text to it
          of?.prompts.clear()
          if (of) of.start = await tell("SessionStart", session, { source: "compact" })
      }
    },

    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (children.has(sessionID)) return
      const prompt = parts
        .filter((part) => part.type === "text" && !part.synthetic)
        .map((part) => part.text)
        .join("\n")
      const source = fresh.has(sessionID) ? "startup" : "resume"
      let of = shown.get(sessionID)
      if (!of) {
        shown.set(sessionID, (of = { start: "", prompts: new Map() })) // before anything is waited for: another prompt may come
        of.start = await tell("SessionStart", sessionID, { source })
      }
      of.prompts.set(message.id, await tell("UserPromptSubmit", sessionID, { prompt }))
    },

    // In messages of the user, as parts of their own that the agent does not keep: in the system prompt, whoever wrote a
    // recorded text would speak with the authority of the system. A text stays at the same message, so that what the
    // provider has cached stays valid.
    "experimental.chat.messages.transform": async (_, { messages }) => {
      let first = true
      for (const { info, parts } of messages) {
        const of = info?.role === "user" && parts && shown.get(info.sessionID)
        if (!of) continue
        const texts = { start: first && of.start, prompt: of.prompts.get(info.id) }
        first = false
        for (const [name, text] of Object.entries(texts)) {
          const id = `prt_mneme_${name}_${info.id}`
          if (text && !parts.some((part) => part.id === id))
            parts.push({ id, sessionID: info.sessionID, messageID: info.id, type: "text", synthetic: true, text })
        }
      }
    },
  }
}
