import { spawn } from "node:child_process"

const command = ["mneme-hook"]

// hook tells mneme-hook of an event and returns what the model should see. It never fails.
const hook = (event) =>
  new Promise((done) => {
    try {
      const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"], timeout: 3000 })
      child.on("error", () => done("")) // before anything can fail: without files left to open, there are no streams
      let out = ""
      child.stdout.setEncoding("utf8") // or a character could be cut between two parts
      child.stdout.on("data", (part) => (out += part))
      child.stdin.on("error", () => {})
      child.on("close", () => {
        try {
          done(JSON.parse(out).hookSpecificOutput.additionalContext)
        } catch {
          done("")
        }
      })
      child.stdin.end(JSON.stringify(event))
    } catch {
      done("")
    }
  })
