// Package agent is a small agent that answers questions about a folder, and that
// tells mneme everything it does. It has no model: a planner of plain code takes
// its place, so that the same folder and question give the same answer.
//
//	question ─▶ planner ─step─▶ loop ─call─▶ tools
//	               ▲             │  │           │
//	               └── result ───│──┴───────────┘
//	                             ▼
//	                         Recorder ──events──▶ the log
//
// recorder.go is what an agent of your own needs: copy it, and call it where
// agent.go does. The other files are what yours has already: a loop, something
// that decides, and tools.
package agent
