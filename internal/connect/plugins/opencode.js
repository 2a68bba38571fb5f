import { homedir } from "node:os"
import { join } from "node:path"

// Where opencode keeps its sessions, unless it is of another channel: then the server sees by itself that it has changed.
const database = process.env.OPENCODE_DB ?? join(process.env.XDG_DATA_HOME ?? join(homedir(), ".local", "share"), "opencode", "opencode.db")
